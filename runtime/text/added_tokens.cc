#include "runtime/text/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0; }

bool IsWord(char32_t c) {
  const auto character = static_cast<UChar32>(c);
  return u_hasBinaryProperty(character, UCHAR_ALPHABETIC) || u_hasBinaryProperty(character, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(character) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

// The last character of `text`, which is not empty.
Utf8Step LastUtf8(absl::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return NextUtf8(text.substr(begin));
}

}  // namespace

void AddedTokens::Add(std::string content, AddedToken token) {
  if (content.empty()) return;
  uint32_t node = 0;
  for (const char c : content) {
    const auto [edge, inserted] =
        edges_.try_emplace(uint64_t{node} << 8 | static_cast<uint8_t>(c), static_cast<uint32_t>(token_of_node_.size()));
    if (inserted) token_of_node_.push_back(-1);
    node = edge->second;
  }
  first_bytes_[static_cast<uint8_t>(content[0])] = true;
  if (token_of_node_[node] >= 0) return;  // the first of equals
  token_of_node_[node] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

std::pair<const AddedToken*, size_t> AddedTokens::Match(absl::string_view text, size_t* steps) const {
  std::pair<const AddedToken*, size_t> longest = {nullptr, 0};
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    ++*steps;
    const auto edge = edges_.find(uint64_t{node} << 8 | static_cast<uint8_t>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (token_of_node_[node] >= 0) longest = {&tokens_[static_cast<size_t>(token_of_node_[node])], i + 1};
  }
  return longest;
}

absl::Status AddedTokens::Split(absl::string_view text, bool special,
                                absl::FunctionRef<absl::Status(int32_t id, absl::string_view part)> found) const {
  size_t done = 0;  // all before it was handed over
  constexpr size_t kFewBytes = 4096;
  const size_t most_steps = kStepsPerByte * std::max(text.size(), kFewBytes);
  size_t steps = 0;
  for (size_t at = 0; at < text.size();) {
    // Most bytes begin no token.
    if (!first_bytes_[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    const auto [token, size] = Match(text.substr(at), &steps);
    if (steps > most_steps) {
      return absl::InvalidArgumentError(absl::StrCat("the search for added tokens of the tokenizer takes more than ",
                                                     most_steps, " steps in a text of ", text.size(),
                                                     " bytes, which has long beginnings of them nearly everywhere"));
    }
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + size;
    at = end;
    if (token->special && !special) continue;
    if (token->single_word && ((begin > 0 && IsWord(LastUtf8(text.substr(0, begin)).code_point)) ||
                               (end < text.size() && IsWord(NextUtf8(text.substr(end)).code_point)))) {
      continue;
    }
    while (token->left_strip && begin > done) {
      const Utf8Step last = LastUtf8(text.substr(0, begin));
      if (!IsSpace(last.code_point)) break;
      begin -= last.size;
    }
    while (token->right_strip && end < text.size()) {
      const Utf8Step next = NextUtf8(text.substr(end));
      if (!IsSpace(next.code_point)) break;
      end += next.size;
    }
    if (done < begin) BOWLINE_RETURN_IF_ERROR(found(-1, text.substr(done, begin - done)));
    BOWLINE_RETURN_IF_ERROR(found(token->id, text.substr(begin, end - begin)));
    done = end;
  }
  if (done < text.size()) return found(-1, text.substr(done));
  return absl::OkStatus();
}

}  // namespace bowline
