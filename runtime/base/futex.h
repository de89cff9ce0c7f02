#ifndef BOWLINE_RUNTIME_BASE_FUTEX_H_
#define BOWLINE_RUNTIME_BASE_FUTEX_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bowline {

// Waiting for another thread of the process without a lock and, after a few microseconds, without the processor.
// std::atomic::wait would do but for its lack of a deadline.

inline constexpr std::chrono::steady_clock::time_point kNoDeadline = std::chrono::steady_clock::time_point::max();

// Returns true when `word` is not `value`, false after the deadline. May return true early: look again.
bool WaitWhile(const std::atomic<uint32_t>& word, uint32_t value,
               std::chrono::steady_clock::time_point deadline = kNoDeadline);

// Ends the waits of all threads for `word`, whose value the caller changed before.
void WakeAll(const std::atomic<uint32_t>& word);

// Returns at `time` or just after it.
void SleepUntil(std::chrono::steady_clock::time_point time);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FUTEX_H_
