#include "kernels/cpu/parallel/team_ledger.h"

#include <algorithm>

namespace bowline::kernels {

void TeamLedger::Enter(int64_t now, int64_t elapsed, int64_t alone) {
  // A part of what helpers cost is not seen here: the caches of others, and processors that are busy looking for work.
  const int64_t unseen = elapsed / 20;
  credit_ = std::min(credit_ + alone - elapsed - unseen, kMostCredit);
  best_ = std::max(best_, credit_);
  if (credit_ > 0) return;
  if (best_ >= 2 * kStake) patience_ = kPatience;
  const int64_t lost = std::min(kStake - credit_, kLongestPause / patience_);
  pause_end_ = now + elapsed + patience_ * lost;
  patience_ = std::min(2 * patience_, kMostPatience);
  credit_ = best_ = kStake;
}

}  // namespace bowline::kernels
