// Training plans of bowline-run.

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/cache_directory.h"
#include "runtime/base/safetensors_writer.h"
#include "runtime/plan/view/attachments.h"
#include "runtime/tools/profile_table.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/trace_log.h"
#include "runtime/tools/train_console.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/save_directory.h"
#include "runtime/train/data/dataset_group.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/metrics_log.h"
#include "runtime/train/model_config.h"
#include "runtime/train/model_state.h"
#include "runtime/train/tensors/non_finite.h"
#include "runtime/train/tensors/stored_part.h"
#include "runtime/train/token_scan.h"
#include "runtime/train/train_loop.h"
#include "runtime/train/trainer.h"
#include "runtime/train/weights.h"

namespace bowline {
namespace {

// Opens the files of tokens that an entry is to read.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenData(const Session& session, fbs::EntryKind kind,
                                                       const std::vector<std::string>& arguments) {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(session, kind));
  BOWLINE_ASSIGN_OR_RETURN(const TokenPorts ports, TokenPorts::Find(session, entry.name));
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<DataFile> files, ParseDataFiles(arguments));
  if (kind == fbs::EntryKind::EvalStep && files.front().weight > 0) {
    return absl::InvalidArgumentError("--eval-data takes each sample once; leave out the weights of its files");
  }
  return OpenDataFiles(files, ports.dataset_options());
}

// Looks at all ids before a run begins. Rank 0 says how far it is.
absl::Status ScanData(const Session& session, fbs::EntryKind kind, const TokenDataset& data, const RunOptions& options,
                      Agreement& agreement) {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(session, kind));
  BOWLINE_ASSIGN_OR_RETURN(const TokenPorts ports, TokenPorts::Find(session, entry.name));
  const std::string cache = DefaultCacheDirectory();
  std::optional<Progress> progress;
  return ScanTokens(data, ports.dataset_options().vocabulary, cache.empty() ? "" : absl::StrCat(cache, "/scans"),
                    agreement, [&](int64_t done, int64_t all) {
                      if (agreement.rank() != 0 || options.quiet) return;
                      if (!progress.has_value() || done == 0) progress.emplace("checking ids", all);
                      progress->Update(static_cast<uint64_t>(done));
                    });
}

// The bytes of the tensors of a checkpoint.
absl::StatusOr<uint64_t> CheckpointBytes(const Trainer& trainer) {
  uint64_t sum = 0;
  for (const CheckpointTensor& tensor : trainer.Content().tensors) {
    if (!tensor.is_saved) continue;
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(tensor.type, tensor.shape));
    sum += bytes;
  }
  return sum;
}

absl::Status PrepareSave(const RunOptions& options, const std::optional<Checkpoint>& checkpoint, Trainer& trainer,
                         Agreement& agreement, TrainConsole& console, SaveDirectory& directory) {
  SaveDirectory::Run run = {.id = trainer.run(),
                            .resumed_from = checkpoint.has_value() ? checkpoint->path() : "",
                            .first_step = checkpoint.has_value() ? checkpoint->state().step : 0};
  run.keep = options.keep;
  BOWLINE_ASSIGN_OR_RETURN(run.checkpoint_bytes, CheckpointBytes(trainer));
  return directory.Prepare(options.save, run, agreement, [&](absl::string_view note) { console.OnNote(note); });
}

// The agreement of the ranks, which reports its waits; until the steps begin, no line is open on the terminal.
absl::StatusOr<Agreement> AgreementOf(const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(options.group, options.timeout()));
  agreement.SetNotes([&options](absl::string_view note) { Note(options, note); });
  return agreement;
}

// A random text, the same on all ranks.
absl::StatusOr<std::string> NewRunId(Agreement& agreement) {
  std::random_device random;
  return agreement.FromRankZero(absl::StrFormat("%08x%08x", random(), random()));
}

// All ranks open the checkpoint that rank 0 found.
absl::StatusOr<std::optional<Checkpoint>> OpenCheckpoint(const RunOptions& options, Agreement& agreement) {
  std::optional<Checkpoint> checkpoint;
  if (options.resume.empty()) return checkpoint;
  const auto open = [&](const std::string& path) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(checkpoint, Checkpoint::Open(path));
    return absl::OkStatus();
  };
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter(
      "opening a checkpoint", [&] { return agreement.rank() == 0 ? open(options.resume) : absl::OkStatus(); }));
  BOWLINE_ASSIGN_OR_RETURN(const std::string path,
                           agreement.FromRankZero(checkpoint.has_value() ? checkpoint->path() : ""));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("opening a checkpoint",
                                               [&] { return checkpoint.has_value() ? absl::OkStatus() : open(path); }));
  return checkpoint;
}

