//===- StepActivities.h - how the ranks of an entry spend their time *- C++ -*-===//

#ifndef BOWLINE_CHECKER_STEPACTIVITIES_H
#define BOWLINE_CHECKER_STEPACTIVITIES_H

#include "checker/PredictedTimeline.h"
#include "checker/Timeline.h"

#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace bowline {

/// The purpose of a command, in the order in which a legend lists them.
enum class Activity { Forward, Backward, BackwardInput, BackwardWeight, Update, Communication, Copy, Other };

inline constexpr size_t kActivities = static_cast<size_t>(Activity::Other) + 1;

/// Returns the activity of a command; nothing for signals and waits. Launches of training are classified by the names
/// that the compiler gives to their segments, such as "backward_input.3". In a segment with several activities the
/// names of the commands' sources decide, such as "gradient of lm_head".
std::optional<Activity> activityOf(const Timeline &timeline, CommandSite site);

/// Returns the pipeline stage in the name of a segment, such as 3 for "forward.3"; nothing where the name has none.
std::optional<uint32_t> stageOf(const fbs::Segment &segment);

/// Consecutive commands on one stream without gaps, all of one activity and of one call of a segment.
struct ActivityBlock {
  Activity activity = Activity::Other;
  double begin = 0, end = 0;              ///< seconds
  std::vector<PredictedCommand> commands; ///< not empty
};

/// One stream of one role, with its blocks in the order of time.
struct ActivityRow {
  uint32_t role = 0;
  uint32_t stream = 0;
  std::vector<ActivityBlock> blocks;
};

/// The time of one run of an entry, divided by activity, for the ranks of all roles.
class StepActivities {
public:
  /// `entries` and `predicted`, both indexed by role, are the results of entriesOf and predictTimeline. Returns
  /// kInvalidArgument, naming the command, where the plan's costs give a command a time that is negative or not finite.
  static absl::StatusOr<StepActivities> of(const Timeline &timeline, absl::Span<const uint32_t> entries,
                                           absl::Span<const std::vector<PredictedCommand>> predicted);

  /// One row for each role and stream, also where the stream has no commands.
  const std::vector<ActivityRow> &rows() const { return rows_; }
  /// The time from the start of the first command to the end of the last one, over all roles.
  double seconds() const { return seconds_; }
  /// The share of `seconds` in which the role's first stream is idle, from 0 to 1; 0 if `seconds` is 0.
  double idleShare(uint32_t role) const;
  /// The share of `seconds` with exposed communication, from 0 to 1: a stream of the role communicates while none
  /// computes or copies. 0 if `seconds` is 0.
  double exposedShare(uint32_t role) const;
  /// Returns whether any role has a communication.
  bool communicates() const;

private:
  std::vector<ActivityRow> rows_;
  std::vector<double> busy_;    ///< busy seconds of each role's first stream; index: role
  std::vector<double> exposed_; ///< seconds of exposed communication; index: role
  double seconds_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_STEPACTIVITIES_H
