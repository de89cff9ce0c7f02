#ifndef BOWLINE_RUNTIME_TOOLS_RESTARTS_H_
#define BOWLINE_RUNTIME_TOOLS_RESTARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tools/spawn.h"

namespace bowline {

struct RestartOptions {
  // The number of restarts in a row without a new checkpoint of `save_every` between the failures.
  int restarts = 0;
  // Steps between checkpoints. With 0 only the end of the run saves one, and that end may be the failure itself.
  int64_t save_every = 0;
  // The file of metrics. If the run begins at step 0 again, the file is emptied first.
  std::string metrics = {};
  std::string save;                  // the directory into which the run saves
  std::vector<std::string> resumed;  // the command line that goes on with the latest checkpoint of `save`
  std::string begin;                 // the begin of the run without a checkpoint, for messages: "step 0"
};

// Calls SpawnOnce, and again after each failure that a restart may avoid. It does not restart after an input refused
// before training (exit codes 1 and 2), numbers that are not finite, or a stop signal. The run continues from its
// latest checkpoint; until it has saved one, it begins as at first. A line on stderr gives the reason and the place.
// Returns the result of EndAs for the last start.
absl::StatusOr<int> SpawnWithRestarts(const SpawnOptions& options, const RestartOptions& restart);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RESTARTS_H_
