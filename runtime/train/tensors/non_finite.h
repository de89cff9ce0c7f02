#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_

// Finds numbers of a training run that are infinite or NaN.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

// Returns whether `status` is a NotFiniteError.
inline bool IsNotFinite(const absl::Status& status) { return absl::IsOutOfRange(status); }

// Returns the index of the first element that is infinite or NaN; nothing if there is none or the type has
// no such values. `bytes` are whole little-endian elements of a type with whole bytes, at any alignment.
// As fast as reading the memory.
std::optional<size_t> FirstNonFinite(ElementType type, absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_
