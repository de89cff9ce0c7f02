#ifndef BOWLINE_RUNTIME_COMM_AGREE_H_
#define BOWLINE_RUNTIME_COMM_AGREE_H_

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// Compares named values, such as the plan's hash and the options of the run, among the members of an exchange. Each
// member calls this with its own values before it relies on their equality. Returns when all values were compared.
//
// Returns kFailedPrecondition on every member if the values or the sets of names differ. The message is the same on all
// members: the first such name, two members and their values. The exchange stays usable. Other errors are its own.
absl::Status AgreeOn(hal::Exchange& members, absl::Span<const std::pair<std::string, std::string>> values);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_AGREE_H_
