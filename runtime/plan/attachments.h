#ifndef BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_
#define BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_

namespace bowline {

// Names of texts that plans carry.

// The config.json that the model was read from, as it was.
inline constexpr char kConfigAttachment[] = "config.json";

// Which keys of config.json say what the model computes: a JSON object, each key with whether null is one of its values
// and not its default. Other keys are bounds, initial values, bookkeeping.
inline constexpr char kFunctionKeysAttachment[] = "function_keys.json";

// Which tensors files of the model may hold although they are no parameters of it: a JSON list of names.
inline constexpr char kIgnoredTensorsAttachment[] = "ignored_tensors.json";

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_ATTACHMENTS_H_
