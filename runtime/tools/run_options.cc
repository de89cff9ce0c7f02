#include "runtime/tools/run_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/plan/plan_view.h"

namespace bowline {

std::chrono::nanoseconds TimeOf(double seconds) {
  constexpr double kMost = 30.0 * 365 * 24 * 3600;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::min(seconds, kMost)));
}

RunOptions OptionsOfRank(const RunOptions& options, int rank, RankGroup* group) {
  RunOptions result = options;
  result.group = group;
  if (rank == 0) return result;
  result.quiet = true;
  result.metrics.clear();
  result.profile = false;
  return result;
}

absl::StatusOr<LinkTable> ParseLinks(const fbs::Plan& plan, const std::vector<std::string>& texts) {
  std::vector<std::string> axes;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) axes.emplace_back(TextOf(plan.mesh()->Get(i)->name()));
  return targets::ParseLinks(texts, axes);
}

absl::StatusOr<std::unique_ptr<Session>> CreateSession(LoadedPlan plan, const RunOptions& options) {
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

}  // namespace bowline
