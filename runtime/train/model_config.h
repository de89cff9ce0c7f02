#ifndef BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_
#define BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// The keys of config.json that determine a model's results (number of heads, rotation, epsilon of norms, activation,
// ...), where the config.json of `directory` has another value than the one that the plan was compiled from:
// '"rope_theta" is 500000.0, but 10000.0 in the plan'. The family that read the model knew these keys, and the plan
// lists them, with the values that absent ones mean. A key that one of both must have and lacks is not compared; older
// and newer forms of the rotation's keys are the same. Empty where the plan or the directory has no config.json.
// kInvalidArgument where one is no JSON object.
absl::StatusOr<std::vector<std::string>> DifferencesOfConfig(const fbs::Plan& plan, const std::string& directory);

// Whether the plan has a config.json and `directory` none that could be compared with it.
bool LacksConfig(const fbs::Plan& plan, const std::string& directory);

// kFailedPrecondition naming the file, the plan and every such difference.
absl::Status RequireSameConfig(const fbs::Plan& plan, absl::string_view plan_name, const std::string& directory);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_MODEL_CONFIG_H_