absl::StatusOr<DataOrder> ChooseOrder(const RunOptions& options, const std::optional<Checkpoint>& checkpoint) {
  if (!options.order.empty()) return DataOrderFromName(options.order);
  return checkpoint.has_value() ? checkpoint->state().order : DataOrder::kSequential;
}

// Resumes a checkpoint whose values are finite, or are let through by --allow-non-finite.
absl::Status ResumeFinite(const RunOptions& options, const Checkpoint& checkpoint, Trainer& trainer,
                          Agreement& agreement, TrainConsole& console) {
  FiniteCheck check(options.allow_non_finite);
  const absl::Status resumed = agreement.AllOkAfter(
      "loading a checkpoint", [&] { return trainer.Resume(checkpoint, options.allow_changes, &check); });
  if (IsNotFinite(resumed)) {
    return NotFiniteError(absl::StrCat(resumed.message(),
                                       "; it was saved so. Resume from a checkpoint before it, or look on with "
                                       "--allow-non-finite"));
  }
  if (!check.found().empty()) console.OnNote(absl::StrCat("'", checkpoint.path(), "': ", check.found()));
  return resumed;
}

// Parameters and optimizer state as the run begins with them.
absl::Status PrepareState(const RunOptions& options, const std::optional<Checkpoint>& checkpoint, Trainer& trainer,
                          Agreement& agreement, TrainConsole& console) {
  BOWLINE_ASSIGN_OR_RETURN(std::string run, NewRunId(agreement));
  trainer.SetRun(std::move(run));
  trainer.SetSavedType(*ElementTypeFromName(options.save_dtype));
  if (checkpoint.has_value()) {
    BOWLINE_RETURN_IF_ERROR(ResumeFinite(options, *checkpoint, trainer, agreement, console));
    if (!checkpoint->later().empty()) {
      Note(options, absl::StrCat("'", options.resume, "/", kLatestFile, "' names '", checkpoint->path(), "', though '",
                                 checkpoint->later(), "' is of a later step; to go on from that one, give --resume ",
                                 checkpoint->later()));
    }
    if (!checkpoint->lost().empty()) {
      Note(options,
           absl::StrCat("'", options.resume, "/", kLatestFile, "' names ", checkpoint->lost(),
                        ", which is not there; '", checkpoint->path(), "' has the highest step of those that are"));
    }
    if (LacksConfig(trainer.session().plan(), checkpoint->path())) {
      Note(options, absl::StrCat("'", checkpoint->path(),
                                 "' has no config.json; that its model is the plan's was compared by the names and "
                                 "shapes of tensors alone"));
    }
    if (checkpoint->state().recipe.empty()) {
      Note(options, absl::StrCat("'", checkpoint->path(),
                                 "' does not say with which settings it was trained; those of the plan are used"));
    } else if (AttachmentOf(trainer.session().plan(), kRecipeAttachment).empty()) {
      Note(options, absl::StrCat("'", trainer.session().loaded_plan().name(),
                                 "' does not say with which settings it trains; whether they are those of '",
                                 checkpoint->path(), "' is not known. Compile the model again to have them compared"));
    }
    for (const SettingChange& change : trainer.changes()) {
      Note(options, absl::StrCat("from step ", trainer.steps_done() + 1, " on ", change.name, " is ", change.here,
                                 ", and no longer ", change.saved));
    }
    console.Say(absl::StrCat("resumed ", checkpoint->path(), " after step ", trainer.steps_done()));
    return absl::OkStatus();
  }
  BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
  if (options.weights.empty()) return absl::OkStatus();
  LoadedWeights weights;
  FiniteCheck check(options.allow_non_finite);
  const absl::Status loaded = agreement.AllOkAfter("loading weights", [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(weights, LoadWeights(trainer.session(), options.weights, OtherConfig::kReport));
    return CheckFinite(StateTensors(trainer.session()), RankOf(trainer.session()), check);
  });
  if (IsNotFinite(loaded)) {
    return NotFiniteError(absl::StrCat("the weights in '", options.weights, "': ", loaded.message(),
                                       "; train from others, or look on with --allow-non-finite"));
  }
  BOWLINE_RETURN_IF_ERROR(loaded);
  if (!check.found().empty()) console.OnNote(absl::StrCat("the weights in '", options.weights, "': ", check.found()));
  console.Say(absl::StrCat("loaded ", weights.tensors, " tensors from ", weights.directory));
  NoteWeights(options, weights);
  if (!weights.config_differences.empty()) {
    Note(options, absl::StrCat("the weights' config.json describes another model: ",
                               absl::StrJoin(weights.config_differences, "; ")));
  }
  return absl::OkStatus();
}

