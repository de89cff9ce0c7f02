#include "runtime/tools/rank_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

std::string CheckProcesses(const std::string& text) {
  int value = 0;
  return absl::SimpleAtoi(text, &value) && value > 0 ? "" : text + " is not a number of processes from 1 on";
}

// DetectLaunch reports mistakes of the number itself: it knows all three of them.
std::string CheckRank(const std::string& text) {
  int value = 0;
  return absl::SimpleAtoi(text, &value) ? "" : text + " is not a whole number, as ranks and their count are";
}

constexpr double kMostSeconds = 365.0 * 24 * 3600;

std::string CheckSeconds(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value <= 0) return text + " is not a number above 0";
  return value <= kMostSeconds ? "" : text + " is more than a year of seconds";
}

}  // namespace

std::chrono::nanoseconds RankOptions::timeout() const { return TimeOf(timeout_s.value_or(kTimeoutSeconds)); }

void AddRankOptions(CLI::App& app, RankOptions& o) {
  const CLI::Validator processes(CheckProcesses, "N");
  const CLI::Validator rank(CheckRank, "");
  const CLI::Validator seconds(CheckSeconds, "S");
  const std::string several = "Several ranks";
  app.add_option("--nproc", o.nproc, "Start N processes on this machine, each a rank; N is the plan's number of ranks")
      ->check(processes)
      ->group(several);
  app.add_option("--rank", o.launch.rank, "This process is rank R, from 0 on; launchers say it by variables")
      ->check(rank)
      ->group(several);
  app.add_option("--world-size", o.launch.world_size, "Of N processes")->check(rank)->group(several);
  app.add_option("--local-rank", o.launch.local_rank, "Which of this machine's ranks it is")
      ->check(rank)
      ->group(several);
  app.add_option("--rendezvous", o.launch.rendezvous,
                 "Where they meet: HOST:PORT of rank 0, or file:PATH of a file that all see")
      ->group(several);
  app.add_option("--rendezvous-timeout", o.rendezvous_timeout_s, "Seconds that a rank waits for all others to start")
      ->check(seconds)
      ->capture_default_str()
      ->group(several);
  app.add_option("--timeout", o.timeout_s, "Seconds that a rank waits for another one")
      ->check(seconds)
      ->default_str(absl::StrCat(kTimeoutSeconds))
      ->group(several);
  app.add_option("--link", o.link_texts,
                 "Emulate the link along an axis, or along all: [AXIS:]bandwidth=10GB/s,latency=5us")
      ->group(several);
}

std::chrono::nanoseconds TimeOf(double seconds) {
  constexpr double kMost = 30.0 * 365 * 24 * 3600;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::min(seconds, kMost)));
}

absl::StatusOr<LinkTable> ParseLinks(const fbs::Plan& plan, const std::vector<std::string>& texts) {
  std::vector<std::string> axes;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) axes.emplace_back(TextOf(plan.mesh()->Get(i)->name()));
  return targets::ParseLinks(texts, axes);
}

absl::Status CheckOptionsOfOneRank(const RankOptions& options) {
  std::vector<std::string> given;
  if (!options.link_texts.empty()) given.push_back("--link");
  if (options.timeout_s.has_value()) given.push_back("--timeout");
  if (options.launch.local_rank.has_value()) given.push_back("--local-rank");
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", options.plan, "' is for one rank, which waits for nobody; leave out ", absl::StrJoin(given, ", ")));
}

absl::Status CheckRankCount(const LoadedPlan& plan, const Launch& launch) {
  const uint32_t ranks = RankCount(plan.plan());
  if (launch.source.empty() || ranks == static_cast<uint32_t>(launch.ranks)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("'", plan.name(), "' is for ", ranks, ranks == 1 ? " rank" : " ranks (",
                   ranks == 1 ? "" : DescribeMesh(plan.plan()), ranks == 1 ? "" : ")", ", but ", launch.size_source,
                   " says that ", launch.ranks, launch.ranks == 1 ? " process runs" : " processes run", " it; start ",
                   ranks, ", or compile the model for a mesh of ", launch.ranks));
}

absl::Status CheckSpawn(const LoadedPlan& plan, const RankOptions& options) {
  const LaunchFlags& flags = options.launch;
  if (flags.rank || flags.world_size || flags.local_rank || flags.rendezvous) {
    return absl::InvalidArgumentError(
        "--nproc starts all ranks and numbers them; leave it out, or --rank, --world-size, --local-rank and "
        "--rendezvous");
  }
  LaunchFlags anywhere;
  anywhere.rendezvous = "file:-";
  const absl::StatusOr<Launch> other = DetectLaunch(anywhere, &ProcessEnvironment);
  if (other.ok() && other->ranks > 1) {
    return absl::InvalidArgumentError(absl::StrCat(other->source, " says that this is rank ", other->rank, " of ",
                                                   other->ranks, " processes, each of which would start ",
                                                   options.nproc, " more; leave out --nproc, or start one process"));
  }
  BOWLINE_RETURN_IF_ERROR(ParseLinks(plan.plan(), options.link_texts).status());
  Launch launch;
  launch.ranks = options.nproc;
  launch.source = launch.size_source = "--nproc";
  return CheckRankCount(plan, launch);
}

}  // namespace bowline
