#ifndef BOWLINE_RUNTIME_TOOLS_RUN_FLAGS_H_
#define BOWLINE_RUNTIME_TOOLS_RUN_FLAGS_H_

#include <vector>

#include "runtime/base/status.h"
#include "runtime/tools/run_options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bowline {

// Options of bowline-run's command line by the kind of plan that they are for.
struct RunModes {
  // Those of `steps` alone are for plans that serve, as are those of `generation`.
  std::vector<CLI::Option*> training, generation, steps;
};

// Adds all options to `app`; parsing fills `options`, which must stay.
RunModes AddRunOptions(CLI::App& app, RunOptions& options);

// Returns kInvalidArgument when the options that were given do not fit to a plan that trains, that generates text, or
// that serves.
absl::Status CheckTrainingOptions(const RunOptions& options, const RunModes& modes);
absl::Status CheckGenerationOptions(const RunOptions& options, const RunModes& modes);
absl::Status CheckStepsOptions(const RunOptions& options, const RunModes& modes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_FLAGS_H_
