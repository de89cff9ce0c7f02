#ifndef BOWLINE_RUNTIME_COMM_AGREE_H_
#define BOWLINE_RUNTIME_COMM_AGREE_H_

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// Compares named values among the members of an exchange: all call it with their own, say the plan's hash and the
// options of the run, before they do anything that presumes them equal. Returns when all were compared.
//
// kFailedPrecondition on every member, with the same text, when one has another value or another set of names: names
// the first such name, two members and what each has. The exchange goes on in that case. Other errors are its own.
absl::Status AgreeOn(hal::Exchange& members, absl::Span<const std::pair<std::string, std::string>> values);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_AGREE_H_
