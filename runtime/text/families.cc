#include "runtime/text/families.h"

#include <vector>

#include "absl/strings/str_join.h"

namespace bowline {
namespace {

struct Family {
  absl::string_view name;
  std::vector<absl::string_view> expressions;  // each splits the pieces of the one before
  bool nfc = false;
  bool ignore_merges = false;
};

// From tokenizer.json of the models.
const std::vector<Family>& Families() {
  static const auto* const families = new std::vector<Family>{
      {"gpt-2", {kGpt2Expression}},
      {"smollm", {kDigit, kGpt2Expression}},
      {"llama-bpe",
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       false,
       true},
      {"qwen2",
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       true},
  };
  return *families;
}

}  // namespace

absl::Status SetFamily(absl::string_view name, TokenizerDefinition* definition) {
  for (const Family& family : Families()) {
    if (family.name != name) continue;
    for (const absl::string_view expression : family.expressions) {
      PreTokenizerStep step;
      step.expression = std::string(expression);
      definition->pre_tokenizer.push_back(step);
    }
    PreTokenizerStep bytes;
    bytes.kind = PreTokenizerStep::Kind::kByteLevel;
    definition->pre_tokenizer.push_back(bytes);
    if (family.nfc) definition->normalizer.push_back({NormalizerStep::Kind::kNfc, "", ""});
    std::get<BpeDefinition>(definition->model).ignore_merges = family.ignore_merges;
    return absl::OkStatus();
  }
  const std::string known = absl::StrJoin(
      Families(), ", ", [](std::string* out, const Family& family) { absl::StrAppend(out, family.name); });
  return absl::InvalidArgumentError(absl::StrCat("the pre-tokenizer '", name, "' is not known; known are ", known));
}

}  // namespace bowline
