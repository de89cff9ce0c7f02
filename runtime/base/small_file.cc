#include "runtime/base/small_file.h"

#include <algorithm>

#include "runtime/base/mapped_file.h"

namespace bowline {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file.bytes().first(std::min(most, file.bytes().size()));
  return std::string(bytes.begin(), bytes.end());
}

std::string FirstLineOf(const std::string& path) {
  constexpr size_t kMost = 4096;
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMost);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

}  // namespace bowline
