#ifndef BOWLINE_CHECKER_COUNTEREXAMPLE_H
#define BOWLINE_CHECKER_COUNTEREXAMPLE_H

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

/// Returns a kAborted error: "the proof of PROOF fails: MESSAGE".
absl::Status counterexample(absl::string_view proof, absl::string_view message);

} // namespace bowline

#endif // BOWLINE_CHECKER_COUNTEREXAMPLE_H
