#ifndef BOWLINE_RUNTIME_TRAIN_TRAINER_H_
#define BOWLINE_RUNTIME_TRAIN_TRAINER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/agreement.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/parallel_save.h"
#include "runtime/train/data/dataset.h"
#include "runtime/train/data/sampler.h"
#include "runtime/train/recipe.h"
#include "runtime/train/token_ports.h"

namespace bowline {

// The numbers that a step reports; loss and norm are from before its update of the parameters.
struct StepResult {
  float loss = 0;       // mean over the tokens of the step
  float grad_norm = 0;  // global, before clipping
  float lr = 0;         // the learning rate that the step used
  // Seconds in which the host handed the step's commands to the device (Session::IssueSeconds). Nothing for devices
  // that compute while the host hands over commands.
  std::optional<double> host_seconds = {};
};

// Runs the steps of a training plan: its entry of kind TrainStep with the inputs `tokens` and `labels` and the outputs
// `loss`, `grad_norm` and `lr`.
class Trainer {
 public:
  // Data order and everything random follow from the seed of the plan. `session` and `dataset` outlive the trainer.
  // kFailedPrecondition when the plan is no training plan; kInvalidArgument when the dataset is too short.
  static absl::StatusOr<Trainer> Create(Session* session, const TokenDataset* dataset, DataOrder order);

  // Starts a new run: fills parameters and optimizer state as the plan says. Weights may be loaded afterwards.
  absl::Status Initialize();

  // Starts a run where another one, of whatever ranks, stopped. kFailedPrecondition, with nothing touched, when the
  // checkpoint is of another model, or of a run with other settings: the recipe of the plan, "order", "seed", "data",
  // "batch" and "seq". Those that `allowed` names may differ; then `changes` gives them. Where draws of another order,
  // seed, data set or length of sequences would not go on, they begin anew. kDataLoss when the checkpoint contradicts
  // itself.
  // `check`, which may be null, looks at all saved values.
  absl::Status Resume(const Checkpoint& checkpoint, absl::Span<const std::string> allowed = {},
                      FiniteCheck* check = nullptr);
  const std::vector<SettingChange>& changes() const { return changes_; }

  // The random text by which checkpoints name this run; kept by Resume if the checkpoint has one.
  void SetRun(std::string run) { run_ = std::move(run); }
  const std::string& run() const { return run_; }

  // The lines of metrics that could not be written, for the checkpoints. Resume takes those of its checkpoint.
  void SetUnwrittenMetrics(std::vector<std::string> lines) { unwritten_metrics_ = std::move(lines); }
  const std::vector<std::string>& unwritten_metrics() const { return unwritten_metrics_; }

  // Reads the data of the next step into the plan's inputs, unless they are there. Several ranks tell each other of
  // unusable data before any of them begins the step.
  absl::Status FillNext();

  // To be called when another entry of the plan has run since FillNext: it may have used the memory of the inputs.
  void ForgetInputs() {
    if (!fills_ahead_) filled_.reset();
  }

  // Fills the inputs of the next step by `fill` while the device computes. Returns when all ranks have filled theirs.
  // If one rank calls this function in a step, all ranks must.
  using FillTogether = absl::FunctionRef<absl::Status(absl::FunctionRef<void()> fill)>;

  // Runs one step. No heap allocation unless it fails. After an error of the run itself the state may be half updated.
  absl::StatusOr<StepResult> Step(FillTogether fill_together);
  // The same where no other rank waits for this one's data.
  absl::StatusOr<StepResult> Step();

  // Everything that Resume needs, with the tensors' memory as it is when it is read.
  CheckpointContent Content() const;

  // Saves that, see checkpoint.h; returns the path of the checkpoint. In a run of several ranks all call it, with their
  // agreement.
  absl::StatusOr<std::string> Save(const std::string& directory, Agreement* agreement = nullptr) const;

  // The type in which checkpoints have parameters of type f32: f32 at first, or bf16, which readers of weights take;
  // the optimizer's file then has their bits for Resume.
  void SetSavedType(ElementType type) { saved_type_ = type; }

  int64_t steps_done() const { return step_; }
  int64_t tokens_per_step() const { return ports_.tokens(); }
  const Sampler& sampler() const { return sampler_; }
  Session& session() const { return *session_; }

 private:
  Trainer(Session* session, const TokenDataset* dataset, TokenPorts ports, Sampler sampler)
      : session_(session), dataset_(dataset), ports_(std::move(ports)), sampler_(std::move(sampler)) {}

  struct Setting;
  // Those of the checkpoint and of this run that are not in the recipe, one list for all questions.
  std::vector<Setting> SettingsBeside(const TrainerState& state) const;
  // These, and those of the recipes.
  std::vector<std::string> SettingNames(const TrainerState& state) const;

  // Runs the step whose inputs are written. If the plan lets two runs overlap, the inputs of the next step are written
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
  std::optional<int64_t> filled_;  // the first draw of the batch that is written for the next step
  TensorRef loss_, grad_norm_, lr_;
  int64_t step_ = 0;
  int64_t next_draw_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TRAINER_H_
