#include "runtime/train/train_loop.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/train/checkpoint/checkpoint_saver.h"
#include "runtime/train/tensors/non_finite.h"

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
        " hold values that are not finite, or too large for this computation. Begin with other ones, compile the plan "
        "with --dtype f32 unless that is its type, or look on with --allow-non-finite"));
  }
  return NotFiniteError(absl::StrCat(
      "step ", step, ": the loss is ", result.loss, " and the norm of the gradient ", result.grad_norm,
      "; the parameters are spoiled from here on. Train with a lower learning rate or more warm-up, resume from a "
      "checkpoint before this step, or look on with --allow-non-finite"));
}

class TrainLoop {
 public:
  TrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator, MetricsLog* metrics,
            TrainObserver& observer, const std::atomic<bool>& stop, Agreement& agreement)
      : options_(options),
        trainer_(trainer),
        evaluator_(evaluator),
        metrics_(metrics),
        observer_(observer),
        stop_(stop),
        agreement_(agreement),
        saver_({.directory = options.save_directory,
                .keep = options.keep_checkpoints,
                .allows_non_finite = options.allow_non_finite,
                .on_saved = [this](const SavedCheckpoint& saved) { OnSaved(saved); },
                .on_note = [this](absl::string_view note) { observer_.OnNote(note); },
                .prepare = options.before_save},
               &agreement) {}

  absl::StatusOr<bool> Run() {
    last_saved_ = trainer_.steps_done();
    first_ = last_saved_ + 1;
    bool finishes = trainer_.steps_done() >= options_.steps;
    BOWLINE_RETURN_IF_ERROR(MeetForStep());
    evaluation_is_due_ = options_.begin_with_evaluation && evaluator_ != nullptr;
    if (!ending_ && evaluation_is_due_) {
      BOWLINE_RETURN_IF_ERROR(Evaluate());
      if (!ending_) BOWLINE_RETURN_IF_ERROR(MeetForStep());
    }
    while (!ending_ && !finishes) {
      BOWLINE_RETURN_IF_ERROR(Train());
      const int64_t step = trainer_.steps_done();
      finishes = step >= options_.steps;
      const bool evaluates =
          evaluator_ != nullptr && (IsTime(step, options_.eval_every) || (finishes && options_.eval_every == 0));
      evaluation_is_due_ |= evaluates;
      const bool saves = IsTime(step, options_.save_every) || finishes;
      // Evaluations may fail, and come behind the save.
      if (saves) BOWLINE_RETURN_IF_ERROR(Save(options_.saves_in_background && !finishes));
      if (evaluates && !ending_) BOWLINE_RETURN_IF_ERROR(Evaluate());
      // Both take long, and a user who wants to stop then need not wait for another step. A rank alone asks itself.
      const bool asks = evaluates || saves || agreement_.ranks() == 1;
      if (!finishes && !ending_ && asks) BOWLINE_RETURN_IF_ERROR(MeetForStep());
    }
    if (!is_saved_) BOWLINE_RETURN_IF_ERROR(Save(/*in_background=*/false));
    BOWLINE_RETURN_IF_ERROR(saver_.Finish());
    BOWLINE_RETURN_IF_ERROR(agreement_.AllOk(problem_));
    return finishes && !evaluation_is_due_;
  }

 private:
  // Keeps the first error that does not spoil the results: the run ends by it when the last step is saved.
  void Remember(const absl::Status& status) { problem_.Update(status); }

  // Reads data by `fill`, which may take its time. Then waits for all ranks, which are there if nothing went wrong in
  // the step on any of them, and asks whether one has to stop or has met a problem.
  absl::Status Meet(absl::FunctionRef<absl::Status()> fill) {
    const absl::StatusOr<bool> ending = agreement_.AnyOfAfter("reading data", [&] {
      Remember(fill());
      filled_ = Clock::now();
      return stop_.load() || !problem_.ok();
    });
    if (!ending.ok()) {
      return Annotate(ending.status(), absl::StrCat("between entries, before step ", trainer_.steps_done() + 1));
    }
    ending_ |= *ending;
    return saver_.Poll();
  }

  // The same with the data of the next step: unusable ones are known to all before one begins it.
  absl::Status MeetForStep() {
    return Meet([&] { return trainer_.steps_done() < options_.steps ? trainer_.FillNext() : absl::OkStatus(); });
  }

  absl::Status Train() {
    const auto start = Clock::now();
    BOWLINE_ASSIGN_OR_RETURN(const StepResult result, trainer_.Step([&](absl::FunctionRef<void()> fill) {
      return agreement_.AllOkAfter("reading data", [&] {
        fill();
        return absl::OkStatus();
      });
    }));
    const int64_t step = trainer_.steps_done();
    // A rank whose step failed has returned and does not meet the others. They fail here, before they report the step.
    BOWLINE_RETURN_IF_ERROR(MeetForStep());
    const double seconds = std::chrono::duration<double>(filled_ - start).count();
    is_saved_ = false;
    const double tokens_per_second = static_cast<double>(trainer_.tokens_per_step()) / seconds;
    if (metrics_ != nullptr) Remember(metrics_->WriteStep(step, result, tokens_per_second, seconds * 1e3));
    observer_.OnStep(step, result, tokens_per_second);
    if (options_.allow_non_finite) return absl::OkStatus();
    const absl::Status finite = CheckFinite(step, result, step == first_ ? options_.begin : "");
    if (finite.ok()) return finite;
    FinishSave();
    // All ranks have this error, and end when rank 0 has written the step: a rank that is gone ends the others.
    [[maybe_unused]] const absl::Status met = agreement_.AllOk(finite);
    return finite;
  }

  // Waits for the save of an earlier step before an error ends the loop that all ranks have. A rank that ended first
  // would have the others ended while they write.
  void FinishSave() {
    const absl::Status saved = saver_.Finish();
    if (!saved.ok()) observer_.OnNote(saved.message());
  }

  absl::Status Evaluate() {
    const int64_t step = trainer_.steps_done();
    const std::string where = absl::StrCat("evaluation after step ", step);
    const absl::StatusOr<std::optional<double>> loss =
        evaluator_->Evaluate([&](Evaluator::Fill fill) -> absl::StatusOr<bool> {
          BOWLINE_RETURN_IF_ERROR(Meet([&] { return Annotate(fill(), where); }));
          return !ending_;
        });
    trainer_.ForgetInputs();
    // An evaluation changes no state, so that a rank alone can save. Others may wait for this rank in a communication.
    if (!loss.ok() && agreement_.ranks() > 1) return Annotate(loss.status(), where);
    if (!loss.ok()) {
      Remember(Annotate(loss.status(), where));
    } else if (loss->has_value()) {
      ReportEvaluation(step, where, **loss);
    }
    return absl::OkStatus();
  }

  void ReportEvaluation(int64_t step, const std::string& where, double loss) {
    evaluation_is_due_ = false;
    if (metrics_ != nullptr) Remember(metrics_->WriteEvaluation(step, loss));
    observer_.OnEvaluation(step, loss);
    if (options_.allow_non_finite || std::isfinite(loss)) return;
    Remember(NotFiniteError(absl::StrCat(where, ": the loss is ", loss,
                                         "; train with a lower learning rate or more warm-up from a checkpoint before "
                                         "this step, or look on with --allow-non-finite")));
  }

  absl::Status Save(bool in_background) {
    is_saved_ = true;
    if (options_.save_directory.empty()) return absl::OkStatus();
    if (metrics_ != nullptr) trainer_.SetUnwrittenMetrics(metrics_->unwritten());
    absl::Status saved = saver_.Save(trainer_.Content(), in_background);
    if (IsNotFinite(saved)) {
      return NotFiniteError(absl::StrCat(
          saved.message(), "; it became so after step ", last_saved_,
          ". Go on from a checkpoint before it with a lower learning rate, or write it with --allow-non-finite"));
    }
    if (saved.ok()) last_saved_ = trainer_.steps_done();
    return saved;
  }

  void OnSaved(const SavedCheckpoint& saved) {
    if (metrics_ != nullptr) Remember(metrics_->WriteSave(saved));
    observer_.OnSave(saved.step, saved.path);
  }

  const TrainLoopOptions& options_;
  Trainer& trainer_;
  Evaluator* evaluator_;
  MetricsLog* metrics_;
  TrainObserver& observer_;
  const std::atomic<bool>& stop_;
  Agreement& agreement_;
  int64_t first_ = 0;
  int64_t last_saved_ = 0;          // the step of the last save, or with which the run began
  bool is_saved_ = true;            // nothing has changed since the last save
  bool ending_ = false;             // any rank has to stop, or has a problem
  bool evaluation_is_due_ = false;  // and not done, or cut short
  absl::Status problem_;            // of this rank
  Clock::time_point filled_;        // when the last data were read
  CheckpointSaver saver_;           // after the members that its callbacks use
};

}  // namespace

absl::StatusOr<bool> RunTrainLoop(const TrainLoopOptions& options, Trainer& trainer, Evaluator* evaluator,
                                  MetricsLog* metrics, TrainObserver& observer, const std::atomic<bool>& stop,
                                  Agreement* agreement) {
  Agreement alone;
  return TrainLoop(options, trainer, evaluator, metrics, observer, stop, agreement == nullptr ? alone : *agreement)
      .Run();
}

}  // namespace bowline
