#include "runtime/base/json_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr std::chrono::milliseconds kInterval(100);  // of looking at a pipe again

// Opens a pipe for writing alone: a process that can also read the pipe never sees that its reader is gone.
absl::StatusOr<FileDescriptor> OpenPipe(const std::string& path, const JsonLinesWriter::PipeHooks& hooks) {
  for (int attempt = 0;; ++attempt) {
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.valid()) return file;
    // Nobody reads it yet. A pipe without a name, such as that of /dev/stdout, opens in any case.
    if (errno != ENXIO) return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "'"));
    if (attempt == 10 && hooks.note != nullptr) {
      hooks.note(absl::StrCat("waiting for a program that reads the pipe '", path, "'"));
    }
    std::this_thread::sleep_for(kInterval);
  }
}

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file.valid()) return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "'"));
  return file;
}

}  // namespace

absl::StatusOr<JsonLinesWriter> JsonLinesWriter::Open(const std::string& path, PipeHooks hooks) {
  struct stat info = {};
  const bool is_pipe = ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
  BOWLINE_ASSIGN_OR_RETURN(FileDescriptor file, is_pipe ? OpenPipe(path, hooks) : OpenFile(path));
  if (::fstat(file.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "'"));
  JsonLinesWriter writer(path, std::move(file), S_ISREG(info.st_mode), std::move(hooks));
  if (!writer.is_file_) return writer;
  // A file system without locks has none of another writer either.
  if (::flock(writer.file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("another run is writing '", path, "'; wait until it ends, or give another name"));
  }
  return writer;
}

std::string JsonLinesWriter::LineOf(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status JsonLinesWriter::Cut(uint64_t size) {
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, absl::StrCat("cannot cut '", path_, "'"));
}

absl::Status JsonLinesWriter::WaitForReader() const {
  // A reader that was only slow when the stop came gets another second.
  for (int since_stop = 0; since_stop < 10;) {
    pollfd pipe = {file_.get(), POLLOUT, 0};
    if (::poll(&pipe, 1, static_cast<int>(kInterval.count())) > 0) return absl::OkStatus();
    if (hooks_.stops != nullptr && hooks_.stops()) ++since_stop;
  }
  return absl::UnavailableError(
      absl::StrCat("cannot write '", path_, "': the program at the other end of the pipe reads nothing"));
}

absl::Status JsonLinesWriter::WriteLine(absl::string_view line) {
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      BOWLINE_RETURN_IF_ERROR(WaitForReader());
      continue;
    }
    const absl::Status failed = ErrnoToStatus(errno, absl::StrCat("cannot write '", path_, "'"));
    struct stat info = {};
    const auto part = static_cast<off_t>(line.size() - rest.size());
    // Best effort: a process that continues the file also cuts half a line off.
    if (is_file_ && part > 0 && ::fstat(file_.get(), &info) == 0) {
      Cut(static_cast<uint64_t>(info.st_size - part)).IgnoreError();
    }
    return failed;
  }
  return absl::OkStatus();
}

}  // namespace bowline
