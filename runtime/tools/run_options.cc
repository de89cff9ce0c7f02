#include "runtime/tools/run_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_view.h"

namespace bowline {

std::chrono::nanoseconds TimeOf(double seconds) {
  constexpr double kMost = 30.0 * 365 * 24 * 3600;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::min(seconds, kMost)));
}

RunOptions OptionsOfRank(const RunOptions& options, int rank, CommunicatorGroup* group) {
  RunOptions result = options;
  result.group = group;
  if (rank == 0) return result;
  result.quiet = true;
  result.metrics.clear();
  result.profile = false;
  return result;
}

absl::StatusOr<LinkTable> ParseLinks(const fbs::Plan& plan, const std::vector<std::string>& texts) {
  LinkTable links;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    const std::string axis = parts.size() == 2 ? parts.front() : "";
    absl::StatusOr<LinkOptions> link = ParseLink(parts.back());
    if (!link.ok()) return Annotate(link.status(), absl::StrCat("--link ", text));
    bool known = axis.empty();
    for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) known |= TextOf(plan.mesh()->Get(i)->name()) == axis;
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("--link ", text, ": the plan's mesh has no axis '", axis, "'; it is ", DescribeMesh(plan)));
    }
    links[axis] = *link;
  }
  return links;
}

absl::StatusOr<std::unique_ptr<Session>> CreateSession(LoadedPlan plan, const RunOptions& options) {
  SessionOptions session;
  session.driver = options.driver;
  session.profile = options.profile;
  session.trace = options.trace_log != nullptr;
  session.group = options.group;
  session.links = options.links;
  return Session::Create(std::move(plan), session);
}

}  // namespace bowline
