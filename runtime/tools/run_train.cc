// Training plans of bowline-run.

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/atomic_directory.h"
#include "runtime/tools/profile_table.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/trace_log.h"
#include "runtime/tools/train_console.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/metrics_log.h"
#include "runtime/train/model_state.h"
#include "runtime/train/train_loop.h"
#include "runtime/train/trainer.h"
#include "runtime/train/weights.h"

namespace bowline {
namespace {

// Opens a file of tokens that an entry is to read.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenData(const Session& session, fbs::EntryKind kind,
                                                       const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(session, kind));
  BOWLINE_ASSIGN_OR_RETURN(const TokenPorts ports, TokenPorts::Find(session, entry.name));
  return OpenTokenDataset(path, ports.dataset_options());
}

// A directory to save into, made and tried before the first step; taken back, if it was new, unless the run begins.
class SaveDirectory {
 public:
  // Rank 0 does it for all.
  absl::Status Prepare(const std::string& path, Agreement& agreement) {
    return agreement.AllOk(agreement.rank() == 0 ? Try(path) : absl::OkStatus());
  }
  void Keep() { is_new_ = false; }
  ~SaveDirectory() {
    std::error_code ignored;
    if (is_new_) std::filesystem::remove(path_, ignored);
  }

 private:
  absl::Status Try(const std::string& path) {
    path_ = path;
    std::error_code ignored;
    is_new_ = !std::filesystem::exists(path, ignored);
    BOWLINE_RETURN_IF_ERROR(MakeDirectories(path));
    return AtomicDirectory::Create(absl::StrCat(path, "/step-00000000")).status();
  }

  std::string path_;
  bool is_new_ = false;
};

// All ranks open the checkpoint that rank 0 found.
absl::StatusOr<std::optional<Checkpoint>> OpenCheckpoint(const RunOptions& options, Agreement& agreement) {
  std::optional<Checkpoint> checkpoint;
  if (options.resume.empty()) return checkpoint;
  const auto open = [&](const std::string& path) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(checkpoint, Checkpoint::Open(path));
    return absl::OkStatus();
  };
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(agreement.rank() == 0 ? open(options.resume) : absl::OkStatus()));
  BOWLINE_ASSIGN_OR_RETURN(const std::string path,
                           agreement.FromRankZero(checkpoint.has_value() ? checkpoint->path() : ""));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(checkpoint.has_value() ? absl::OkStatus() : open(path)));
  return checkpoint;
}

absl::StatusOr<DataOrder> ChooseOrder(const RunOptions& options, const std::optional<Checkpoint>& checkpoint) {
  if (!options.order.empty()) return DataOrderFromName(options.order);
  return checkpoint.has_value() ? checkpoint->state().order : DataOrder::kSequential;
}

