#ifndef BOWLINE_RUNTIME_TOOLS_SPAWN_H_
#define BOWLINE_RUNTIME_TOOLS_SPAWN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// Starts this program `ranks` times on this machine, as ranks that meet at a socket of the loopback interface, and
// waits for all. `tool` is its name, with which its messages begin. `arguments` are the command line of each, without
// the program's name; --rank, --world-size,
// --local-rank and --rendezvous are put before them.
//
// Rank 0 has this process's standard output; everything else that ranks print comes line by line to this one's standard
// error with "[rank 3] " before it, and error messages that several ranks have alike once, with the ranks. Stop signals
// (stop_signals.h) are passed on; so is a stop by the terminal. A rank that fails ends the others: they get a few
// seconds to say what they waited for. No process outlives this one, even when it is killed.
//
// The exit code: that of the rank that failed first; 3 when a signal ended it, which is said; kStoppedExitCode when
// ranks ended with it after a stop signal was passed on. When such a signal killed a rank, it ends this process too.
// kResourceExhausted when the system has no more processes.
absl::StatusOr<int> SpawnRanks(absl::string_view tool, int ranks, const std::vector<std::string>& arguments);

// In rank 0 of the processes that SpawnRanks started, the socket on which it waits for the others; -1 in the other
// ranks. Nothing in a process that SpawnRanks did not start.
std::optional<int> ListenerOfSpawner();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_SPAWN_H_
