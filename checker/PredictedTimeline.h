//===- PredictedTimeline.h - when commands would run ------------*- C++ -*-===//
//
// This uses no MLIR: a plan is enough.
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

/// The cost model of the plan's target, or of the default one if this build does not know it, with the links of
/// `texts`, "[AXIS:]LINK" each (targets/costs/link.h). Returns kInvalidArgument for texts that are no links of the
/// plan's axes.
absl::StatusOr<targets::CostModel> costModelOf(const fbs::Plan &plan, absl::Span<const std::string> texts = {});

/// The index of each role's entry of this name. Returns kNotFound, with the plan's names, where a role has none.
absl::StatusOr<std::vector<uint32_t>> entriesOf(const Timeline &timeline, absl::string_view entry);

/// For each role, when one of its ranks runs the commands of the entry of this name: streams run in order, waits as
/// their events say, a command is issued when all earlier ones of the first stream are over, as on CPUs, and a
/// communication begins when all its members have come to it. Commands take the time that the model says; signals are
/// left out, and waits take as long as their stream waits. All ranks of a role do the same. Returns kAborted where the
/// plan's ranks would wait for each other for ever, kNotFound where a role has no such entry.
absl::StatusOr<std::vector<std::vector<PredictedCommand>>>
predictTimeline(const Timeline &timeline, absl::string_view entry, const targets::CostModel &model);

} // namespace bowline

#endif // BOWLINE_CHECKER_PREDICTEDTIMELINE_H
