#include "kernels/cpu/parallel/idle_watch.h"

#include <pthread.h>
#include <sched.h>

#include <ctime>
#include <system_error>
#include <thread>

#include "kernels/cpu/parallel/clock.h"
#include "kernels/cpu/parallel/signals_blocked.h"

namespace bowline::kernels {

IdleWatch& IdleWatch::OfProcess() {
  // Never destroyed: its thread looks until the process ends.
  static IdleWatch& watch = *new IdleWatch;
  return watch;
}

IdleWatch::IdleWatch() {
  const SignalsBlocked blocked;
  try {
    std::thread(&IdleWatch::Watch, this).detach();
  } catch (const std::system_error&) {
    runs_ = false;  // teams try without knowing
  }
}

IdleWatch::Idle IdleWatch::Ask(int64_t now) {
  if (!runs_) return {0, now};
  if (wanted_until_.load(std::memory_order_relaxed) < now + kWanted / 2) {
    wanted_until_.store(now + kWanted, std::memory_order_seq_cst);
    if (sleeps_.load(std::memory_order_seq_cst) != 0) {
      sleeps_.store(0, std::memory_order_seq_cst);
      sleeps_.notify_one();
    }
  }
  const int64_t until = until_.load(std::memory_order_acquire);
  return {since_.load(std::memory_order_acquire), until};
}

void IdleWatch::Watch() {
  const sched_param none = {};
  // Where this is refused, looks disturb others a little and say "idle" more often.
  static_cast<void>(pthread_setschedparam(pthread_self(), SCHED_IDLE, &none));
  for (;;) {
    const auto wanted = [this] { return CoarseNow() < wanted_until_.load(std::memory_order_seq_cst); };
    while (!wanted()) {
      since_.store(INT64_MAX, std::memory_order_release);
      sleeps_.store(1, std::memory_order_seq_cst);
      if (!wanted()) sleeps_.wait(1);
      sleeps_.store(0, std::memory_order_relaxed);
    }
    if (!SeesIdleProcessor()) {
      since_.store(INT64_MAX, std::memory_order_release);
      continue;
    }
    const int64_t now = Now();
    // Where this thread was kept from its next look, other programs had the processors.
    if (now > until_.load(std::memory_order_relaxed) + kMostBetweenLooks) {
      since_.store(INT64_MAX, std::memory_order_release);
    }
    until_.store(now, std::memory_order_release);
    if (since_.load(std::memory_order_relaxed) == INT64_MAX) since_.store(now, std::memory_order_release);
  }
}

bool IdleWatch::SeesIdleProcessor() {
  const int64_t due = Now() + kBetweenLooks;
  const timespec pause = {0, kBetweenLooks};
  nanosleep(&pause, nullptr);
  const int64_t begin = Now();
  if (begin > due + kInTime) return false;
  const int64_t given = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  int64_t end = begin;
  while (end < begin + kMoment) end = Now();
  return (Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - given) * 5 > (end - begin) * 4;
}

}  // namespace bowline::kernels
