#include "runtime/base/text_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/mapped_file.h"

namespace bowline {

absl::Status CheckTextFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view format = ForeignFormatOf(file.bytes());
  if (format.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' cannot be read: ", format));
}

}  // namespace bowline
