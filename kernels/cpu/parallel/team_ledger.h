#ifndef BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_

#include <algorithm>
#include <cstdint>

namespace bowline::kernels {

// Decides how many members of a team run a region, from the time that members waited for a processor and from idle
// processors that were seen.
//
// A thread that is taken off its processor in the middle of a chunk makes its team wait for milliseconds. That happens
// again and again when there are more runnable threads than processors. So a team gives up as many members as lack a
// processor, on the mean over some milliseconds in regions. It takes them back when a processor is seen idle
// (idle_watch.h): one, then two, then four at a time. When members that came back lack a processor again at once, the
// next try waits longer, but never so long that a team of 128 takes more than 100 ms to be whole again.
//
// Times are nanoseconds. Nothing here reads a clock.
class TeamLedger {
 public:
  static constexpr int64_t kPeriod = 4'000'000;     // time in regions from one account to the next
  static constexpr int64_t kTrial = 30'000'000;     // time in regions after which members that came back are kept
  static constexpr int64_t kLeastIdle = 4'000'000;  // how long a processor is idle before members come back
  static constexpr int64_t kMostIdle = 32'000'000;  // the same after tries that failed
  // Other programs now and then take less than this part of a processor of an idle machine.
  static constexpr double kTolerated = 0.25;

  // For a team of `size` members, the caller among them.
  explicit TeamLedger(int size) : size_(std::max(size, 1)), members_(size_) {}

  int size() const { return size_; }
  // How many members should run a region; at least the caller.
  int members() const { return members_; }
  bool whole() const { return members_ == size_; }

  // Records that the team ran a region in `elapsed` ns. `taken` is the sum of the ns that members, by their reports
  // since the last call, waited for a processor.
  void Ran(int64_t elapsed, int64_t taken);

  // Records that all checks from `since` to `until`, times of one clock, found an idle processor. since > until means
  // that the last check found none.
  void SeeIdle(int64_t since, int64_t until);

 private:
  void GiveUp(int lost);

  int size_, members_;
  int64_t elapsed_ = 0, taken_ = 0;  // since the last account
  bool settling_ = false;            // reports may still be of the time before members were given up
  int64_t since_growth_ = kTrial;    // time in regions; kTrial: long ago
  int step_ = 1;                     // members that come back next
  int64_t first_idle_ = kLeastIdle;  // before the first of them comes back
  int64_t seen_ = INT64_MIN;         // idleness up to here has been answered
  bool lost_ = false;                // members, since SeeIdle was called last
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_TEAM_LEDGER_H_
