#include "runtime/tools/run_ranks.h"

#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline {

absl::Status RunRanks(LoadedPlan plan, const RankOptions& options, const RunAsRank& run) {
  const int ranks = static_cast<int>(RankCount(plan.plan()));
  if (ranks == 1 && options.link_texts.empty()) return run(std::move(plan), {});
  BOWLINE_ASSIGN_OR_RETURN(const LinkTable links, ParseLinks(plan.plan(), options.link_texts));
  LoopbackOptions loopback;
  loopback.timeout = options.timeout();
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<LoopbackGroup> group, LoopbackGroup::Create(ranks, loopback));
  const auto run_rank = [&](int rank, LoadedPlan own) {
    const std::unique_ptr<RankGroup> view = group->AsRank(rank);
    absl::Status status = run(std::move(own), {rank, view.get(), links});
    // The first error stays; ranks that it ended have the same one.
    group->Abort(status);
    return status;
  };
  // Rank 0 has the plan that the caller loaded, and this thread, which gets the process's signals.
  std::vector<LoadedPlan> plans;
  plans.push_back(std::move(plan));
  while (plans.size() < static_cast<size_t>(ranks)) {
    BOWLINE_ASSIGN_OR_RETURN(LoadedPlan copy, LoadedPlan::FromFile(plans[0].name()));
    plans.push_back(std::move(copy));
  }
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) {
    try {
      threads.emplace_back([&, rank] { results[rank] = run_rank(rank, std::move(plans[rank])); });
    } catch (const std::system_error& error) {
      group->Abort(
          absl::ResourceExhaustedError(absl::StrCat("the system has no thread for rank ", rank, ": ", error.what())));
      break;
    }
  }
  results[0] = run_rank(0, std::move(plans[0]));
  for (std::thread& thread : threads) thread.join();
  BOWLINE_RETURN_IF_ERROR(group->status());
  for (const absl::Status& result : results) BOWLINE_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace bowline
