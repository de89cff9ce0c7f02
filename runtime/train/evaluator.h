#ifndef BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_
#define BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/dataset.h"
#include "runtime/train/sampler.h"
#include "runtime/train/token_ports.h"

namespace bowline {

// The mean loss of a data set under the present parameters, by entry `eval_step` with the inputs `tokens` and `labels`
// and the outputs `loss_sum` and `token_count`. Changes no state.
class Evaluator {
 public:
  // Takes the samples of `dataset` in order, in whole batches of the plan: the first `batches` of them; 0 for all,
  // where samples that do not fill a batch at the end are left out. `session` and `dataset` outlive the evaluator.
  // kFailedPrecondition when the plan cannot evaluate; kInvalidArgument when the data set has fewer samples than asked.
  static absl::StatusOr<Evaluator> Create(Session* session, const TokenDataset* dataset, int64_t batches = 0);

  // Reads the first batch and nothing more.
  absl::Status CheckFirstBatch();

  // Sum of losses over count of tokens, both accumulated in f64. No heap allocation unless it fails.
  absl::StatusOr<double> Evaluate();

  int64_t batches() const { return batches_; }
  int64_t tokens() const { return batches_ * ports_.tokens(); }

 private:
  // Writes a batch and begins its run.
  absl::StatusOr<RunTicket> Start(int64_t batch);

  Evaluator(Session* session, TokenPorts ports, Sampler sampler)
      : session_(session), ports_(std::move(ports)), sampler_(std::move(sampler)) {}

  Session* session_;
  TokenPorts ports_;
  Sampler sampler_;
  int64_t batches_ = 0;
  int entry_ = 0;
  bool overlaps_ = false;
  TensorRef loss_sum_, token_count_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_