// Parameters and optimizer state as the run begins with them.
absl::Status PrepareState(const RunOptions& options, const std::optional<Checkpoint>& checkpoint, Trainer& trainer,
                          Agreement& agreement, TrainConsole& console) {
  if (checkpoint.has_value()) {
    BOWLINE_RETURN_IF_ERROR(agreement.AllOk(trainer.Resume(*checkpoint)));
    console.Say(absl::StrCat("resumed ", checkpoint->path(), " after step ", trainer.steps_done()));
    return absl::OkStatus();
  }
  BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
  if (options.weights.empty()) return absl::OkStatus();
  const absl::StatusOr<LoadedWeights> loaded = LoadWeights(trainer.session(), options.weights, OtherConfig::kReport);
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(loaded.status()));
  const LoadedWeights& weights = *loaded;
  console.Say(absl::StrCat("loaded ", weights.tensors, " tensors from ", weights.directory));
  NoteUnused(options, weights);
  if (!weights.config_differences.empty()) {
    Note(options, absl::StrCat("the weights' config.json describes another model: ",
                               absl::StrJoin(weights.config_differences, "; ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<MetricsLog>> OpenMetrics(const RunOptions& options, int64_t steps_done, bool resumed) {
  std::optional<MetricsLog> metrics;
  if (options.metrics.empty()) return metrics;
  BOWLINE_ASSIGN_OR_RETURN(
      metrics, resumed ? MetricsLog::Continue(options.metrics, steps_done) : MetricsLog::Create(options.metrics));
  return metrics;
}

TrainLoopOptions LoopOptions(const RunOptions& options) {
  TrainLoopOptions loop;
  loop.steps = options.steps;
  loop.eval_every = options.eval_every;
  loop.save_directory = options.save;
  loop.save_every = options.save_every;
  loop.keep_checkpoints = options.keep;
  loop.allow_non_finite = options.allow_non_finite;
  loop.begin = !options.resume.empty()    ? absl::StrCat("the parameters of the checkpoint '", options.resume, "'")
               : !options.weights.empty() ? absl::StrCat("the weights in '", options.weights, "'")
                                          : "the initial values of the model";
  return loop;
}

absl::StatusOr<RunEnd> EvaluateOnly(Session& session, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<TokenDataset> data,
                           OpenData(session, fbs::EntryKind::EvalStep, options.eval_data));
  BOWLINE_ASSIGN_OR_RETURN(Evaluator evaluator, Evaluator::Create(&session, data.get(), options.eval_batches));
  BOWLINE_RETURN_IF_ERROR(InitializeUnsaved(session));
  BOWLINE_ASSIGN_OR_RETURN(const LoadedWeights weights, LoadWeights(session, options.weights));
  NoteUnused(options, weights);
  BOWLINE_ASSIGN_OR_RETURN(const double loss, evaluator.Evaluate());
  if (!options.metrics.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(MetricsLog metrics, MetricsLog::Create(options.metrics));
    BOWLINE_RETURN_IF_ERROR(metrics.WriteEvaluation(0, loss));
  }
  if (options.quiet) return RunEnd::kDone;
  BOWLINE_RETURN_IF_ERROR(
      PrintToStdout(absl::StrFormat("evaluation loss %.6f over %d tokens\n", loss, evaluator.tokens())));
  return RunEnd::kDone;
}

absl::StatusOr<RunEnd> Train(Session& session, const RunOptions& options) {
  // Everything that can be wrong is looked at before anything is written.
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<TokenDataset> data,
                           OpenData(session, fbs::EntryKind::TrainStep, options.data));
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(options.group));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint, OpenCheckpoint(options, agreement));
  BOWLINE_ASSIGN_OR_RETURN(const DataOrder order, ChooseOrder(options, checkpoint));
  BOWLINE_ASSIGN_OR_RETURN(Trainer trainer, Trainer::Create(&session, data.get(), order));
  std::unique_ptr<TokenDataset> eval_data;
  std::optional<Evaluator> evaluator;
  if (!options.eval_data.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(eval_data, OpenData(session, fbs::EntryKind::EvalStep, options.eval_data));
    BOWLINE_ASSIGN_OR_RETURN(evaluator, Evaluator::Create(&session, eval_data.get(), options.eval_batches));
    BOWLINE_RETURN_IF_ERROR(evaluator->CheckFirstBatch());
  }
  const int64_t done = checkpoint.has_value() ? checkpoint->state().step : 0;
  TrainConsole console(options.quiet, done + 1, options.steps);
  BOWLINE_RETURN_IF_ERROR(PrepareState(options, checkpoint, trainer, agreement, console));
  if (done >= options.steps) {
    console.Say(absl::StrCat("nothing to do: step ", done, " is done, and --steps is ", options.steps));
    return RunEnd::kDone;
  }
  BOWLINE_RETURN_IF_ERROR(trainer.CheckNextBatch());
  SaveDirectory save_directory;
  if (!options.save.empty()) BOWLINE_RETURN_IF_ERROR(save_directory.Prepare(options.save, agreement));
  BOWLINE_ASSIGN_OR_RETURN(std::optional<MetricsLog> metrics, OpenMetrics(options, done, checkpoint.has_value()));
  save_directory.Keep();

  console.Say(absl::StrFormat("%s: %d tokens a step, %d samples of %d tokens in %s (%s), %.1f MB of memory",
                              session.loaded_plan().name(), trainer.tokens_per_step(), trainer.sampler().samples(),
                              trainer.sampler().sequence(), data->path(), NameOf(order),
                              static_cast<double>(session.arena().bytes()) * 1e-6));
  if (options.on_training != nullptr) options.on_training();
  BOWLINE_RETURN_IF_ERROR(RunTrainLoop(LoopOptions(options), trainer, evaluator ? &*evaluator : nullptr,
                                       metrics ? &*metrics : nullptr, console, CatchStopSignals(), &agreement));
  console.Summarize();
  if (trainer.steps_done() == options.steps) return RunEnd::kDone;
  console.Say(
      absl::StrCat("stopped by a signal after step ", trainer.steps_done(),
                   options.save.empty() ? "; nothing was saved, for there is no --save" : "; go on with --resume"));
  return RunEnd::kStopped;
}

}  // namespace

absl::StatusOr<RunEnd> RunTraining(LoadedPlan plan, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, CreateSession(std::move(plan), options));
  BOWLINE_ASSIGN_OR_RETURN(const RunEnd end,
                           options.data.empty() ? EvaluateOnly(*session, options) : Train(*session, options));
  if (options.trace_log != nullptr) AddTrace(*session, *options.trace_log);
  if (options.profile) absl::FPrintF(stderr, "%s", ProfileTable(session->Profile()));
  return end;
}

}  // namespace bowline
