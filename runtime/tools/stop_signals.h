#ifndef BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_
#define BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_

#include <array>
#include <atomic>
#include <csignal>

namespace bowline {

// The signals by which users, terminals and schedulers ask a run to stop.
inline constexpr std::array<int, 4> kStopSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// The exit code of a run that such a signal ended before its last step (EX_TEMPFAIL of sysexits.h): to be started
// again.
inline constexpr int kStoppedExitCode = 75;

// Returns whether this process ignores the signal, as it does with SIGHUP under `nohup`. The caller must keep that.
bool IsIgnored(int signal);

// Makes a stop signal end the process at once with kStoppedExitCode, until CatchStopSignals. Call this first; the
// program that starts this one blocks the signals until then.
void EndOnStopSignals();

// Makes the first stop signal a request to finish the current work; a second one ends the process at once. The result
// becomes true with the request. A SIGHUP that is ignored stays ignored.
const std::atomic<bool>& CatchStopSignals();

// Makes the same request as the first signal, without one.
void RequestStop();

// Returns whether a signal came since CatchStopSignals.
bool StopSignalCame();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_
