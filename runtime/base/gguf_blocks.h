#ifndef BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_
#define BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_

// The supported types of tensors in GGUF files, as ggml defines them (ggml-common.h). Elements are stored in blocks,
// which share scales.

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
  // Converts one block to f32: block_bytes bytes, at any alignment, to block_elements elements.
  void (*read)(const uint8_t* block, float* out);
};

// Null if the type is not supported.
const GgufType* FindGgufType(uint32_t number);
// The name of a type that ggml knows, supported or not; otherwise its number.
std::string NameOfGgufType(uint32_t number);
// "F32, F16, ...": the supported types.
std::string GgufTypeNames();

// Converts whole blocks to f32. out.size() is a multiple of block_elements; `bytes` has the blocks of these elements.
void ReadGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_BLOCKS_H_
