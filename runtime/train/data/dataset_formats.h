#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_

// Parsers of token files. Each one validates the header of a format and locates the tokens.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

// The header of an llm.c file has little-endian int32: magic, version and number of tokens, then zeros. Tokens are u16
// with kLlmcMagic and u32 with kLlmcWideMagic.
inline constexpr int32_t kLlmcMagic = 20240520;
inline constexpr int32_t kLlmcWideMagic = 20240801;
inline constexpr int32_t kLlmcVersion = 1;
inline constexpr int32_t kLlmcWideVersion = 7;  // the version that llm.c's script for Llama 3 writes
inline constexpr int64_t kLlmcHeaderBytes = 256 * 4;

// An array of integers inside a file, without gaps.
struct TokenArray {
  absl::string_view format;  // for messages: "llm.c"
  ElementType type = ElementType::kU16;
  absl::Span<const uint8_t> bytes;  // size() * SizeOf(type)

  int64_t size() const { return static_cast<int64_t>(bytes.size() / SizeOf(type)); }
};

bool LooksLikeLlmc(absl::Span<const uint8_t> file);
// Describes a file with a header of llm.c that has no tokens in an order that is read; empty for any other file.
std::string DescribeOtherLlmc(absl::Span<const uint8_t> file);
bool LooksLikeMegatronIndex(absl::Span<const uint8_t> file);

absl::StatusOr<TokenArray> ParseLlmc(absl::Span<const uint8_t> file, const std::string& name);
// Parses a file that has nothing but tokens. Refuses a size that is no multiple of a token's, and files of other
// formats: those with known headers, compressed ones, and text.
absl::StatusOr<TokenArray> ParseRawTokens(absl::Span<const uint8_t> file, ElementType type, const std::string& name);
absl::StatusOr<TokenArray> ParseNpyTokens(absl::Span<const uint8_t> file, const std::string& name);

// The arrays of a Megatron index. Pointers point into the index file and may be unaligned.
struct MegatronIndex {
  ElementType type = ElementType::kU16;
  int64_t sequences = 0;
  const uint8_t* sizes = nullptr;     // int32[sequences], in tokens
  const uint8_t* pointers = nullptr;  // int64[sequences], offsets into .bin in bytes
  int64_t documents = 0;
  const uint8_t* document_indices = nullptr;  // int64[documents]
};

// Checks the header, the lengths of the arrays, and that the last sequence lies in .bin, of `token_bytes` bytes. O(1).
absl::StatusOr<MegatronIndex> ParseMegatronIndex(absl::Span<const uint8_t> file, uint64_t token_bytes,
                                                 const std::string& name);

// Checks that every sequence begins where the previous one ends, and that document indices never decrease.
absl::Status CheckMegatronIndex(const MegatronIndex& index, const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_FORMATS_H_
