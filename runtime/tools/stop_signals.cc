#include "runtime/tools/stop_signals.h"

#include <csignal>

namespace bowline {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not wait");

void OnSignal(int) { stop_requested.store(true); }

}  // namespace

void RequestStop() { stop_requested.store(true); }

const std::atomic<bool>& CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  // Reset: the second signal has its usual effect. Restart: writes that are under way go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return stop_requested;
}

}  // namespace bowline
