#ifndef BOWLINE_RUNTIME_TEXT_NORMALIZER_H_
#define BOWLINE_RUNTIME_TEXT_NORMALIZER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/text/definition.h"

namespace bowline {

// Applies all steps, in order, to `text`, which is UTF-8.
absl::StatusOr<std::string> Normalize(const std::vector<NormalizerStep>& steps, absl::string_view text);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_NORMALIZER_H_
