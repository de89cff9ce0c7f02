#ifndef BOWLINE_TYPES_BLOCK_FORMATS_H_
#define BOWLINE_TYPES_BLOCK_FORMATS_H_

// Decodes the bits of a block, for the GGUF formats whose elements Bowline reads, as ggml-common.h defines them.
// Uses the standard library alone, as all of types does.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "types/element_type.h"

namespace bowline {

// Returns whether elements of the format are read: q8_0, q4_0, q4_1, q4_k and q6_k.
bool IsBlockFormat(ElementType type);

// Returns the format with this name, such as "q4_1"; nothing for other names, and for formats that are not read.
std::optional<ElementType> BlockFormatFromName(std::string_view name);

// "q8_0, q4_0, ...": the formats that are read.
std::string BlockFormatNames();

// Reads whole blocks at any alignment: `blocks` * block_bytes bytes to `blocks` * block_elements elements, exactly but
// for the products and sums that the format itself says, which are rounded to f32. IsBlockFormat(format).
void ReadBlocks(ElementType format, const uint8_t* bytes, int64_t blocks, float* out);

}  // namespace bowline

#endif  // BOWLINE_TYPES_BLOCK_FORMATS_H_
