#include "runtime/comm/group.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {

absl::Status CheckMembers(int rank, int ranks, absl::string_view name, absl::Span<const int> members) {
  const std::string what =
      absl::StrCat("communicator '", name, "' of ranks ", absl::StrJoin(members, ", "), " among ", ranks, ": ");
  for (int member : members) {
    if (member < 0 || member >= ranks)
      return absl::InvalidArgumentError(absl::StrCat(what, "there is no rank ", member));
    if (std::count(members.begin(), members.end(), member) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(what, "rank ", member, " is there twice"));
    }
  }
  if (std::count(members.begin(), members.end(), rank) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, "rank ", rank, ", which asks for it, is no member"));
  }
  return absl::OkStatus();
}

}  // namespace bowline
