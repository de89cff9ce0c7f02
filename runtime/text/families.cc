#include "runtime/text/families.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

struct Family {
  std::vector<absl::string_view> names;
  std::vector<absl::string_view> expressions;  // each splits the pieces of the one before
  bool nfc = false;
  bool ignore_merges = false;
};

constexpr char kLlama3Expression[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Expression[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Mistral's since Nemo.
constexpr char kTekkenExpression[] = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kDeepSeek3Expression[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// From tokenizer.json of the models.
const std::vector<Family>& Families() {
  static const auto* const families = new std::vector<Family>{
      {{"gpt-2"}, {kGpt2Expression}},
      {{"smollm"}, {kDigit, kGpt2Expression}},
      {{"llama-bpe", "llama3", "llama-v3"}, {kLlama3Expression}, false, true},
      {{"qwen2"}, {kQwen2Expression}, true},
      {{"deepseek-r1-qwen"}, {kQwen2Expression}},
      {{"tekken"}, {kTekkenExpression}, false, true},
      {{"deepseek-coder"},
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([\x{4e00}-\x{9fa5}\x{0800}-\x{4e00}\x{ac00}-\x{d7ff}]+)",
        kDigit}},
      {{"deepseek-v3"},
       {R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)", kDeepSeek3Expression}},
  };
  return *families;
}

}  // namespace

absl::Status SetFamily(absl::string_view name, TokenizerDefinition* definition) {
  for (const Family& family : Families()) {
    if (!absl::c_linear_search(family.names, name)) continue;
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
  const std::string known = absl::StrJoin(Families(), ", ", [](std::string* out, const Family& family) {
    absl::StrAppend(out, absl::StrJoin(family.names, ", "));
  });
  return absl::InvalidArgumentError(absl::StrCat("the pre-tokenizer '", name, "' is not known; known are ", known));
}

}  // namespace bowline
