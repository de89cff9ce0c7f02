#ifndef BOWLINE_RUNTIME_BASE_PROGRESS_COUNTER_H_
#define BOWLINE_RUNTIME_BASE_PROGRESS_COUNTER_H_

#include <atomic>
#include <cstdint>

namespace bowline {

// A counter that one thread advances and others wait for. Writes before Advance are visible after WaitFor.
class ProgressCounter {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }

  // Adds one. Makes a system call only if a thread waits for this very value.
  void Advance();

  // Returns when the count is at least `target`.
  void WaitFor(uint64_t target);

 private:
  static constexpr uint64_t kNobody = UINT64_MAX;

  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> wake_at_{kNobody};  // the smallest target of sleeping threads
  std::atomic<uint32_t> wakes_{0};          // the word that waiting threads sleep on
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_PROGRESS_COUNTER_H_