// Also of a quiet run: the run waits until a process reads the pipe.
MetricsLog::PipeHooks PipeHooks() {
  return {.note = [](absl::string_view note) { absl::FPrintF(stderr, "bowline-run: note: %s\n", note); },
          .stops = &StopSignalCame};
}

// Opens --metrics of rank 0, and writes the lines that a resumed run owes them. `resumed`: null for a new run.
absl::StatusOr<std::optional<MetricsLog>> OpenMetrics(const RunOptions& options, const std::string& run,
                                                      const Trainer* resumed, Agreement& agreement) {
  std::optional<MetricsLog> metrics;
  const auto open = [&]() -> absl::Status {
    if (options.metrics.empty()) return absl::OkStatus();
    if (resumed == nullptr) {
      BOWLINE_ASSIGN_OR_RETURN(metrics, MetricsLog::Create(options.metrics, run, PipeHooks()));
      return absl::OkStatus();
    }
    const int64_t done = resumed->steps_done();
    const bool is_finished = done >= options.steps;
    BOWLINE_ASSIGN_OR_RETURN(
        metrics,
        MetricsLog::Continue(options.metrics, {run, done, resumed->unwritten_metrics(), is_finished}, PipeHooks()));
    if (is_finished || resumed->changes().empty()) return absl::OkStatus();
    return metrics->WriteChanges(done + 1, resumed->changes());
  };
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("opening the metrics", open));
  if (metrics.has_value() && !metrics->missing().empty()) {
    Note(options, absl::StrCat("'", options.metrics, "' has no line of ", metrics->missing(),
                               ": they were written elsewhere, or lost"));
  }
  return metrics;
}

TrainLoopOptions LoopOptions(const RunOptions& options) {
  TrainLoopOptions loop;
  loop.steps = options.steps;
  loop.eval_every = options.eval_every;
  loop.save_directory = options.save;
  loop.save_every = options.save_every;
  loop.saves_in_background = true;
  loop.keep_checkpoints = options.keep;
  loop.allow_non_finite = options.allow_non_finite;
  loop.begin = !options.resume.empty()    ? absl::StrCat("the parameters of the checkpoint '", options.resume, "'")
               : !options.weights.empty() ? absl::StrCat("the weights in '", options.weights, "'")
                                          : "the initial values of the model";
  return loop;
}

// Whether a run that resumes after step `done` evaluates before it takes a step: one that is finished, or one that had
// to evaluate then, unless its metrics say that it did.
bool EvaluatesFirst(const RunOptions& options, int64_t done) {
  if (options.eval_data.empty()) return false;
  if (done >= options.steps) return true;
  const bool was_due = options.eval_every > 0 && done > 0 && done % options.eval_every == 0;
  return was_due && (options.metrics.empty() || !MetricsLog::HasEvaluation(options.metrics, done));
}

absl::StatusOr<RunEnd> EvaluateOnly(Session& session, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, AgreementOf(options));
  std::unique_ptr<TokenDataset> data;
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("opening data", [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(data, OpenData(session, fbs::EntryKind::EvalStep, options.eval_data));
    return absl::OkStatus();
  }));
  BOWLINE_ASSIGN_OR_RETURN(Evaluator evaluator, Evaluator::Create(&session, data.get(), options.eval_batches));
  BOWLINE_RETURN_IF_ERROR(ScanData(session, fbs::EntryKind::EvalStep, *data, options, agreement));
  BOWLINE_RETURN_IF_ERROR(InitializeUnsaved(session));
  LoadedWeights weights;
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("loading weights", [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(weights, LoadWeights(session, options.weights));
    return absl::OkStatus();
  }));
  NoteWeights(options, weights);
  BOWLINE_ASSIGN_OR_RETURN(const std::string run, NewRunId(agreement));
  BOWLINE_ASSIGN_OR_RETURN(std::optional<MetricsLog> metrics, OpenMetrics(options, run, nullptr, agreement));
  const std::atomic<bool>& stop = CatchStopSignals();
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<double> loss,
                           evaluator.Evaluate([&](Evaluator::Fill fill) -> absl::StatusOr<bool> {
                             BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("reading data", fill));
                             BOWLINE_ASSIGN_OR_RETURN(const bool stops, agreement.AnyOf(stop.load()));
                             return !stops;
                           }));
  if (!loss.has_value()) return RunEnd::kStopped;
  if (metrics.has_value()) BOWLINE_RETURN_IF_ERROR(metrics->WriteEvaluation(0, *loss));
  if (!options.quiet) {
    BOWLINE_RETURN_IF_ERROR(
        PrintToStdout(absl::StrFormat("evaluation loss %.6f over %d tokens\n", *loss, evaluator.tokens())));
  }
  if (options.allow_non_finite || std::isfinite(*loss)) return RunEnd::kDone;
  return NotFiniteError(
      absl::StrCat("the evaluation loss is ", *loss,
                   ": the weights are not finite, or too large for the type that the plan computes in; "
                   "compile it with --dtype f32, or go on with --allow-non-finite"));
}

