#ifndef BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_
#define BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace bowline {

// Plans name weights as today's Hugging Face files do. GPT-2's first files were saved from the body of the model, which
// lacks the prefix "transformer.". Where a file does not hold `key`, look for this name; empty when there is none.
//
//   const auto* found = weights.Find(key);
//   if (found == nullptr) found = weights.Find(LegacyWeightKey(key));
inline absl::string_view LegacyWeightKey(absl::string_view key) {
  return absl::ConsumePrefix(&key, "transformer.") ? key : absl::string_view();
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_WEIGHT_KEY_H_
