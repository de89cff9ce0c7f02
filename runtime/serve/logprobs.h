#ifndef BOWLINE_RUNTIME_SERVE_LOGPROBS_H_
#define BOWLINE_RUNTIME_SERVE_LOGPROBS_H_

// Logarithms of tokens' probabilities, as OpenAI's API writes them.

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/serve/api_request.h"
#include "runtime/serve/step_batch.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

// A token of an answer, and where its text begins in it, in bytes and in letters.
struct ScoredToken {
  size_t begin = 0, letter = 0;
  SampledToken sampled;
};

// Code points of UTF-8.
size_t CountLetters(absl::string_view text);

// `logprobs` of choices of /v1/chat/completions: an entry a token, with its bytes. The text of a token that is no UTF-8
// is that of its bytes, as "bytes:\xe2\x82".
OrderedJson ChatLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens);
// Of /v1/completions: arrays with an entry a token. The likely tokens have the chosen one among them; `text_offset`
// counts letters of the answer.
OrderedJson CompletionLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_LOGPROBS_H_
