#ifndef BOWLINE_RUNTIME_TOOLS_RUN_OPTIONS_H_
#define BOWLINE_RUNTIME_TOOLS_RUN_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/chrome_trace.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/rank_options.h"
#include "runtime/train/weights.h"

namespace bowline {

// The command line of bowline-run. Empty text and 0 mean "not given" where not said otherwise.
struct RunOptions : RankOptions {
  std::string driver, driver_path;
  bool profile = false;
  std::string trace;  // file for the time that each command of the last runs took
  // The trace to which all ranks of this process add their commands; null without --trace.
  std::shared_ptr<ChromeTrace> trace_log;
  bool quiet = false;
  std::string weights;

  // All ranks, of which this is one; null: a run of one rank. Set by OptionsOfRank, as are the links.
  RankGroup* group = nullptr;
  LinkTable links;

  // Training plans.
  std::vector<std::string> data;  // files and weights, see ParseDataFiles
  int64_t steps = 0;
  std::string order;  // not given: sequential, or that of the run that is resumed
  std::string metrics;
  std::vector<std::string> eval_data;  // files alone
  int64_t eval_every = 0;
  int64_t eval_batches = 0;
  std::string save;
  int64_t save_every = 0;
  std::string save_dtype = "f32";
  int64_t keep = 0;
  std::string resume;
  std::vector<std::string> allow_changes;  // settings that may differ from those of the run that is resumed
  bool allow_non_finite = false;
  int restarts = 0;
  // Called by rank 0 after all inputs were checked; may be null.
  std::function<void()> on_training;

  // Plans that generate or serve.
  std::string prompt;
  std::vector<int32_t> prompt_tokens;  // instead of `prompt`
  std::string print;                   // "text" or "tokens"; not given: as the prompt is
  int64_t max_new_tokens = 0;
  double temperature = 1;
  uint64_t seed = 0;
  bool echo = false;
  // Plans that serve.
  bool chat = false;
  int32_t top_k = 0;
  double top_p = 1;
};

// The end of a run without an error.
enum class RunEnd {
  kDone,
  kStopped,  // by a signal, before it was done
};

// The function that runs one rank. All ranks of a run have the same end.
using RunRank = std::function<absl::StatusOr<RunEnd>(LoadedPlan, const RunOptions&)>;

// The options of one rank of a run: of several ranks only rank 0 speaks and writes metrics.
RunOptions OptionsOfRank(const RunOptions& options, const RankView& view);

// Returns kInvalidArgument if this process would overwrite one of its inputs, or a file that does not hold metrics. The
// names of traces end in `suffixes`, one for each rank that writes its own.
absl::Status CheckOutputs(const RunOptions& options, const std::vector<std::string>& suffixes);

// Returns whether the driver of --driver is null, which runs nothing.
bool ComputesNothing(const RunOptions& options);

// Prints a note to stderr, unless the run is quiet.
void Note(const RunOptions& options, absl::string_view text);
// Notes options that the plan has no use for.
void NoteWeights(const RunOptions& options, const LoadedWeights& weights);

// Creates a session with the driver, links and other settings of the options.
absl::StatusOr<std::unique_ptr<Session>> CreateSession(LoadedPlan plan, const RunOptions& options);

// Loads --weights. States that these do not have start at their initial values.
absl::Status SetStates(Session& session, const RunOptions& options);

// Trains, or evaluates alone when there is no --data.
absl::StatusOr<RunEnd> RunTraining(LoadedPlan plan, const RunOptions& options);

absl::StatusOr<RunEnd> RunGeneration(LoadedPlan plan, const RunOptions& options);

// Continues one text by the steps of a plan for serving.
absl::StatusOr<RunEnd> RunSteps(LoadedPlan plan, const RunOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_OPTIONS_H_
