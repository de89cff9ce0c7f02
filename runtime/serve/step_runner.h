#ifndef BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
#define BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_

// Steps of a plan for serving: entries of kind Step, one for each bucket of T tokens and up to R sequences.
//
//   inputs   tokens i32 [T], rows i32 [R + 1], lengths i32 [R], blocks i32 [R, M], sample i32 [R]
//            temperature f32 [R], top_k i32 [R], top_p f32 [R], seeds i32 [R, 2], wanted i32 [R]
//   outputs  sampled i32 [R], logprobs f32 [R], likely i32 [R, L], likely_logprobs f32 [R, L]
//
// Tokens are those that graph.sample_tokens draws from the logits of the rows `sample`, at the positions `lengths`. The
// entry states the promises about rows, lengths and blocks (Sequences in plan.fbs), and the limit of `tokens` is the
// vocabulary.

#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/serve/step_batch.h"
#include "runtime/serve/step_group.h"

namespace bowline::serve {

class StepRunner {
 public:
  // kFailedPrecondition where the plan has no such entries. `session`, whose parameters are loaded, and `leader`
  // outlive the runner. Of a plan for several ranks this is rank 0, and its leader sends each step to the others; null
  // for a plan of one rank.
  static absl::StatusOr<StepRunner> Create(Session* session, StepLeader* leader = nullptr);

  // Runs a step, which gives a token to each sequence that wants one, with random numbers of its seed and the token's
  // position: -1 where its logits are not finite. The batch has as many sequences as the cache's shape says, of which
  // those with rows come first.
  absl::Status Run(const StepBatch& batch, std::vector<SampledToken>& sampled);

  const CacheShape& shape() const { return shape_; }
  int64_t vocabulary() const { return vocabulary_; }

 private:
  struct Step {
    int entry = 0;
    int64_t tokens = 0, sequences = 0;
    TensorRef tokens_port, rows_port, lengths_port, blocks_port, sample_port;
    TensorRef temperature_port, top_k_port, top_p_port, seeds_port, wanted_port;
    TensorRef sampled_port, logprobs_port, likely_port, likely_logprobs_port;
    int64_t likely = 0;          // L: most likely tokens that it gives, at most
    float most_temperature = 0;  // that the port takes
  };

  StepRunner(Session* session, StepLeader* leader) : session_(session), leader_(leader) {}
  absl::StatusOr<Step> FindStep(int entry);
  // Runs an entry on all ranks.
  absl::Status RunEntry(int entry, absl::Span<const StepInput> inputs);
  // Says in vectors of this which tokens are wanted of the first sequences of the batch.
  void SetSampling(const Step& step, const StepBatch& batch);
  absl::Status ReadTokens(const Step& step, const StepBatch& batch, std::vector<SampledToken>& sampled);

  Session* session_;
  StepLeader* leader_;
  CacheShape shape_;
  int64_t vocabulary_ = 0;
  std::vector<Step> steps_;  // by tokens, ascending
  // The values that are written to ports and read from them.
  std::vector<float> temperature_, top_p_, logprobs_, likely_logprobs_;
  std::vector<int32_t> top_k_, seeds_, wanted_, tokens_, likely_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
