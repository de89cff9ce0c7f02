#include "kernels/cpu/parallel/team_ledger.h"

#include <algorithm>

namespace bowline::kernels {

void TeamLedger::Ran(int64_t elapsed, int64_t taken) {
  elapsed_ += elapsed;
  taken_ += taken;
  if (elapsed_ < kPeriod) return;
  const double lacking = static_cast<double>(taken_) / static_cast<double>(elapsed_);
  since_growth_ = std::min(since_growth_ + elapsed_, kTrial);
  elapsed_ = taken_ = 0;
  if (settling_) {
    settling_ = false;
  } else if (members_ > 1 && lacking >= kTolerated) {
    // Rounded up, but for the tolerated part. The mean may not exceed the members, yet a report may be of a longer
    // time.
    GiveUp(static_cast<int>(std::min(lacking + (1 - kTolerated), static_cast<double>(size_))));
  }
}

void TeamLedger::GiveUp(int lost) {
  members_ = std::max(1, members_ - lost);
  first_idle_ = since_growth_ < kTrial ? std::min(2 * first_idle_, kMostIdle) : kLeastIdle;
  step_ = 1;
  settling_ = true;
  lost_ = true;
}

void TeamLedger::SeeIdle(int64_t since, int64_t until) {
  if (whole() || since > until) return;
  if (lost_) {
    // Reports from before the team shrank say nothing about its members now.
    lost_ = false;
    seen_ = until;
  }
  if (until - std::max(since, seen_) < (step_ == 1 ? first_idle_ : kLeastIdle)) return;
  members_ = std::min(size_, members_ + step_);
  step_ = std::min(2 * step_, size_);
  since_growth_ = 0;
  seen_ = until;
}

}  // namespace bowline::kernels
