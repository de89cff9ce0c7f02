#ifndef BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_
#define BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_

// A step of continuous batching over a paged cache, and the function that runs it.

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/status.h"

namespace bowline::serve {

// How a sequence's token is chosen. A top_k of 0 and a top_p of 1 limit nothing; a temperature of 0 is greedy.
struct SequenceSampling {
  float temperature = 1;
  int32_t top_k = 0;
  float top_p = 1;
  uint64_t seed = 0;
  int32_t top_logprobs = 0;  // number of most likely tokens to report besides the chosen one
};

// The sequences of a step side by side, one row per token. Row t, which is one of sequence r, has the position
// lengths[r] - (rows[r + 1] - rows[r]) + (t - rows[r]).
struct StepBatch {
  int64_t bucket = 0;           // T: rows that the entry computes; those behind rows.back() are padding
  std::vector<int32_t> tokens;  // [T]; padding has token 0
  // [R + 1]: where the rows of each sequence begin; starts at 0, never decreases. Unused sequences are at the end and
  // have no rows.
  std::vector<int32_t> rows;
  std::vector<int32_t> lengths;  // [R]: tokens of each sequence that the cache holds after this step; 0 for unused ones
  // [R, M]: the blocks of the cache that hold the sequence's tokens, in order, then 0. Block 0 is the null block, which
  // no sequence owns.
  std::vector<int32_t> blocks;
  // [R]: the last row of each sequence that gets a token in this step, from whose logits it is drawn; 0 for others
  std::vector<int32_t> sample;
  std::vector<SequenceSampling> sampling;  // [R]
  std::vector<bool> wants_token;           // [R]
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // log(softmax(logits)[token]), without temperature and limits
};

struct SampledToken {
  int32_t token = 0;  // -1: the logits are not finite
  float logprob = 0;
  std::vector<TokenLogprob> top = {};  // the `top_logprobs` most likely tokens, most likely first
};

// The error for a sequence whose SampledToken::token is -1.
inline absl::Status LogitsNotFiniteError() {
  return absl::InternalError(
      "the logits of a sequence are not finite: the weights are not finite, or a value exceeds the type that the plan "
      "computes in; check the weights, or compile with --dtype f32");
}

// Runs a step and returns an entry per sequence. Entries of sequences that want no token may be anything.
using StepFunction = std::function<absl::Status(const StepBatch& batch, std::vector<SampledToken>& sampled)>;

struct CacheShape {
  int64_t blocks = 0;            // including the null block
  int64_t block_tokens = 0;      // tokens that a block holds
  int64_t max_context = 0;       // the most tokens of a sequence; M = ceil(max_context / block_tokens)
  int64_t max_sequences = 0;     // R
  std::vector<int64_t> buckets;  // values of T that there are entries for, ascending
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_
