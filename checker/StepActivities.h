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

/// The purpose of a command. The order is that of a legend.
enum class Activity { Forward, Backward, BackwardInput, BackwardWeight, Update, Communication, Copy, Other };

inline constexpr size_t kActivities = static_cast<size_t>(Activity::Other) + 1;

/// The activity of a command; absent for signals and waits. In training, launches are told apart by the names that the
/// compiler gives to segments, "backward_input.3", and by those of the sources in a segment that has several
/// activities, "gradient of lm_head".
std::optional<Activity> activityOf(const Timeline &timeline, CommandSite site);

/// The pipeline's stage that a segment belongs to: 3 of "forward.3"; absent where its name has none.
std::optional<uint32_t> stageOf(const fbs::Segment &segment);

/// Commands of one activity and one call of a segment that follow each other on a stream without a gap.
struct ActivityBlock {
  Activity activity = Activity::Other;
  double begin = 0, end = 0;              ///< seconds
  std::vector<PredictedCommand> commands; ///< not empty
};

/// The blocks of one stream, in the order of time.
struct ActivityRow {
  uint32_t role = 0;
  uint32_t stream = 0;
  std::vector<ActivityBlock> blocks;
};

/// How the ranks of all roles spend the time of one run of an entry.
class StepActivities {
public:
  /// `entries` and `predicted`, both by role, are those of entriesOf and predictTimeline. Returns kInvalidArgument,
  /// naming the command, where the costs of the plan give a command a time that is negative or not finite.
  static absl::StatusOr<StepActivities> of(const Timeline &timeline, absl::Span<const uint32_t> entries,
                                           absl::Span<const std::vector<PredictedCommand>> predicted);

  /// A row for each role and stream, also for streams without commands.
  const std::vector<ActivityRow> &rows() const { return rows_; }
  /// From the begin of the first command to the end of the last one, over all roles.
  double seconds() const { return seconds_; }
  /// The share of `seconds` in which the first stream of the role runs no command, from 0 to 1; 0 if `seconds` is 0.
  double idleShare(uint32_t role) const;
  /// The share of `seconds` in which a stream of the role communicates and none computes or copies, from 0 to 1: the
  /// communication that is exposed; 0 if `seconds` is 0.
  double exposedShare(uint32_t role) const;
  /// Whether a role communicates at all.
  bool communicates() const;

private:
  std::vector<ActivityRow> rows_;
  std::vector<double> busy_;    ///< seconds of the first stream, by role
  std::vector<double> exposed_; ///< seconds, by role
  double seconds_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_STEPACTIVITIES_H
