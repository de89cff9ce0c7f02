#include "runtime/base/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"

namespace bowline {
namespace {

// Truncates `file`, whose size is `size`, after its last newline.
absl::Status DropUnfinishedLine(int file, off_t size, const std::string& path) {
  char block[4096];
  off_t end = size;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof(block)));
    const ssize_t count = ::pread(file, block, static_cast<size_t>(end - begin), begin);
    if (count < 0) return ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
    const size_t newline = absl::string_view(block, static_cast<size_t>(count)).rfind('\n');
    if (newline != absl::string_view::npos) {
      end = begin + static_cast<off_t>(newline) + 1;
      break;
    }
    end = begin;
  }
  if (end != size && ::ftruncate(file, end) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("cannot cut the unfinished last line of '", path, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonLinesWriter> JsonLinesWriter::Open(const std::string& path, Mode mode) {
  const bool append = mode == Mode::kAppend;
  const std::string what = absl::StrCat("cannot write '", path, "'");
  // Reading back is for kAppend alone; a pipe or terminal may be open for writing only.
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666));
  if (!file.valid() && (errno == EACCES || errno == ENXIO)) {
    file = FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC)));
  }
  if (!file.valid()) return ErrnoToStatus(errno, what);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ErrnoToStatus(errno, what);
  if (append && S_ISREG(info.st_mode)) {
    BOWLINE_RETURN_IF_ERROR(DropUnfinishedLine(file.get(), info.st_size, path));
  }
  return JsonLinesWriter(path, std::move(file));
}

absl::Status JsonLinesWriter::Write(const nlohmann::ordered_json& object) {
  std::string line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  line.push_back('\n');
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoToStatus(errno, absl::StrCat("cannot write '", path_, "'"));
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace bowline
