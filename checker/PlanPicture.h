//===- PlanPicture.h - a picture of time and memory of an entry *- C++ -*-===//

#ifndef BOWLINE_CHECKER_PLANPICTURE_H
#define BOWLINE_CHECKER_PLANPICTURE_H

#include "checker/PredictedTimeline.h"
#include "checker/Timeline.h"

#include "absl/strings/string_view.h"

#include <string>

namespace bowline {

/// Draws one run of the entry of this name as SVG. The upper part has the commands that predictTimeline gives for one
/// rank of each role, with a row for each stream. The lower part has the live bytes of each role over the same time.
/// The picture has no scripts and refers to no other file. It depends on the plan and the model alone, and its size
/// grows with the number of rows, not of commands. Returns the errors of predictTimeline, and kInvalidArgument where
/// the time of a command is not finite.
absl::StatusOr<std::string> drawPlan(const Timeline &timeline, absl::string_view entry,
                                     const targets::CostModel &model);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANPICTURE_H
