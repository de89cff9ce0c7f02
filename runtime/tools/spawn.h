#ifndef BOWLINE_RUNTIME_TOOLS_SPAWN_H_
#define BOWLINE_RUNTIME_TOOLS_SPAWN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// What a process that SpawnRanks started has of the one that started it; -1 for what another rank has.
struct SpawnedRank {
  int listener = -1;  // the socket on which rank 0 waits for the others
  int reports = -1;   // the pipe on which rank 0 says how far it is
};

// What rank 0 says to the process that started it.
enum class SpawnReport : char { kAllMet = 'm' };
void Report(const SpawnedRank& self, SpawnReport report);

// Starts this program `ranks` times on this machine, as ranks that meet at a socket of the loopback interface, and
// waits for all. `tool` is its name, with which its messages begin. `arguments` are the command line of each, without
// the program's name; --rank, --world-size,
// --local-rank and --rendezvous are put before them.
//
// Rank 0 has this process's standard output; everything else that ranks print comes line by line to this one's standard
// error with "[rank 3] " before it, and error messages that several ranks have alike once, with the ranks. Stop signals
// (stop_signals.h) are passed on; so is a stop by the terminal. A rank that fails ends the others: they get a few
// seconds to say what they waited for. Before rank 0 has said that all have met, any rank that ends, and one that stays
// stopped, ends them at once, for they would wait for it. No process outlives this one, even when it is killed.
//
// The exit code: that of the rank that failed first; 3 when a signal ended or stopped it, or it ended with 0 before all
// had met, which is said; kStoppedExitCode when ranks ended with it after a stop signal was passed on. When such a
// signal killed a rank, it ends this process too. kResourceExhausted when the system has no more processes.
absl::StatusOr<int> SpawnRanks(absl::string_view tool, int ranks, const std::vector<std::string>& arguments);

// Nothing in a process that SpawnRanks did not start.
std::optional<SpawnedRank> FromSpawner();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_SPAWN_H_
