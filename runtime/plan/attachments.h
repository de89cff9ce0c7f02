#ifndef BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_
#define BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_

// Texts that plans of models carry: JSON objects, which VerifyPlan checks. Plans may carry others, of which it knows
// only the names.

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// The config.json that the model was read from, as it was.
inline constexpr char kConfigAttachment[] = "config.json";

// The keys of config.json that determine the model's results: a JSON object, each key with an object, whose "null" says
// whether null is a value, and not the same as an absent key, and whose "absent" is the value that an absent key means,
// where there is one. Other keys are bounds, initial values, bookkeeping.
inline constexpr char kFunctionKeysAttachment[] = "function_keys.json";

// Which tensors files of the model may hold although they are no parameters of it: a JSON object, each name with the
// key of the parameter of which it must be a copy, or "".
inline constexpr char kIgnoredTensorsAttachment[] = "ignored_tensors.json";

// The settings of training that a plan computes, and that decide how a run goes on: a JSON object, each name of a flag
// of the compiler without its dashes with a number or a text.
inline constexpr char kRecipeAttachment[] = "recipe.json";

// Whether the text of this name is one of those above.
bool IsJsonAttachment(absl::string_view name);

// The object that the text of one of the names above is. kInvalidArgument where the text has another form.
absl::StatusOr<nlohmann::json> ParseAttachment(absl::string_view name, absl::string_view text);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_
