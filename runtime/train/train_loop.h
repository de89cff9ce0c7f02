#ifndef BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_
#define BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/metrics_log.h"
#include "runtime/train/trainer.h"

namespace bowline {

struct TrainLoopOptions {
  int64_t steps = 0;       // last step of the run, counted from its first start
  int64_t eval_every = 0;  // in steps; 0: only after the last step
  std::string save_directory = {};
  // Called before each save; an error on any rank ends the loop. May be null.
  std::function<absl::Status()> before_save = nullptr;
  int64_t save_every = 0;  // in steps; 0: only after the last step
  // Continue with steps while a copy of the states is written, if memory has room for the copy.
  bool saves_in_background = false;
  int64_t keep_checkpoints = 0;   // most checkpoints of the run to keep in the directory; 0: all
  bool allow_non_finite = false;  // continue with an infinite or NaN loss or gradient, and save such states
  // Evaluate before the first step, because the resumed run ended before it evaluated its last step.
  bool begin_with_evaluation = false;
  std::string begin = {};  // source of the initial parameters, for messages
};

// Receives each event after metrics and checkpoints have recorded it.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStep(int64_t step, const StepResult& result, double tokens_per_second) {}
  virtual void OnEvaluation(int64_t step, double loss) {}
  virtual void OnSave(int64_t step, const std::string& path) {}
  // Receives a problem despite which the run continues.
  virtual void OnNote(absl::string_view note) {}
};

// Runs a trainer up to options.steps. Each step trains and writes metrics once all ranks have trained. If due, it then
// saves a checkpoint and after that evaluates, so that a failing evaluation loses no step. When `stop` becomes true,
// the loop finishes the step but cuts an evaluation short, saves a checkpoint if it has a directory, and ends with OK.
// Unusable data, metrics that cannot be written and a failing evaluation also end the loop in this way, but with their
// error. All ranks call this with the same options and an `agreement`. A `stop` or an error on one rank ends all ranks
// after the same step, and they save together.
//
// `evaluator` and `metrics` may be null. Returns whether all steps and evaluations are done. Returns an error for which
// IsNotFinite (non_finite.h) holds, naming the step, when a loss or the gradient is infinite or NaN, and kInternal for
// a fault at run time. Other errors name their origin.
absl::StatusOr<bool> RunTrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator,
                                  MetricsLog* metrics, TrainObserver& observer, const std::atomic<bool>& stop,
                                  Agreement* agreement = nullptr);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_
