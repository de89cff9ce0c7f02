#include "kernels/cpu/parallel/team_ledger.h"

#include <algorithm>

namespace bowline::kernels {

void TeamLedger::Enter(int64_t now, int64_t elapsed, int64_t alone) {
  // A part of what helpers cost is not seen here: the caches of others, and processors that are busy looking for work.
  const int64_t unseen = elapsed / 20;
  credit_ = std::min(credit_ + alone - elapsed - unseen, kMostCredit);
  if (credit_ > 0) return;
  const int64_t lost = std::min(kStake - credit_, kLongestPause / kPatience);
  pause_end_ = now + elapsed + kPatience * lost;
  credit_ = kStake;
}

}  // namespace bowline::kernels
