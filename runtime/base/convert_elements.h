#ifndef BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_
#define BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_

// Converts the elements of tensors in files to other types.

#include <cstdint>

#include "absl/types/span.h"
#include "types/element_type.h"

namespace bowline {

// Converts out.size() elements of little-endian `bytes`, at any alignment, to f32. This is exact for narrower types,
// and rounds f64 and wide integers to nearest even; a bool becomes 0 or 1. `bytes` has at least out.size() *
// SizeOf(type) bytes. `type` is one that safetensors have.
void ConvertToF32(ElementType type, const uint8_t* bytes, absl::Span<float> out);

// Returns whether Convert supports the types: two equal ones, or a floating-point one and f32, f16 or bf16.
bool CanConvert(ElementType from, ElementType to);
// Converts all of `bytes` to type `to`: copies equal types, else goes through f32 and rounds to nearest even.
void Convert(ElementType from, absl::Span<const uint8_t> bytes, ElementType to, uint8_t* out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_
