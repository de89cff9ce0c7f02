#ifndef BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_
#define BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/data/dataset.h"
#include "runtime/train/data/sampler.h"
#include "runtime/train/token_ports.h"

namespace bowline {

// The mean loss of a data set under the present parameters, by entry `eval_step` with the inputs `tokens` and `labels`
// and the outputs `loss_sum` and `token_count`. Changes no state.
class Evaluator {
 public:
  // Takes the samples of `dataset` in order, in batches of the plan, of which the last one may be part of one: the
  // first `batches` of them; 0 for all. `session` and `dataset` outlive the evaluator. kFailedPrecondition when the
  // plan cannot evaluate; kInvalidArgument when the data set has fewer samples than asked, or none.
  static absl::StatusOr<Evaluator> Create(Session* session, const TokenDataset* dataset, int64_t batches = 0);

  // Fills the batch of a run on this rank, which takes as long as the disk of its data.
  using Fill = absl::FunctionRef<absl::Status()>;
  // Is asked before each run to fill its batch, and whether the run begins. All ranks of a run give the same answer.
  using GoesOn = absl::FunctionRef<absl::StatusOr<bool>(Fill fill)>;

  // Sum of losses over count of tokens, both accumulated in f64. Each sample counts once, so that the result depends on
  // the plan's batch by rounding alone, as long as the loss of a sample does not depend on those beside it. Nothing
  // when `goes_on` says no. No heap allocation unless it fails.
  absl::StatusOr<std::optional<double>> Evaluate(GoesOn goes_on);
  // The same, on one rank, to the end.
  absl::StatusOr<double> Evaluate();

  // Whole batches, and one more where samples remain.
  int64_t batches() const { return whole_batches_ + (tail_ > 0 ? 1 : 0); }
  int64_t tokens() const { return whole_batches_ * ports_.tokens() + tail_ * ports_.sequence(); }

 private:
  // The outputs of a run, or values computed from them.
  struct Sums {
    double loss = 0, tokens = 0;
    void Add(const Sums& other, double factor) {
      loss += factor * other.loss;
      tokens += factor * other.tokens;
    }
  };

  // Samples that do not fill a batch are repeated until they do, which every plan can run: the sums of that run are
  // those of the tail times how often it fits, and of its first samples, which came once more. These are subtracted by
  // two more runs, of them beside copies of one sample, and of copies alone. No sum is much larger than the wanted one,
  // so that nothing is lost by the subtraction.
  enum TailRun { kRepeated, kFirstOnes, kCopies };

  int64_t runs() const { return whole_batches_ + tail_runs_; }
  // The draw of a row of a run.
  int64_t DrawOf(int64_t run, int64_t row) const;
  absl::Status FillRows(int64_t run, int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const;
  // Has the batch of a run written, and begins it; nothing when `goes_on` says no.
  absl::StatusOr<std::optional<RunTicket>> Start(int64_t run, GoesOn goes_on);
  absl::StatusOr<Sums> ReadSums();
  // How often the sums of a run count.
  double FactorOf(int64_t run) const;

  Evaluator(Session* session, TokenPorts ports, Sampler sampler)
      : session_(session), ports_(std::move(ports)), sampler_(std::move(sampler)) {}

  Session* session_;
  TokenPorts ports_;
  Sampler sampler_;
  int64_t whole_batches_ = 0;
  int64_t tail_ = 0;  // samples behind the whole batches
  int64_t tail_runs_ = 0;
  int entry_ = 0;
  bool overlaps_ = false;
  TensorRef loss_sum_, token_count_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_
