#ifndef BOWLINE_RUNTIME_TOOLS_PROFILE_TABLE_H_
#define BOWLINE_RUNTIME_TOOLS_PROFILE_TABLE_H_

#include <string>

#include "absl/types/span.h"
#include "runtime/executor/session.h"

namespace bowline {

// Time, launches and rates by kernel, the slowest first, as a table of text. Kernels of one name (shapes of a matmul,
// say) are one row.
std::string ProfileTable(absl::Span<const ProfileRow> rows);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_PROFILE_TABLE_H_
