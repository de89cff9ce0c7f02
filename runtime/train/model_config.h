#ifndef BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_
#define BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// Compares the config.json of `directory` with that of the plan, and describes each difference:
// '"rope_theta" is 500000.0, but 10000.0 in the plan'. Compares only keys that determine the model's results
// (number of heads, rotation, epsilon of norms, activation, ...). The plan lists these keys with their
// defaults. A key without a default that one file lacks is not compared; old and new spellings of the
// rotation's keys are equal. Empty where the plan or the directory has no config.json. Returns
// kInvalidArgument where a file is not a JSON object.
absl::StatusOr<std::vector<std::string>> DifferencesOfConfig(const fbs::Plan& plan, const std::string& directory);

// Returns whether the plan has a config.json but `directory` has none to compare with it.
bool LacksConfig(const fbs::Plan& plan, const std::string& directory);

// Returns kFailedPrecondition if there is a difference, naming the file, the plan and all differences.
absl::Status RequireSameConfig(const fbs::Plan& plan, absl::string_view plan_name, const std::string& directory);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_
