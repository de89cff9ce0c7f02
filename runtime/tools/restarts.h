#ifndef BOWLINE_RUNTIME_TOOLS_RESTARTS_H_
#define BOWLINE_RUNTIME_TOOLS_RESTARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tools/spawn.h"

namespace bowline {

struct RestartOptions {
  // How often in a row the run is started again when no checkpoint of `save_every` was saved between two failures.
  int restarts = 0;
  // 0: no checkpoint is saved but by the end of the run, which may be the failure itself.
  int64_t save_every = 0;
  // The file to which a run that begins at step 0 writes metrics, so that it is empty when it does so again.
  std::string metrics = {};
  std::string save;                  // the directory into which the run saves
  std::vector<std::string> resumed;  // the command line that goes on with the latest checkpoint of `save`
  std::string begin;                 // where the run begins otherwise: "step 0"
};

// SpawnOnce, again after each failure that may not come again: any but an input that is refused before training (exit
// codes 1 and 2), numbers that are not finite, and a stop signal. The run goes on with the latest checkpoint once it
// has saved one itself, and until then begins as at first. A line on stderr says why and from where. The result is that
// of the last start, as EndAs has it.
absl::StatusOr<int> SpawnWithRestarts(const SpawnOptions& options, const RestartOptions& restart);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RESTARTS_H_
