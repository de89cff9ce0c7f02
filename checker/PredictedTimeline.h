//===- PredictedTimeline.h - when commands would run ------------*- C++ -*-===//
//
// Needs only a plan and no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_PREDICTEDTIMELINE_H
#define BOWLINE_CHECKER_PREDICTEDTIMELINE_H

#include "checker/Timeline.h"
#include "runtime/base/status.h"
#include "targets/target.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <vector>

namespace bowline {

struct PredictedCommand {
  CommandSite site;
  double begin = 0, end = 0; ///< seconds
};

/// Returns the cost model of the plan's target with the links of `texts`, each "[AXIS:]LINK" (targets/costs/link.h). A
/// target that this build lacks is replaced by the default one. Returns kInvalidArgument for a text that is no link of
/// an axis of the plan's mesh.
absl::StatusOr<targets::CostModel> costModelOf(const fbs::Plan &plan, absl::Span<const std::string> texts = {});

/// Returns, by role, the index of the entry of this name. Returns kNotFound, listing names, where a role has none.
absl::StatusOr<std::vector<uint32_t>> entriesOf(const Timeline &timeline, absl::string_view entry);

/// Simulates one run of the entry of this name and returns, by role, the times at which a rank of that role runs its
/// commands. Streams run their commands in order, waits follow their events, and a communication begins when all
/// members have reached it. As on CPUs, a command is issued when all earlier commands of the first stream have ended.
/// Durations are those of `model`; signals are left out, and a wait lasts as long as its stream waits. Returns kAborted
/// where ranks of the plan would wait for each other forever, and kNotFound where a role has no entry of this name.
absl::StatusOr<std::vector<std::vector<PredictedCommand>>>
predictTimeline(const Timeline &timeline, absl::string_view entry, const targets::CostModel &model);

} // namespace bowline

#endif // BOWLINE_CHECKER_PREDICTEDTIMELINE_H
