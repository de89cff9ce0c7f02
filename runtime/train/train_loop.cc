#include "runtime/train/train_loop.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/train/checkpoint.h"

namespace bowline {
namespace {

using Clock = std::chrono::steady_clock;

bool IsTime(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

// `begin`: where the parameters are from with which the step was computed, if none before it changed them.
absl::Status CheckFinite(int64_t step, const StepResult& result, const std::string& begin) {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return absl::OkStatus();
  if (!begin.empty()) {
    return NotFiniteError(absl::StrCat(
        "step ", step, ": the loss is ", result.loss, " and the norm of the gradient ", result.grad_norm,
        ", before anything was trained: ", begin,
        " hold values that are not finite, or too large for what the plan "
        "computes in. Begin with other ones, compile the plan with --dtype f32, or look on with --allow-non-finite"));
  }
  return NotFiniteError(absl::StrCat(
      "step ", step, ": the loss is ", result.loss, " and the norm of the gradient ", result.grad_norm,
      "; the parameters are spoiled from here on. Train with a lower learning rate or more warm-up, resume from a "
      "checkpoint before this step, or look on with --allow-non-finite"));
}

class TrainLoop {
 public:
  TrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator, MetricsLog* metrics,
            TrainObserver& observer, Agreement& agreement)
      : options_(options),
        trainer_(trainer),
        evaluator_(evaluator),
        metrics_(metrics),
        observer_(observer),
        agreement_(agreement) {}

  absl::Status Run(const std::atomic<bool>& stop) {
    bool saved = true;  // nothing has changed yet
    first_ = trainer_.steps_done() + 1;
    BOWLINE_RETURN_IF_ERROR(Meet(stop));
    while (!stopping_ && trainer_.steps_done() < options_.steps) {
      BOWLINE_RETURN_IF_ERROR(Train(stop));
      const int64_t step = trainer_.steps_done();
      const bool last = step == options_.steps;
      const bool evaluates = IsTime(step, options_.eval_every) || (last && options_.eval_every == 0);
      if (evaluates) BOWLINE_RETURN_IF_ERROR(Evaluate());
      saved = IsTime(step, options_.save_every);
      if (saved) BOWLINE_RETURN_IF_ERROR(Save());
      // Both take long, and whoever wants to stop meanwhile need not wait for another step. A rank alone asks itself.
      const bool asks = evaluates || saved || agreement_.ranks() == 1;
      if (!last && asks) BOWLINE_RETURN_IF_ERROR(Meet(stop));
    }
    return saved ? absl::OkStatus() : Save();
  }

 private:
  // Waits for all ranks, which are there if nothing went wrong on any of them, and asks whether one has to stop.
  absl::Status Meet(const std::atomic<bool>& stop) {
    const absl::StatusOr<bool> stopping = agreement_.AnyOf(stop.load());
    if (!stopping.ok()) {
      return Annotate(stopping.status(), absl::StrCat("between entries, before step ", trainer_.steps_done() + 1));
    }
    stopping_ |= *stopping;
    return absl::OkStatus();
  }

  absl::Status Train(const std::atomic<bool>& stop) {
    const auto start = Clock::now();
    BOWLINE_ASSIGN_OR_RETURN(const StepResult result, trainer_.Step());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    // A rank whose step failed, for example because its data are wrong, has returned and does not meet the others. They
    // fail here, before they report the step.
    BOWLINE_RETURN_IF_ERROR(Meet(stop));
    const double tokens_per_second = static_cast<double>(trainer_.tokens_per_step()) / seconds;
    const int64_t step = trainer_.steps_done();
    if (metrics_ != nullptr) {
      BOWLINE_RETURN_IF_ERROR(metrics_->WriteStep(step, result, tokens_per_second, seconds * 1e3));
    }
    observer_.OnStep(step, result, tokens_per_second);
    if (options_.allow_non_finite) return absl::OkStatus();
    return CheckFinite(step, result, step == first_ ? options_.begin : "");
  }

  absl::Status Evaluate() {
    if (evaluator_ == nullptr) return absl::OkStatus();
    const int64_t step = trainer_.steps_done();
    absl::StatusOr<double> loss = evaluator_->Evaluate();
    if (!loss.ok()) return Annotate(loss.status(), absl::StrCat("evaluation after step ", step));
    if (metrics_ != nullptr) BOWLINE_RETURN_IF_ERROR(metrics_->WriteEvaluation(step, *loss));
    observer_.OnEvaluation(step, *loss);
    return absl::OkStatus();
  }

  absl::Status Save() {
    if (options_.save_directory.empty()) return absl::OkStatus();
    BOWLINE_ASSIGN_OR_RETURN(const std::string path, trainer_.Save(options_.save_directory, &agreement_));
    if (options_.keep_checkpoints > 0 && agreement_.rank() == 0) {
      BOWLINE_RETURN_IF_ERROR(DeleteOldCheckpoints(options_.save_directory, options_.keep_checkpoints));
    }
    observer_.OnSave(trainer_.steps_done(), path);
    return absl::OkStatus();
  }

  const TrainLoopOptions& options_;
  Trainer& trainer_;
  Evaluator* evaluator_;
  MetricsLog* metrics_;
  TrainObserver& observer_;
  Agreement& agreement_;
  int64_t first_ = 0;
  bool stopping_ = false;  // any rank has to
};

}  // namespace

absl::Status RunTrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator, MetricsLog* metrics,
                          TrainObserver& observer, const std::atomic<bool>& stop, Agreement* agreement) {
  Agreement alone;
  return TrainLoop(options, trainer, evaluator, metrics, observer, agreement == nullptr ? alone : *agreement).Run(stop);
}

}  // namespace bowline
