#include "runtime/tools/run_process.h"

#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/agree.h"
#include "runtime/comm/gloo/gloo_group.h"

namespace bowline {
namespace {

// Checks that all ranks have the same values. It runs before anything that presumes equal plans, even the communicators
// of the plan. Reports that all ranks have met once each has heard so: before that, nobody would miss a rank 0 that
// stops.
absl::Status Agree(GlooGroup& group, const NamedValues& values, const SpawnedRank& spawned) {
  std::vector<int> everyone(static_cast<size_t>(group.ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<hal::Exchange> members, group.CreateExchange("options", everyone));
  Report(spawned, SpawnReport::kAllMet);
  return AgreeOn(*members, values);
}

absl::Status RunIn(GlooGroup& group, const RankOptions& options, const Launch& launch, LoadedPlan plan,
                   const RunAsRank& run) {
  BOWLINE_ASSIGN_OR_RETURN(LinkTable links, ParseLinks(plan.plan(), options.link_texts));
  return run(std::move(plan), {launch.rank, &group, std::move(links)});
}

}  // namespace

absl::Status RunAsProcess(const RankOptions& options, const Launch& launch, const SpawnedRank& spawned,
                          NamedValues values, const RunAsRank& run) {
  GlooOptions gloo;
  gloo.rank = launch.rank;
  gloo.ranks = launch.ranks;
  gloo.rendezvous = launch.rendezvous;
  gloo.listener = spawned.listener;
  gloo.timeout = options.timeout();
  gloo.rendezvous_timeout = TimeOf(options.rendezvous_timeout_s);
  absl::StatusOr<LoadedPlan> plan = LoadedPlan::FromFile(options.plan);
  // Before ranks meet: those of another number would wait for ranks that never start.
  if (plan.ok()) BOWLINE_RETURN_IF_ERROR(CheckRankCount(*plan, launch));
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<GlooGroup> group, GlooGroup::Create(gloo));
  if (plan.ok()) {
    values.emplace_back("the plan (its content_hash)", ToHex(plan->content_hash()));
    const absl::Status agreed = Agree(*group, values, spawned);
    // All ranks have this error, and none waits for another.
    if (!agreed.ok() && group->status().ok()) return agreed;
    if (!agreed.ok()) plan = agreed;
  } else {
    Report(spawned, SpawnReport::kAllMet);
  }
  const absl::Status status = plan.ok() ? RunIn(*group, options, launch, *std::move(plan), run) : plan.status();
  group->Abort(status);
  // If one rank ended the run, all ranks return the same error.
  const absl::Status broken = group->status();
  return RankGaveUp(broken) ? broken : status;
}

}  // namespace bowline
