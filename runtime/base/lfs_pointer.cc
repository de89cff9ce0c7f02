#include "runtime/base/lfs_pointer.h"

#include <algorithm>
#include <iterator>

namespace bowline {

absl::Status RefuseLfsPointer(absl::string_view path, absl::Span<const uint8_t> bytes) {
  // The first line of every pointer; the second is that of the format's first releases. The specification gives
  // pointers less than 1024 bytes.
  constexpr absl::string_view kFirstLines[] = {"version https://git-lfs.github.com/spec/v1",
                                               "version https://hawser.github.com/spec/v1"};
  constexpr size_t kMostBytes = 1024;
  if (bytes.size() >= kMostBytes) return absl::OkStatus();
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const absl::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (std::find(std::begin(kFirstLines), std::end(kFirstLines), line) == std::end(kFirstLines)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "' is a Git LFS pointer, not the file itself; run `git lfs pull` in the repository that has it"));
}

}  // namespace bowline
