#ifndef BOWLINE_RUNTIME_SERVE_LOGPROBS_H_
#define BOWLINE_RUNTIME_SERVE_LOGPROBS_H_

// Log probabilities of tokens, as OpenAI's API writes them.

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/serve/api_request.h"
#include "runtime/serve/step_batch.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

// A token of an answer, and the offset of its text in the answer, in bytes and in code points.
struct ScoredToken {
  size_t begin = 0, letter = 0;
  SampledToken sampled;
};

// The number of code points of a UTF-8 text.
size_t CountLetters(absl::string_view text);

// The `logprobs` of a choice of /v1/chat/completions: an entry per token, with the token's bytes. The text of a token
// that is not valid UTF-8 lists its bytes: "bytes:\xe2\x82".
OrderedJson ChatLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens);
// The `logprobs` of a choice of /v1/completions: arrays with an entry per token. The most likely tokens of a place
// include the chosen one. `text_offset` counts code points of the answer.
OrderedJson CompletionLogprobs(const Tokenizer& tokenizer, absl::Span<const ScoredToken> tokens);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_LOGPROBS_H_
