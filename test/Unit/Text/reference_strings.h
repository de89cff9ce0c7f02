#ifndef BOWLINE_TEST_UNIT_TEXT_REFERENCE_STRINGS_H_
#define BOWLINE_TEST_UNIT_TEXT_REFERENCE_STRINGS_H_

// Strings that tokenizers are compared on. scripts/record-tokenizers.py makes the same ones for the reference.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace bowline {

inline constexpr int kReferenceBlock = 1000;  // strings that have one digest

// A JSON string a line.
absl::StatusOr<std::vector<std::string>> ReadReferenceStrings(const std::string& path);

// String `index`: of parts of `strings`, of the contents of added tokens, of random characters and of repeated ones.
std::string MakeReferenceString(uint64_t index, absl::Span<const std::string> strings,
                                absl::Span<const std::string> added);

// The first 16 hexadecimal digits of SHA-256 of a block: of each string its ids (with special tokens added or parsed by
// its index), the text that they decode to, and the text of random ids.
absl::StatusOr<std::string> DigestOfReferenceBlock(const Tokenizer& tokenizer, uint64_t block,
                                                   absl::Span<const std::string> strings,
                                                   absl::Span<const std::string> added);

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TEXT_REFERENCE_STRINGS_H_
