#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_HOST_MEMORY_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_HOST_MEMORY_H_

// Conversions for devices whose addresses are the host's pointers. Only drivers of such devices include this file.

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/hal/communicator.h"
#include "runtime/hal/memory.h"

namespace bowline {

static_assert(sizeof(void*) == sizeof(hal::DeviceAddress));

inline void* PointerOf(hal::DeviceAddress address) { return reinterpret_cast<void*>(address); }
inline hal::DeviceAddress AddressOf(const void* pointer) { return reinterpret_cast<hal::DeviceAddress>(pointer); }

// Returns the same words as pointers, so that a launch copies nothing. (The build has no strict aliasing.)
inline absl::Span<void* const> PointersOf(absl::Span<const hal::DeviceAddress> addresses) {
  return {reinterpret_cast<void* const*>(addresses.data()), addresses.size()};
}

static_assert(sizeof(hal::HostPiece) == sizeof(hal::Piece));
static_assert(offsetof(hal::HostPiece, receive) == offsetof(hal::Piece, receive));
static_assert(offsetof(hal::HostPiece, count) == offsetof(hal::Piece, count));
inline absl::Span<const hal::HostPiece> HostPiecesOf(absl::Span<const hal::Piece> pieces) {
  return {reinterpret_cast<const hal::HostPiece*>(pieces.data()), pieces.size()};
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_HOST_MEMORY_H_
