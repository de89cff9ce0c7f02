#ifndef BOWLINE_RUNTIME_BASE_NPY_H_
#define BOWLINE_RUNTIME_BASE_NPY_H_

// NumPy's .npy files, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: versions 1 and 2, C
// order, little-endian elements.

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

// A parsed file. `data` points into the file's bytes.
struct NpyView {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  absl::Span<const uint8_t> data;  // the product of the shape, times SizeOf(type); at any alignment
};

bool LooksLikeNpy(absl::Span<const uint8_t> file);

// Parses a whole file. Errors begin with `name` and give advice. Returns kDataLoss if the file is cut off. An element
// type outside `supported`, all of which NumPy must have, is an error that lists these.
absl::StatusOr<NpyView> ParseNpy(absl::Span<const uint8_t> file, absl::string_view name,
                                 absl::Span<const ElementType> supported);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_NPY_H_
