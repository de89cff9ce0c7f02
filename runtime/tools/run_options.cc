#include "runtime/tools/run_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/output_files.h"
#include "runtime/hal/driver_registry.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/train/data/dataset_group.h"
#include "runtime/train/metrics_log.h"

namespace bowline {

RunOptions OptionsOfRank(const RunOptions& options, const RankView& view) {
  RunOptions result = options;
  result.group = view.group;
  result.links = view.links;
  if (view.rank == 0) return result;
  result.quiet = true;
  result.metrics.clear();
  result.profile = false;
  result.on_training = nullptr;
  return result;
}

absl::Status CheckOutputs(const RunOptions& options, const std::vector<std::string>& suffixes) {
  std::vector<NamedFile> outputs = {{"--metrics", options.metrics}};
  absl::string_view meeting = options.launch.rendezvous ? *options.launch.rendezvous : absl::string_view();
  if (absl::ConsumePrefix(&meeting, "file:")) outputs.push_back({"--rendezvous", std::string(meeting)});
  for (const std::string& suffix : suffixes) {
    if (!options.trace.empty()) outputs.push_back({"--trace", options.trace + suffix});
  }
  std::vector<NamedFile> inputs = {
      {"PLAN", options.plan}, {"--weights", options.weights}, {"--resume", options.resume}};
  for (const auto& [flag, list] : {std::pair{"--data", &options.data}, std::pair{"--eval-data", &options.eval_data}}) {
    BOWLINE_ASSIGN_OR_RETURN(const std::vector<DataFile> files, ParseDataFiles(*list));
    for (const DataFile& file : files) {
      for (std::string& path : FilesOfTokens(file.path)) inputs.push_back({flag, std::move(path)});
    }
  }
  BOWLINE_RETURN_IF_ERROR(CheckOutputs(inputs, outputs));
  return options.metrics.empty() ? absl::OkStatus() : MetricsLog::CheckFile(options.metrics);
}

bool ComputesNothing(const RunOptions& options) {
  const absl::StatusOr<hal::DriverChoice> choice = hal::ParseDriverChoice(options.driver);
  return choice.ok() && choice->name == "null";
}

void Note(const RunOptions& options, absl::string_view text) {
  if (!options.quiet) absl::FPrintF(stderr, "bowline-run: note: %s\n", text);
}

void NoteWeights(const RunOptions& options, const LoadedWeights& weights) {
  if (!weights.checkpoint.empty()) {
    Note(options, absl::StrCat("'", weights.directory, "' has weights of its own, which were taken; for those of '",
                               weights.checkpoint, "' give --weights ", weights.checkpoint));
  }
  if (weights.unused.empty()) return;
  Note(options, absl::StrCat("the plan has no use for these weights: ", absl::StrJoin(weights.unused, ", ")));
}

absl::StatusOr<std::unique_ptr<Session>> CreateSession(LoadedPlan plan, const RunOptions& options) {
  if (ComputesNothing(options)) {
    Note(options, "the driver null computes nothing: no loss, text or rate below is the model's");
  }
  SessionOptions session;
  session.driver = options.driver;
  session.driver_path = options.driver_path;
  session.profile = options.profile;
  session.trace = options.trace_log != nullptr;
  session.group = options.group;
  session.links = options.links;
  // Rank 0 speaks for all: they have the same commands.
  if (!options.quiet) {
    session.note = [](absl::string_view note) { absl::FPrintF(stderr, "bowline-run: note: %s\n", note); };
  }
  return Session::Create(std::move(plan), session);
}

absl::Status SetStates(Session& session, const RunOptions& options) {
  // Steps of serving read no block of a cache before they wrote it.
  const bool has_steps = FindEntry(session.plan(), fbs::EntryKind::Step) != nullptr;
  if (const auto init = session.FindEntry(fbs::EntryKind::Init); init.ok() && !has_steps) {
    BOWLINE_RETURN_IF_ERROR(session.Run(*init));
  }
  BOWLINE_ASSIGN_OR_RETURN(const LoadedWeights loaded, LoadWeights(session, options.weights));
  NoteWeights(options, loaded);
  if (!options.quiet && session.rank() == 0 && loaded.external.in_place + loaded.external.copied > 0) {
    absl::FPrintF(stderr,
                  "bowline-run: note: weights: %d bytes are read in place from the mapped files, %d were copied\n",
                  loaded.external.in_place, loaded.external.copied);
  }
  return absl::OkStatus();
}

}  // namespace bowline
