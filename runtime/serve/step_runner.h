#ifndef BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
#define BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_

// Runs the steps of a plan for serving: entries of kind Step, one per bucket of T tokens, for up to R sequences.
//
//   inputs   tokens i32 [T], rows i32 [R + 1], lengths i32 [R], blocks i32 [R, M], sample i32 [R]
//            temperature f32 [R], top_k i32 [R], top_p f32 [R], seeds i32 [R, 2], wanted i32 [R]
//   outputs  sampled i32 [R], logprobs f32 [R], likely i32 [R, L], likely_logprobs f32 [R, L]
//
// `sampled` has the tokens that graph.sample_tokens draws from the logits of the rows `sample`, at the positions
// `lengths`. The entry states the promises about rows, lengths and blocks (Sequences in plan.fbs). The limit of the
// port `tokens` is the size of the vocabulary.

#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/serve/step_batch.h"
#include "runtime/serve/step_group.h"

namespace bowline::serve {

class StepRunner {
 public:
  // Returns kFailedPrecondition if the plan has no entries of kind Step. `session`, whose parameters are loaded, and
  // `leader` outlive the runner. In a plan for several ranks the runner is on rank 0, and `leader` sends each step to
  // the other ranks; for a plan of one rank it is null.
  static absl::StatusOr<StepRunner> Create(Session* session, StepLeader* leader = nullptr);

  // Runs a step. Each sequence that wants a token gets one, drawn with random numbers from its seed and the token's
  // position; -1 if its logits are not finite. The batch has shape().max_sequences sequences; those with rows come
  // first.
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
    int64_t likely = 0;          // L: the most tokens that `likely` can list
    float most_temperature = 0;  // the limit of the port; 0: none
  };

  StepRunner(Session* session, StepLeader* leader) : session_(session), leader_(leader) {}
  absl::StatusOr<Step> FindStep(int entry);
  // Runs an entry on all ranks, this one included.
  absl::Status RunEntry(int entry, absl::Span<const StepInput> inputs);
  // Fills temperature_, top_k_, top_p_, seeds_ and wanted_ for the first sequences of the batch.
  void SetSampling(const Step& step, const StepBatch& batch);
  absl::Status ReadTokens(const Step& step, const StepBatch& batch, std::vector<SampledToken>& sampled);

  Session* session_;
  StepLeader* leader_;
  CacheShape shape_;
  int64_t vocabulary_ = 0;
  std::vector<Step> steps_;  // by tokens, ascending
  // Values that are written to ports, and values that are read from them.
  std::vector<float> temperature_, top_p_, logprobs_, likely_logprobs_;
  std::vector<int32_t> top_k_, seeds_, wanted_, tokens_, likely_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
