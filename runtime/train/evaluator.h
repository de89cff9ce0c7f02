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

// Computes the mean loss of a dataset under the current parameters with the entry `eval_step`: inputs `tokens` and
// `labels`, outputs `loss_sum` and `token_count`. Changes no state.
class Evaluator {
 public:
  // Evaluates the first `batches` batches of `dataset` in order, or, for 0, all samples, of which the last may fill
  // only a part of a batch. `session` and `dataset` must outlive the evaluator. Returns kFailedPrecondition when the
  // plan cannot evaluate, and kInvalidArgument when the dataset has fewer samples than asked for, or none.
  static absl::StatusOr<Evaluator> Create(Session* session, const TokenDataset* dataset, int64_t batches = 0);

  // Writes the batch of a run into this rank's inputs. May wait for the disk that holds the data.
  using Fill = absl::FunctionRef<absl::Status()>;
  // Called before each run: calls `fill`, and returns whether the run begins. All ranks must return the same answer.
  using GoesOn = absl::FunctionRef<absl::StatusOr<bool>(Fill fill)>;

  // Returns the sum of losses divided by the number of tokens, both summed in f64, or nothing when `goes_on` returned
  // false. Each sample counts once. So the batch size affects only rounding, if the loss of a sample does not depend on
  // others in its batch. No heap allocation unless it fails.
  absl::StatusOr<std::optional<double>> Evaluate(GoesOn goes_on);
  // As above, for one rank, without a way to stop early.
  absl::StatusOr<double> Evaluate();

  // The number of full batches, plus one if samples remain.
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

  // Every plan runs full batches only, so the t remaining samples (the tail) are repeated until they fill one. Its sums
  // are those of the tail times the number of whole repetitions, plus those of the tail's first samples, which came
  // once more. Two further runs subtract the latter: first samples beside copies of one sample, and copies alone. No
  // sum is much larger than the result, so that subtraction loses no precision.
  enum TailRun { kRepeated, kFirstOnes, kCopies };

  int64_t runs() const { return whole_batches_ + tail_runs_; }
  // Returns the draw for a row of a run's batch.
  int64_t DrawOf(int64_t run, int64_t row) const;
  absl::Status FillRows(int64_t run, int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const;
  // Has `goes_on` fill the batch of a run, then starts the run; nothing when `goes_on` returned false.
  absl::StatusOr<std::optional<RunTicket>> Start(int64_t run, GoesOn goes_on);
  absl::StatusOr<Sums> ReadSums();
  // Returns the factor with which the sums of a run count in the result.
  double FactorOf(int64_t run) const;

  Evaluator(Session* session, TokenPorts ports, Sampler sampler)
      : session_(session), ports_(std::move(ports)), sampler_(std::move(sampler)) {}

  Session* session_;
  TokenPorts ports_;
  Sampler sampler_;
  int64_t whole_batches_ = 0;
  int64_t tail_ = 0;  // samples after the whole batches
  int64_t tail_runs_ = 0;
  int entry_ = 0;
  bool overlaps_ = false;
  TensorRef loss_sum_, token_count_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_EVALUATOR_H_
