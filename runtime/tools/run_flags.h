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
  // Plans that serve take the options of `generation` and those of `steps`.
  std::vector<CLI::Option*> training, generation, steps;
};

// Adds all options to `app`; parsing fills `options`, which must stay.
RunModes AddRunOptions(CLI::App& app, RunOptions& options);

// Each returns kInvalidArgument if the given options do not fit a plan of one kind: plans that train, generate text, or
// serve.
absl::Status CheckTrainingOptions(const RunOptions& options, const RunModes& modes);
absl::Status CheckGenerationOptions(const RunOptions& options, const RunModes& modes);
absl::Status CheckStepsOptions(const RunOptions& options, const RunModes& modes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_FLAGS_H_
