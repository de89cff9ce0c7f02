#include "runtime/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace bowline {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// About as long as falling asleep and being woken takes; longer would take the processor from the thread waited for.
constexpr int kSpins = 100;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// steady_clock is CLOCK_MONOTONIC, for which the futex takes absolute times too.
timespec ToTimespec(std::chrono::steady_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec result;
  result.tv_sec = static_cast<time_t>(seconds.count());
  result.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since - seconds).count());
  return result;
}

}  // namespace

bool WaitWhile(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::steady_clock::time_point deadline) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_seq_cst) != value) return true;
    Pause();
  }
  const timespec until = deadline == kNoDeadline ? timespec{} : ToTimespec(deadline);
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
                                deadline == kNoDeadline ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (result != 0 && errno == ETIMEDOUT) return word.load(std::memory_order_seq_cst) != value;
  return true;
}

void WakeAll(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

void SleepUntil(std::chrono::steady_clock::time_point time) {
  const timespec until = ToTimespec(time);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace bowline
