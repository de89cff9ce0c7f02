#ifndef BOWLINE_RUNTIME_TOOLS_SPAWN_H_
#define BOWLINE_RUNTIME_TOOLS_SPAWN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// The descriptors that a process has from the one that started it; -1 for those of another rank.
struct SpawnedRank {
  int listener = -1;  // the socket on which rank 0 waits for the others
  int reports = -1;   // the pipe on which rank 0 says how far it is
};

// A message of rank 0 to the process that started it.
enum class SpawnReport : char {
  kAllMet = 'm',
  kTraining = 't',  // all inputs were checked, and training begins
};
void Report(const SpawnedRank& self, SpawnReport report);

struct SpawnOptions {
  std::string tool;  // this program's name, with which its messages begin
  // The processes to start, each a rank; 0: a single one that is the whole run and has this process's standard input,
  // output and error.
  int ranks = 0;
  // The command line of each, without the program's name; --rank, --world-size, --local-rank and --rendezvous are put
  // before them for ranks.
  std::vector<std::string> arguments;
};

// How the processes of a run ended.
struct SpawnEnd {
  int exit_code = 0;
  std::string failure;         // "rank 3 (pid 77) was ended by signal 9 (Killed)": the first one
  bool asked_to_stop = false;  // by a stop signal, which was passed on
  int ended_by = 0;            // the stop signal that killed a rank, after which this process has its default effect
  bool trained = false;        // rank 0 said kTraining
};

// Starts this program as all processes of a run on this machine, ranks of which meet at a socket of the loopback
// interface, and waits for all.
//
// Rank 0 has this process's standard output; everything else that ranks print comes line by line to this one's standard
// error with "[rank 3] " before it, and error messages that several ranks have alike once, with the ranks. Stop signals
// (stop_signals.h) are passed on; so is a stop by the terminal. If a rank fails, the others have a few seconds to print
// the rank that they waited for, and are then ended. Until rank 0 reports that all ranks have met, a rank that ends or
// stays stopped ends the others at once, because they would wait for it. No process outlives this one, even if killed.
//
// The exit code is that of the rank that failed first; 3 if a signal ended or stopped it, or if it ended with 0 before
// all had met, with a message; kStoppedExitCode if ranks ended with that code after a stop signal was passed on.
// Returns kResourceExhausted if the system has no more processes.
absl::StatusOr<SpawnEnd> SpawnOnce(const SpawnOptions& options);

// Ends this process by the stop signal that killed a rank; otherwise the exit code.
int EndAs(const SpawnEnd& end);

// SpawnOnce of `ranks` >= 1, and EndAs.
absl::StatusOr<int> SpawnRanks(absl::string_view tool, int ranks, const std::vector<std::string>& arguments);

// Returns nothing in a process that SpawnRanks did not start.
std::optional<SpawnedRank> FromSpawner();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_SPAWN_H_
