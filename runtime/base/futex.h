#ifndef BOWLINE_RUNTIME_BASE_FUTEX_H_
#define BOWLINE_RUNTIME_BASE_FUTEX_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bowline {

// Waits for another thread of the process without a lock; after a few microseconds the wait gives up the processor.
// std::atomic::wait would do, but has no deadline.

inline constexpr std::chrono::steady_clock::time_point kNoDeadline = std::chrono::steady_clock::time_point::max();

// Returns true when `word` is not `value`, false after the deadline. May return true early: check the word again.
bool WaitWhile(const std::atomic<uint32_t>& word, uint32_t value,
               std::chrono::steady_clock::time_point deadline = kNoDeadline);

// Wakes all threads that wait for `word`. The caller has changed its value before.
void WakeAll(const std::atomic<uint32_t>& word);

// Returns at `time` or just after it.
void SleepUntil(std::chrono::steady_clock::time_point time);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FUTEX_H_
