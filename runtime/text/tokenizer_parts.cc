#include "runtime/text/tokenizer_parts.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/text/families.h"

namespace bowline {
namespace {

constexpr char kMetaspace[] = "\xE2\x96\x81";  // U+2581

// tokenizer.ggml.token_type.
enum TokenType : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

absl::Status SetMerges(const std::vector<std::string>& merges, BpeDefinition* bpe) {
  bpe->merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    // The first of two is not empty, and may be a space in no byte-level vocabulary.
    const size_t space = merges[i].find(' ', 1);
    if (space == std::string::npos || space + 1 == merges[i].size() ||
        merges[i].find(' ', space + 1) != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("merge ", i, ", '", absl::Utf8SafeCEscape(merges[i]),
                                                     "', is not two tokens with a space between"));
    }
    bpe->merges.emplace_back(merges[i].substr(0, space), merges[i].substr(space + 1));
  }
  return absl::OkStatus();
}

void SetScores(const TokenizerParts& parts, TokenizerDefinition* definition) {
  ScoreDefinition model{parts.scores, std::vector<bool>(parts.tokens.size(), true), parts.unknown};
  for (size_t id = 0; id < parts.types.size(); ++id) {
    model.mergeable[id] = parts.types[id] == kNormal || parts.types[id] == kUserDefined;
  }
  definition->model = std::move(model);
  if (parts.add_space_prefix) definition->normalizer.push_back({NormalizerStep::Kind::kPrepend, "", kMetaspace});
  definition->normalizer.push_back({NormalizerStep::Kind::kReplace, " ", kMetaspace});
  definition->decoder.push_back({DecoderStep::Kind::kReplace, kMetaspace, " "});
  definition->decoder.push_back({DecoderStep::Kind::kByteFallback, "", ""});
  if (parts.add_space_prefix) definition->decoder.push_back({DecoderStep::Kind::kStripStart, "", "", 1});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerParts parts) {
  if (!parts.types.empty() && parts.types.size() != parts.tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", parts.types.size(), " types for ", parts.tokens.size(),
                                                   " tokens; each token needs one"));
  }
  TokenizerDefinition definition;
  if (parts.model == "gpt2") {
    BpeDefinition bpe;
    BOWLINE_RETURN_IF_ERROR(SetMerges(parts.merges, &bpe));
    definition.model = std::move(bpe);
    BOWLINE_RETURN_IF_ERROR(SetFamily(parts.pre_tokenizer, &definition));
    definition.decoder.push_back({DecoderStep::Kind::kByteLevel, "", ""});
  } else if (parts.model == "llama") {
    SetScores(parts, &definition);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer is of the model '", parts.model, "'; known are gpt2 and llama"));
  }
  for (size_t id = 0; id < parts.types.size(); ++id) {
    if (parts.types[id] < kNormal || parts.types[id] > kByte) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " has the type ", parts.types[id], "; known are 1 to 6"));
    }
    if (parts.types[id] != kControl && parts.types[id] != kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = parts.tokens[id];
    token.special = parts.types[id] == kControl;
    definition.added.push_back(std::move(token));
  }
  if (parts.add_begin && parts.begin < 0) return absl::InvalidArgumentError("there is no begin token to add");
  if (parts.add_end && parts.end < 0) return absl::InvalidArgumentError("there is no end token to add");
  if (parts.add_begin) definition.prefix.push_back(parts.begin);
  if (parts.add_end) definition.suffix.push_back(parts.end);
  definition.begin = parts.begin;
  definition.end = parts.end;
  definition.pad = parts.pad;
  definition.tokens = std::move(parts.tokens);
  return Tokenizer::Create(std::move(definition));
}

}  // namespace bowline
