#include "runtime/serve/logprobs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/text/utf8.h"

namespace bowline::serve {
namespace {

// JSON has no infinity; OpenAI's API says this of tokens that are as good as impossible.
double Finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

std::string TextOf(const std::string& bytes) {
  if (FindInvalidUtf8(bytes) == absl::string_view::npos) return bytes;
  std::string text = "bytes:";
  for (const char byte : bytes) absl::StrAppend(&text, "\\x", absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
  return text;
}

OrderedJson ChatEntry(const Tokenizer& tokenizer, int32_t token, float logprob) {
  const std::string bytes = tokenizer.Bytes(token);
  OrderedJson numbers = OrderedJson::array();
  for (const char byte : bytes) numbers.push_back(static_cast<uint8_t>(byte));
  return {{"token", TextOf(bytes)}, {"logprob", Finite(logprob)}, {"bytes", std::move(numbers)}};
}

}  // namespace

size_t CountLetters(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }));
}

OrderedJson ChatLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens) {
  OrderedJson content = OrderedJson::array();
  for (const ScoredToken& token : tokens) {
    OrderedJson entry = ChatEntry(tokenizer, token.sampled.token, token.sampled.logprob);
    OrderedJson top = OrderedJson::array();
    for (const TokenLogprob& likely : token.sampled.top)
      top.push_back(ChatEntry(tokenizer, likely.token, likely.logprob));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

OrderedJson CompletionLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens) {
  OrderedJson texts = OrderedJson::array(), logprobs = OrderedJson::array(), tops = OrderedJson::array(),
              offsets = OrderedJson::array();
  for (const ScoredToken& token : tokens) {
    const std::string text = TextOf(tokenizer.Bytes(token.sampled.token));
    OrderedJson top = OrderedJson::object();
    for (const TokenLogprob& likely : token.sampled.top)
      top[TextOf(tokenizer.Bytes(likely.token))] = Finite(likely.logprob);
    top[text] = Finite(token.sampled.logprob);
    texts.push_back(text);
    logprobs.push_back(Finite(token.sampled.logprob));
    tops.push_back(std::move(top));
    offsets.push_back(token.letter);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace bowline::serve
