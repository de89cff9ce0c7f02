#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_

// Numbers of a training run that are infinite or NaN.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

// Whether it is a NotFiniteError.
inline bool IsNotFinite(const absl::Status& status) { return absl::IsOutOfRange(status); }

// The index of the first element that is infinite or NaN; nothing when all are finite, or are of a type without such
// values. `bytes` are whole elements of a type of whole bytes, little-endian and anyhow aligned. As fast as memory is
// read.
std::optional<size_t> FirstNonFinite(ElementType type, absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_NON_FINITE_H_
