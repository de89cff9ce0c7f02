#ifndef BOWLINE_RUNTIME_TEXT_FAMILIES_H_
#define BOWLINE_RUNTIME_TEXT_FAMILIES_H_

// How families of models split text, by the names that GGUF has for them.

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/text/definition.h"

namespace bowline {

// GPT-2's expression, which ByteLevel of tokenizer.json means by `use_regex`.
inline constexpr char kGpt2Expression[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A digit as the pre-tokenizer Digits knows them, which has Unicode 17.
inline constexpr char kDigit[] = R"([\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}])";

// Sets normalizer, pre-tokenizer, and whether pieces that are tokens are split, of the family `name` in `definition`,
// whose model is BpeDefinition.
absl::Status SetFamily(absl::string_view name, TokenizerDefinition* definition);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_FAMILIES_H_
