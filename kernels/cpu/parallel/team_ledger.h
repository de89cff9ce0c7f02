#ifndef BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_

#include <cstdint>

namespace bowline::kernels {

// Keeps account of the time that a team saves its caller, and says when the caller should rather work alone.
//
// A thread that is taken off its processor in the middle of a chunk, because there are more runnable threads than
// processors, makes its team wait for milliseconds: for more than the whole region would take one thread. How often
// that happens cannot be foreseen, but what it costs can be added up. A team loses no more than it has saved before.
// When that is used up its caller works alone, for kPatience times as long as was lost, and then tries again with a
// small stake; for twice as long after each try that saved nothing. So a team that is no use costs its caller less than
// 1 / kPatience of the time. Tries cost more than what is counted here: for some time after one the operating system
// gives the caller less of a processor that others want, too.
class TeamLedger {
 public:
  static constexpr int64_t kMostCredit = 20'000'000;  // ns; what was saved before is forgotten
  static constexpr int64_t kStake = 300'000;          // ns; some regions, in which helpers wake up
  static constexpr int64_t kPatience = 200;
  static constexpr int64_t kMostPatience = 64 * kPatience;
  static constexpr int64_t kLongestPause = 4'000'000'000;  // ns; until a machine is noticed to be idle again

  // Whether the team should run a region that begins at `now`, in ns of a clock that never goes back.
  bool TeamPays(int64_t now) const { return now >= pause_end_; }

  // The team ran a region that began at `now` in `elapsed` ns; its caller alone would have taken `alone` ns.
  void Enter(int64_t now, int64_t elapsed, int64_t alone);

 private:
  int64_t credit_ = kStake;  // ns
  int64_t best_ = kStake;    // since the last pause
  int64_t patience_ = kPatience;
  int64_t pause_end_ = INT64_MIN;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_
