#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_

// Headers of the token file formats: each parser validates one and finds the tokens.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

// The header of llm.c files has little-endian int32: magic, version, number of tokens; the rest is zero. The magic says
// the type of the tokens: the first one u16, the second one u32.
inline constexpr int32_t kLlmcMagic = 20240520;
inline constexpr int32_t kLlmcWideMagic = 20240801;
inline constexpr int32_t kLlmcVersion = 1;
inline constexpr int32_t kLlmcWideVersion = 7;  // the version that llm.c's script for Llama 3 writes
inline constexpr int64_t kLlmcHeaderBytes = 256 * 4;

// A dense array of integers inside a file.
struct TokenArray {
  absl::string_view format;  // "llm.c"
  ElementType type = ElementType::kU16;
  absl::Span<const uint8_t> bytes;  // size() * SizeOf(type)

  int64_t size() const { return static_cast<int64_t>(bytes.size() / SizeOf(type)); }
};

bool LooksLikeLlmc(absl::Span<const uint8_t> file);
bool LooksLikeMegatronIndex(absl::Span<const uint8_t> file);

absl::StatusOr<TokenArray> ParseLlmc(absl::Span<const uint8_t> file, const std::string& name);
// A file of nothing but tokens. Refuses a size that is no whole number of them, and formats of other programs: files
// with a header of their own, compressed ones, and text.
absl::StatusOr<TokenArray> ParseRawTokens(absl::Span<const uint8_t> file, ElementType type, const std::string& name);
absl::StatusOr<TokenArray> ParseNpyTokens(absl::Span<const uint8_t> file, const std::string& name);

// The arrays of a Megatron index; pointers into the index file, at any alignment.
struct MegatronIndex {
  ElementType type = ElementType::kU16;
  int64_t sequences = 0;
  const uint8_t* sizes = nullptr;     // int32[sequences], in tokens
  const uint8_t* pointers = nullptr;  // int64[sequences], offsets into .bin in bytes
  int64_t documents = 0;
  const uint8_t* document_indices = nullptr;  // int64[documents]
};

// Checks the header, the lengths, and the last sequence against `token_bytes`, the size of the .bin file. O(1).
absl::StatusOr<MegatronIndex> ParseMegatronIndex(absl::Span<const uint8_t> file, uint64_t token_bytes,
                                                 const std::string& name);

// Checks that every sequence begins where the one before it ends, and that document indices are in order.
absl::Status CheckMegatronIndex(const MegatronIndex& index, const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_
