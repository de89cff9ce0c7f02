#ifndef BOWLINE_RUNTIME_TOOLS_RANK_OPTIONS_H_
#define BOWLINE_RUNTIME_TOOLS_RANK_OPTIONS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/control/launch.h"
#include "runtime/comm/group.h"
#include "runtime/executor/links.h"
#include "runtime/plan/plan_file.h"

namespace CLI {
class App;
}

namespace bowline {

inline constexpr double kTimeoutSeconds = 300;

// The options by which the ranks of a plan are started and find each other.
struct RankOptions {
  std::string plan;                     // path
  std::vector<std::string> link_texts;  // "[AXIS:]LINK"
  std::optional<double> timeout_s;      // seconds that a rank waits for another; not given: kTimeoutSeconds
  int nproc = 0;                        // processes to start; 0: none
  LaunchFlags launch;
  double rendezvous_timeout_s = 300;

  std::chrono::nanoseconds timeout() const;
};

// A rank among all of a run.
struct RankView {
  int rank = 0;
  RankGroup* group = nullptr;  // null: a run of one rank
  LinkTable links = {};
};

// Runs one rank.
using RunAsRank = std::function<absl::Status(LoadedPlan, const RankView&)>;

// Adds the options but the plan to `app`, as a group; parsing fills `options`, which must stay.
void AddRankOptions(CLI::App& app, RankOptions& options);

// `seconds` as a duration of at most 30 years.
std::chrono::nanoseconds TimeOf(double seconds);

// Parses the links of --link, "[AXIS:]LINK" each. Returns kInvalidArgument, naming the plan's axes, for other texts.
absl::StatusOr<LinkTable> ParseLinks(const fbs::Plan& plan, const std::vector<std::string>& texts);

// Returns kInvalidArgument, naming the flags for several ranks, if this run has only one rank.
absl::Status CheckOptionsOfOneRank(const RankOptions& options);

// Returns kFailedPrecondition unless the plan is for the number of ranks of `launch`.
absl::Status CheckRankCount(const LoadedPlan& plan, const Launch& launch);

// Finds errors that every rank started by --nproc would report. Returns kInvalidArgument if this process is a rank
// itself, and the errors of CheckRankCount and ParseLinks.
absl::Status CheckSpawn(const LoadedPlan& plan, const RankOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RANK_OPTIONS_H_
