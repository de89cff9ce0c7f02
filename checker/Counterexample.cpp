#include "checker/Counterexample.h"

#include "absl/strings/str_cat.h"

namespace bowline {

absl::Status counterexample(absl::string_view proof, absl::string_view message) {
  return absl::AbortedError(absl::StrCat("the proof of ", proof, " fails: ", message));
}

} // namespace bowline
