#include "runtime/tools/stop_signals.h"

#include <unistd.h>

namespace bowline {
namespace {

std::atomic<bool> stop_requested{false}, signal_came{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not wait");

void EndAtOnce(int) { ::_exit(kStoppedExitCode); }

void OnSignal(int signal) {
  stop_requested.store(true);
  if (!signal_came.exchange(true)) return;
  // The second one has its usual effect, when this handler returns and it is no longer blocked.
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void Install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // Writes that are under way go on.
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) {
    if (signal != SIGHUP || !IsIgnored(signal)) ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

bool IsIgnored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void EndOnStopSignals() {
  Install(&EndAtOnce);
  sigset_t all;
  ::sigemptyset(&all);
  for (const int signal : kStopSignals) ::sigaddset(&all, signal);
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
}

void RequestStop() { stop_requested.store(true); }

const std::atomic<bool>& CatchStopSignals() {
  Install(&OnSignal);
  return stop_requested;
}

bool StopSignalCame() { return signal_came.load(); }

}  // namespace bowline
