#ifndef BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_
#define BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace bowline {

// Plans name weights as today's Hugging Face files do. GPT-2's first files lack the prefix "transformer.", because only
// the model's body was saved. If a file has no `key`, look for this name; it is empty if there is none.
//
//   const auto* found = weights.Find(key);
//   if (found == nullptr) found = weights.Find(LegacyWeightKey(key));
inline absl::string_view LegacyWeightKey(absl::string_view key) {
  return absl::ConsumePrefix(&key, "transformer.") ? key : absl::string_view();
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_
