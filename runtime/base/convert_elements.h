#ifndef BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_
#define BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_

// Elements of tensors in files, as other types.

#include <cstdint>

#include "absl/types/span.h"
#include "types/element_type.h"

namespace bowline {

// Converts out.size() elements of little-endian `bytes`, at any alignment, to f32: exact for the narrower types, to
// nearest even for f64 and wide integers; a bool is 0 or 1. `bytes` has at least out.size() * SizeOf(type) bytes.
// `type` is one of safetensors.
void ConvertToF32(ElementType type, const uint8_t* bytes, absl::Span<float> out);

// Whether Convert takes it: two equal types, or a floating-point one and f32, f16 or bf16.
bool CanConvert(ElementType from, ElementType to);
// All elements of `bytes` to as many of type `to` at `out`: the same bits, or f32 in between, rounded to nearest even.
void Convert(ElementType from, absl::Span<const uint8_t> bytes, ElementType to, uint8_t* out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_CONVERT_ELEMENTS_H_
