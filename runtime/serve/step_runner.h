#ifndef BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
#define BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_

// Steps of a plan for serving: entries of kind Step, one for each bucket of T tokens and up to R sequences.
//
//   inputs   tokens i32 [T], rows i32 [R + 1], lengths i32 [R], blocks i32 [R, M], sample i32 [R]
//   output   logits f32 [R, V], those of the rows `sample`
//
// The entry says what is promised of rows, lengths and blocks (Sequences in plan.fbs).

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

  // Runs a step and picks a token for each sequence that wants one, with random numbers of its seed and the token's
  // position (runtime/train/token_sampling.h). The batch has as many sequences as the cache's shape says, of which
  // those with rows come first. kInternal for logits that are no numbers.
  absl::Status Run(const StepBatch& batch, std::vector<SampledToken>& sampled);

  const CacheShape& shape() const { return shape_; }
  int64_t vocabulary() const { return vocabulary_; }

 private:
  struct Step {
    int entry = 0;
    int64_t tokens = 0, sequences = 0;
    TensorRef tokens_port, rows_port, lengths_port, blocks_port, sample_port, logits_port;
  };

  StepRunner(Session* session, StepLeader* leader) : session_(session), leader_(leader) {}
  absl::StatusOr<Step> FindStep(int entry);
  // Runs an entry on all ranks.
  absl::Status RunEntry(int entry, absl::Span<const StepInput> inputs);

  Session* session_;
  StepLeader* leader_;
  CacheShape shape_;
  int64_t vocabulary_ = 0;
  std::vector<Step> steps_;  // by tokens, ascending
  std::vector<float> logits_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_RUNNER_H_
