#ifndef BOWLINE_RUNTIME_TEXT_FAMILIES_H_
#define BOWLINE_RUNTIME_TEXT_FAMILIES_H_

// How families of models split text, by the names of families in GGUF files.

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/text/definition.h"

namespace bowline {

// GPT-2's expression, which `use_regex` of ByteLevel in tokenizer.json stands for.
inline constexpr char kGpt2Expression[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Matches a digit as the pre-tokenizer Digits defines digits: by Unicode 17.
inline constexpr char kDigit[] = R"([\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}])";

// Sets normalizer, pre-tokenizer and BpeDefinition::ignore_merges of the family `name` in `definition`, whose model
// must be a BpeDefinition.
absl::Status SetFamily(absl::string_view name, TokenizerDefinition* definition);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_FAMILIES_H_
