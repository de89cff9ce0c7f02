#ifndef BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_
#define BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_

// A step of continuous batching over a paged cache, and the function that runs it.

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/status.h"

namespace bowline::serve {

// A top_k of 0 and a top_p of 1 limit nothing; a temperature of 0 is greedy.
struct SequenceSampling {
  float temperature = 1;
  int32_t top_k = 0;
  float top_p = 1;
  uint64_t seed = 0;
  int32_t top_logprobs = 0;  // most likely tokens that are wanted beside the chosen one
};

// Sequences side by side, one row a token. Row t of sequence r has the position
// lengths[r] - (rows[r + 1] - rows[r]) + (t - rows[r]).
struct StepBatch {
  int64_t bucket = 0;           // T: rows that the entry computes; those behind rows.back() are padding
  std::vector<int32_t> tokens;  // [T]; padding has token 0
  // [R + 1]: where the rows of each sequence begin; starts at 0, never decreases. Unused sequences are at the end and
  // have no rows.
  std::vector<int32_t> rows;
  std::vector<int32_t> lengths;  // [R]: tokens of each sequence that the cache holds after this step; 0 for unused ones
  // [R, M]: blocks of the cache that hold the sequence's tokens in order, then 0. Block 0 is null and belongs to
  // nobody.
  std::vector<int32_t> blocks;
  // [R]: the row whose logits are wanted, of each sequence that gets a token in this step (its last row); 0 for others
  std::vector<int32_t> sample;
  std::vector<SequenceSampling> sampling;  // [R]
  std::vector<bool> wants_token;           // [R]
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // log(softmax(logits)[token]), whatever temperature and limits are
};

struct SampledToken {
  int32_t token = 0;  // -1: the logits are not finite
  float logprob = 0;
  std::vector<TokenLogprob> top = {};  // the `top_logprobs` most likely ones, falling
};

// The error of a sequence without a token.
inline absl::Status LogitsNotFiniteError() {
  return absl::InternalError(
      "the logits of a sequence are not finite: its weights are, or some value is above what the plan computes in");
}

// Runs a step and gives one entry per sequence; of sequences that want no token, anything.
using StepFunction = std::function<absl::Status(const StepBatch& batch, std::vector<SampledToken>& sampled)>;

struct CacheShape {
  int64_t blocks = 0;            // with the null block
  int64_t block_tokens = 0;      // tokens that a block holds
  int64_t max_context = 0;       // tokens of a sequence; M = ceil(max_context / block_tokens)
  int64_t max_sequences = 0;     // R
  std::vector<int64_t> buckets;  // values of T that there are entries for, ascending
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_BATCH_H_
