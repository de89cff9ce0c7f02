#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_TRANSFERS_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_TRANSFERS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// One member's share of a collective's data movement, straight between the members' buffers. `pieces[r]` are the pieces
// of member r; all members' counts are the same. `sources` is workspace for one pointer per member.
struct MemberView {
  absl::Span<const absl::Span<const hal::HostPiece>> pieces;
  absl::Span<const void*> sources;
  size_t self;
  kernels::DType dtype;
};

// An all-reduce is both, with a meeting of all members in between: each reduces its share of the elements of all pieces
// together, reading each source once, then copies the others' shares.
void ReduceShare(const MemberView& view, hal::ReduceOp op);
void CopyShares(const MemberView& view);

// Any other collective, by its definition; each source is read once.
void MoveParts(const MemberView& view, const hal::Operation& operation);

void CopyPieces(absl::Span<const hal::HostPiece> from, absl::Span<const hal::HostPiece> to, kernels::DType dtype);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_TRANSFERS_H_
