#include "runtime/text/vocabulary.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace bowline {

absl::StatusOr<Vocabulary> Vocabulary::Create(std::vector<std::string> tokens) {
  if (tokens.empty()) return absl::InvalidArgumentError("the vocabulary has no tokens");
  if (tokens.size() > kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has ", tokens.size(), " ids; the limit is ", kMaxTokens));
  }
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(tokens);
  vocabulary.ids_.reserve(vocabulary.tokens_.size());
  for (size_t id = 0; id < vocabulary.tokens_.size(); ++id) {
    const std::string& token = vocabulary.tokens_[id];
    if (token.empty()) continue;
    const auto [found, inserted] = vocabulary.ids_.try_emplace(token, static_cast<int32_t>(id));
    if (!inserted) {
      return absl::InvalidArgumentError(
          absl::StrCat("the token '", absl::Utf8SafeCEscape(token), "' has the ids ", found->second, " and ", id));
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.byte_tokens_[static_cast<size_t>(byte)] = vocabulary.Find(absl::StrFormat("<0x%02X>", byte));
  }
  return vocabulary;
}

int ByteOfToken(absl::string_view token) {
  const auto hex = [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c))
               ? c - '0'
               : absl::ascii_toupper(static_cast<unsigned char>(c)) - 'A' + 10;
  };
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>' ||
      !absl::ascii_isxdigit(static_cast<unsigned char>(token[3])) ||
      !absl::ascii_isxdigit(static_cast<unsigned char>(token[4]))) {
    return -1;
  }
  return hex(token[3]) * 16 + hex(token[4]);
}

}  // namespace bowline
