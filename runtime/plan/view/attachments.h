#ifndef BOWLINE_RUNTIME_PLAN_VIEW_ATTACHMENTS_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_ATTACHMENTS_H_

// The JSON texts that plans of models carry (Plan.attachments). VerifyPlan checks that they have the forms below. Plans
// may carry other texts, of which VerifyPlan checks only the names.

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// The config.json of the model, unchanged.
inline constexpr char kConfigAttachment[] = "config.json";

// The keys of config.json that determine the model's results: a JSON object with one object per key. Its "null" says
// whether null is a value, different from an absent key. Its "absent", if there is one, is the value that an absent key
// stands for. All other keys of config.json are bounds, initial values or bookkeeping.
inline constexpr char kFunctionKeysAttachment[] = "function_keys.json";

// The tensors that files of the model may hold although they are no parameters: a JSON object that maps each tensor's
// name to the key of the parameter that it must be a copy of, or to "".
inline constexpr char kIgnoredTensorsAttachment[] = "ignored_tensors.json";

// The training settings that a plan computes and that determine how a run continues: a JSON object that maps compiler
// flags, without their dashes, to numbers or texts.
inline constexpr char kRecipeAttachment[] = "recipe.json";

// Returns whether `name` is one of the names above.
bool IsJsonAttachment(absl::string_view name);

// Parses the text of an attachment that has one of the names above. Returns kInvalidArgument if it has another form.
absl::StatusOr<nlohmann::json> ParseAttachment(absl::string_view name, absl::string_view text);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_ATTACHMENTS_H_
