#ifndef BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_
#define BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_

// The types of tensors in GGUF files that are read, as ggml defines them (ggml-common.h): elements are stored in
// blocks, which share scales.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

struct GgufType {
  uint32_t number;  // ggml_type
  absl::string_view name;
  uint32_t block_elements;
  uint32_t block_bytes;
  // Reads one block: block_bytes bytes at any alignment to block_elements elements.
  void (*read)(const uint8_t* block, float* out);
};

// nullptr for a type that is not read.
const GgufType* FindGgufType(uint32_t number);
// The name of a type that ggml knows, read or not; its number where it knows none.
std::string NameOfGgufType(uint32_t number);
// "F32, F16, ...": the types that are read.
std::string GgufTypeNames();

// Reads whole blocks to f32. `out` has a multiple of block_elements elements, `bytes` the bytes of as many.
void ReadGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_
