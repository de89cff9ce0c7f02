//===- PlanPicture.h - a picture of time and memory of an entry *- C++ -*-===//

#ifndef BOWLINE_CHECKER_PLANPICTURE_H
#define BOWLINE_CHECKER_PLANPICTURE_H

#include "checker/PredictedTimeline.h"
#include "checker/Timeline.h"

#include "absl/strings/string_view.h"

#include <string>

namespace bowline {

/// Draws one run of the entry of this name as SVG: above, the commands of one rank of each role, as predictTimeline
/// says, in a row for each stream; below, the live bytes of each role over the same time. The picture has no scripts,
/// refers to no other file, and depends on the plan and the model alone. Its size grows with the number of rows and not
/// with that of commands. Returns the errors of predictTimeline, and kInvalidArgument where a command's time is not
/// finite.
absl::StatusOr<std::string> drawPlan(const Timeline &timeline, absl::string_view entry,
                                     const targets::CostModel &model);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANPICTURE_H
