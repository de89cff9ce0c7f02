#ifndef BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_
#define BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/agreement.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/metrics_log.h"
#include "runtime/train/trainer.h"

namespace bowline {

struct TrainLoopOptions {
  int64_t steps = 0;       // the run ends after this step, counted from its very first
  int64_t eval_every = 0;  // in steps; 0: once, after the last step
  std::string save_directory = {};
  // Is called before each save; an error of any rank ends the loop. May be null.
  std::function<absl::Status()> before_save = nullptr;
  int64_t save_every = 0;  // in steps; 0: after the last step alone
  // Steps go on while a copy of the states is written, where memory has room for one.
  bool saves_in_background = false;
  int64_t keep_checkpoints = 0;   // delete older ones of the directory once there are more; 0: keep all
  bool allow_non_finite = false;  // go on when loss or gradient are infinite or NaN, and save states that are
  // Evaluate before the first step: the run that is resumed ended before the evaluation of its last step did.
  bool begin_with_evaluation = false;
  std::string begin = {};  // where the parameters that the run begins with are from, for messages
};

// Receives each event after it is in metrics and on disk.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStep(int64_t step, const StepResult& result, double tokens_per_second) {}
  virtual void OnEvaluation(int64_t step, double loss) {}
  virtual void OnSave(int64_t step, const std::string& path) {}
  // Something that was not done, and without which the run goes on.
  virtual void OnNote(absl::string_view note) {}
};

// Runs a trainer up to options.steps. In each step: train, metrics when all ranks have trained, the checkpoint if it is
// time, then the evaluation if it is time, so that nothing that fails in an evaluation costs a step. When `stop`
// becomes true the step is finished, a checkpoint saved if there is a directory for it, and the loop ends without an
// error; it cuts an evaluation short. Data that are unusable, metrics that cannot be written and a failing evaluation
// end the loop likewise, and then with their error. Every rank of a run calls this with the same options and an
// `agreement`: `stop` or an error on any of them ends all after the same step, and they save together.
//
// `evaluator` and `metrics` may be null. Returns whether all steps and evaluations are done. IsNotFinite
// (non_finite.h), naming the step, when a loss or the gradient is not finite; kInternal for a fault at run time. Other
// errors name their origin.
absl::StatusOr<bool> RunTrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator,
                                  MetricsLog* metrics, TrainObserver& observer, const std::atomic<bool>& stop,
                                  Agreement* agreement = nullptr);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TRAIN_LOOP_H_
