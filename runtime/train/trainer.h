#ifndef BOWLINE_RUNTIME_TRAIN_TRAINER_H_
#define BOWLINE_RUNTIME_TRAIN_TRAINER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"
#include "runtime/executor/session.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/parallel_save.h"
#include "runtime/train/data/dataset.h"
#include "runtime/train/data/sampler.h"
#include "runtime/train/recipe.h"
#include "runtime/train/token_ports.h"

namespace bowline {

// The results of one step. Loss and gradient norm are computed with the parameters before the update.
struct StepResult {
  float loss = 0;       // mean over all tokens of the step
  float grad_norm = 0;  // over all parameters, before clipping
  float lr = 0;         // the learning rate that the step used
  // Seconds that the host needed to issue the step's commands (Session::IssueSeconds). Absent for devices that compute
  // while the host issues.
  std::optional<double> host_seconds = {};
};

// Runs the steps of a training plan with its entry of kind TrainStep: inputs `tokens` and `labels`, outputs `loss`,
// `grad_norm` and `lr`.
class Trainer {
 public:
  // The plan's seed determines the data order and all random numbers. `session` and `dataset` must outlive the trainer.
  // Returns kFailedPrecondition when the plan is no training plan, and kInvalidArgument when the dataset is too short.
  static absl::StatusOr<Trainer> Create(Session* session, const TokenDataset* dataset, DataOrder order);

  // Starts a new run: initializes parameters and optimizer state. The caller may load weights afterwards.
  absl::Status Initialize();

  // Continues the run that saved `checkpoint`, with any ranks. Returns kFailedPrecondition,
  // before any change, when the model or a setting differs: the plan's recipe, "order", "seed",
  // "data", "batch" and "seq". Settings named in `allowed` may differ; changes() then lists
  // them. If order, seed, data or the length of sequences differ, draws restart at 0. Returns
  // kDataLoss when the checkpoint contradicts itself. `check`, which may be null, visits all
  // saved values.
  absl::Status Resume(const Checkpoint& checkpoint, absl::Span<const std::string> allowed = {},
                      FiniteCheck* check = nullptr);
  const std::vector<SettingChange>& changes() const { return changes_; }

  // The random text that names this run in checkpoints. Resume replaces it by that of the checkpoint, if it has one.
  void SetRun(std::string run) { run_ = std::move(run); }
  const std::string& run() const { return run_; }

  // Lines of metrics that could not be written; checkpoints store them. Resume sets them from its checkpoint.
  void SetUnwrittenMetrics(std::vector<std::string> lines) { unwritten_metrics_ = std::move(lines); }
  const std::vector<std::string>& unwritten_metrics() const { return unwritten_metrics_; }

  // Writes the data of the next step into the plan's inputs, unless they hold it already. Run on all ranks before Step,
  // it lets them agree on unusable data before any of them begins the step.
  absl::Status FillNext();

  // Call when another entry of the plan has run since FillNext, because that may have overwritten the inputs.
  void ForgetInputs() {
    if (!fills_ahead_) filled_.reset();
  }

  // Calls `fill`, which writes the inputs of the next step while the device computes, and returns when all ranks have
  // called theirs. If one rank passes this to Step, all ranks must.
  using FillTogether = absl::FunctionRef<absl::Status(absl::FunctionRef<void()> fill)>;

  // Runs one step. No heap allocation unless it fails. If the run itself fails, the state may be updated in part.
  absl::StatusOr<StepResult> Step(FillTogether fill_together);
  // As above, for runs in which no other rank waits for this rank's data.
  absl::StatusOr<StepResult> Step();

  // Returns everything that Resume needs. The tensors refer to the session's memory, which steps change.
  CheckpointContent Content() const;

  // Saves Content() as a checkpoint (checkpoint.h) and returns its path. In a run of several ranks all call it, with
  // their agreement.
  absl::StatusOr<std::string> Save(const std::string& directory, Agreement* agreement = nullptr) const;

  // Sets the type in which checkpoints store f32 parameters: f32 (the default) or bf16, as readers of weights use it.
  // With bf16, the optimizer's file also has the exact bits, for Resume.
  void SetSavedType(ElementType type) { saved_type_ = type; }

  int64_t steps_done() const { return step_; }
  int64_t tokens_per_step() const { return ports_.tokens(); }
  const Sampler& sampler() const { return sampler_; }
  Session& session() const { return *session_; }

 private:
  Trainer(Session* session, const TokenDataset* dataset, TokenPorts ports, Sampler sampler)
      : session_(session), dataset_(dataset), ports_(std::move(ports)), sampler_(std::move(sampler)) {}

  struct Setting;
  // Settings outside the recipe, in the checkpoint and in this run.
  std::vector<Setting> SettingsBeside(const TrainerState& state) const;
  // The names of these and of all settings in both recipes.
  std::vector<std::string> SettingNames(const TrainerState& state) const;

  // Runs the step whose inputs are written. If the plan allows two runs in flight, writes the inputs of the next step
  // while the device computes.
  absl::Status Run(FillTogether fill_together);

  Session* session_;
  const TokenDataset* dataset_;
  TokenPorts ports_;
  Sampler sampler_;
  std::string data_digest_;
  std::string run_;
  std::vector<std::string> unwritten_metrics_;
  ElementType saved_type_ = ElementType::kF32;
  std::vector<SettingChange> changes_;
  int entry_ = 0;
  bool fills_ahead_ = false;
  std::optional<int64_t> filled_;  // first draw of the batch written for the next step
  TensorRef loss_, grad_norm_, lr_;
  int64_t step_ = 0;
  int64_t next_draw_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TRAINER_H_