absl::StatusOr<RunEnd> Train(Session& session, const RunOptions& options) {
  // Everything that can be wrong is looked at before anything is written.
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, AgreementOf(options));
  std::unique_ptr<TokenDataset> data;
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("opening data", [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(data, OpenData(session, fbs::EntryKind::TrainStep, options.data));
    return absl::OkStatus();
  }));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint, OpenCheckpoint(options, agreement));
  BOWLINE_ASSIGN_OR_RETURN(const DataOrder order, ChooseOrder(options, checkpoint));
  std::unique_ptr<Trainer> created;
  // Which reads samples of the data.
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("reading data", [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(Trainer of_session, Trainer::Create(&session, data.get(), order));
    created = std::make_unique<Trainer>(std::move(of_session));
    return absl::OkStatus();
  }));
  Trainer& trainer = *created;
  const int64_t done = checkpoint.has_value() ? checkpoint->state().step : 0;
  const bool finished = done >= options.steps;
  TrainConsole console(options.quiet, done + 1, options.steps);
  agreement.SetNotes([&](absl::string_view note) { console.OnNote(note); });
  std::unique_ptr<TokenDataset> eval_data;
  std::optional<Evaluator> evaluator;
  if (!options.eval_data.empty()) {
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("opening data", [&]() -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(eval_data, OpenData(session, fbs::EntryKind::EvalStep, options.eval_data));
      return absl::OkStatus();
    }));
    BOWLINE_ASSIGN_OR_RETURN(evaluator, Evaluator::Create(&session, eval_data.get(), options.eval_batches));
    BOWLINE_RETURN_IF_ERROR(ScanData(session, fbs::EntryKind::EvalStep, *eval_data, options, agreement));
  }
  BOWLINE_RETURN_IF_ERROR(PrepareState(options, checkpoint, trainer, agreement, console));
  if (finished && !evaluator.has_value()) {
    // Lines that it could not write are still to be written.
    if (!trainer.unwritten_metrics().empty()) {
      BOWLINE_RETURN_IF_ERROR(OpenMetrics(options, trainer.run(), &trainer, agreement).status());
    }
    console.Say(absl::StrCat("nothing to do: step ", done, " is done, and --steps is ", options.steps));
    return RunEnd::kDone;
  }
  if (!finished) {
    BOWLINE_RETURN_IF_ERROR(ScanData(session, fbs::EntryKind::TrainStep, *data, options, agreement));
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("reading data", [&] { return trainer.FillNext(); }));
  }
  SaveDirectory save_directory;
  if (!options.save.empty() && !finished) {
    BOWLINE_RETURN_IF_ERROR(PrepareSave(options, checkpoint, trainer, agreement, console, save_directory));
  }
  TrainLoopOptions loop = LoopOptions(options);
  loop.before_save = [&] { return save_directory.Hold([&](absl::string_view note) { console.OnNote(note); }); };
  // Rank 0 has the metrics, and decides.
  BOWLINE_ASSIGN_OR_RETURN(
      loop.begin_with_evaluation,
      agreement.AnyOf(agreement.rank() == 0 && checkpoint.has_value() && EvaluatesFirst(options, done)));
  BOWLINE_ASSIGN_OR_RETURN(std::optional<MetricsLog> metrics,
                           OpenMetrics(options, trainer.run(), checkpoint.has_value() ? &trainer : nullptr, agreement));
  save_directory.Keep();

  console.Say(absl::StrFormat("%s: %d tokens a step, %d samples of %d tokens in %s (%s), %.1f MB of memory",
                              session.loaded_plan().name(), trainer.tokens_per_step(), trainer.sampler().samples(),
                              trainer.sampler().sequence(), data->path(), NameOf(order),
                              static_cast<double>(session.arena().bytes()) * 1e-6));
  if (options.on_training != nullptr) options.on_training();
  BOWLINE_ASSIGN_OR_RETURN(const bool all_done,
                           RunTrainLoop(loop, trainer, evaluator ? &*evaluator : nullptr, metrics ? &*metrics : nullptr,
                                        console, CatchStopSignals(), &agreement));
  console.Summarize();
  if (all_done) return RunEnd::kDone;
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
