#include "runtime/base/progress_counter.h"

#include "runtime/base/futex.h"

namespace bowline {

void ProgressCounter::Advance() {
  const uint64_t now = value_.load(std::memory_order_relaxed) + 1;
  // Sequentially consistent, as the pair in WaitFor: one of the two threads sees the write of the other.
  value_.store(now, std::memory_order_seq_cst);
  if (wake_at_.load(std::memory_order_seq_cst) > now) return;
  wake_at_.store(kNobody, std::memory_order_seq_cst);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  WakeAll(wakes_);
}

void ProgressCounter::WaitFor(uint64_t target) {
  while (value_.load(std::memory_order_acquire) < target) {
    // Read before the target is registered: the thread that forgets the target changes `wakes_` afterwards.
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    uint64_t earliest = wake_at_.load(std::memory_order_seq_cst);
    while (earliest > target && !wake_at_.compare_exchange_weak(earliest, target, std::memory_order_seq_cst)) {
    }
    if (value_.load(std::memory_order_seq_cst) >= target) return;
    WaitWhile(wakes_, wakes);
  }
}

}  // namespace bowline
