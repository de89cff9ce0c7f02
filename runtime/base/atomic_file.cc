#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include "absl/strings/str_format.h"

namespace bowline {
namespace {

constexpr mode_t kDefaultMode = 0666;  // less the umask
// Some kernels refuse or shorten single writes near 2 GiB.
constexpr size_t kMaxWrite = size_t{1} << 30;

// Returns where a write to `path` ends up: symbolic links, also dangling ones, are followed.
absl::StatusOr<std::string> ResolveLinks(const std::string& path) {
  std::error_code error;
  std::filesystem::path resolved(path);
  for (int hops = 0; std::filesystem::is_symlink(resolved, error); ++hops) {
    if (hops == 40) return ErrnoToStatus(ELOOP, absl::StrCat("cannot write '", path, "'"));
    const std::filesystem::path target = std::filesystem::read_symlink(resolved, error);
    if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot write '", path, "'"));
    resolved = target.is_absolute() ? target : resolved.parent_path() / target;
  }
  return resolved.string();
}

}  // namespace

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(slash == 0 ? path.substr(0, 1) : path.substr(0, slash));
}

bool AreSameFile(const std::string& first, const std::string& second) {
  // A path that cannot be resolved is no error here: writing to the path reports the error.
  const auto where = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path resolved = ResolveLinks(path).value_or(path);
    const std::filesystem::path canonical =
        std::filesystem::weakly_canonical(std::filesystem::absolute(resolved, error), error);
    return error ? resolved : canonical;
  };
  return where(first) == where(second);
}

std::string TemporarySiblingOf(const std::string& path) {
  static std::atomic<uint32_t> counter{0};
  const std::string directory = DirectoryOf(path);
  // File names have at most 255 bytes; ours must fit where the wanted one does.
  const std::string name = path.substr(path.rfind('/') + 1).substr(0, 200);
  return absl::StrFormat("%s/.%s.tmp-%d-%08x%x", directory, name, ::getpid(), std::random_device()(), counter++);
}

absl::Status SyncDirectory(const std::string& directory) {
  const FileDescriptor handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return ErrnoToStatus(errno, absl::StrCat("cannot open directory '", directory, "'"));
  // EINVAL: a file system that has nothing to sync for directories.
  if (::fsync(handle.get()) != 0 && errno != EINVAL) {
    return ErrnoToStatus(errno, absl::StrCat("cannot sync directory '", directory, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the name of the file to write is empty; give one");
  AtomicFile result;
  BOWLINE_ASSIGN_OR_RETURN(result.path_, ResolveLinks(path));
  result.directory_ = DirectoryOf(result.path_);
  const std::string what = absl::StrCat("cannot write '", path, "'");

  struct stat existing;
  const bool exists = ::stat(result.path_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) return ErrnoToStatus(errno, what);
  if (exists && S_ISDIR(existing.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": it is a directory; give the name of a file"));
  }
  // A rename would replace the device or pipe itself.
  if (exists && !S_ISREG(existing.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": it exists and is no regular file; give another name"));
  }
  if (result.path_.back() == '/') {
    return absl::InvalidArgumentError(absl::StrCat(what, ": it ends in '/'; give the name of a file"));
  }
  if (exists && ::access(result.path_.c_str(), W_OK) != 0) return ErrnoToStatus(errno, what);

  // An unnamed file vanishes by itself, even when the process is killed.
  result.file_ = FileDescriptor(::open(result.directory_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kDefaultMode));
  if (!result.file_.valid()) {
    result.temporary_path_ = TemporarySiblingOf(result.path_);
    result.file_ =
        FileDescriptor(::open(result.temporary_path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kDefaultMode));
    if (!result.file_.valid()) {
      result.temporary_path_.clear();
      return ErrnoToStatus(errno, what);
    }
  }
  // Where the owner may not keep the mode (some network file systems), the default does.
  if (exists) (void)!::fchmod(result.file_.get(), existing.st_mode & 07777);
  return result;
}

AtomicFile::~AtomicFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

absl::Status AtomicFile::Failed(int error_number) {
  failed_ = true;
  return ErrnoToStatus(error_number, absl::StrCat("cannot write '", path_, "'"));
}

absl::Status AtomicFile::WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) {
  if (failed_ || !file_.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write '", path_, "': an earlier write failed or the file is complete"));
  }
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kMaxWrite), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(errno);
    if (written == 0) return Failed(ENOSPC);
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(absl::Span<const uint8_t> bytes) {
  BOWLINE_RETURN_IF_ERROR(WriteAt(size_, bytes));
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(absl::string_view text) {
  return Append(absl::Span<const uint8_t>(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

absl::Status AtomicFile::OverwriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset) {
    return absl::InternalError(absl::StrCat("'", path_, "': overwriting ", bytes.size(), " bytes at ", offset,
                                            " of a file of ", size_, " bytes; append them instead"));
  }
  return WriteAt(offset, bytes);
}

absl::Status AtomicFile::LinkUnnamedFile() {
  const std::string unnamed = absl::StrCat("/proc/self/fd/", file_.get());
  // A link cannot replace an existing file, so the file takes a temporary name first.
  const std::string temporary = TemporarySiblingOf(path_);
  if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) return Failed(errno);
  temporary_path_ = temporary;
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (!failed_ && file_.valid() && ::fsync(file_.get()) != 0) return Failed(errno);
  BOWLINE_RETURN_IF_ERROR(CommitUnsynced());
  return SyncDirectory(directory_);
}

absl::Status AtomicFile::Complete() {
  if (failed_ || !file_.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot complete '", path_, "': an earlier write failed or the file is complete"));
  }
  if (temporary_path_.empty()) BOWLINE_RETURN_IF_ERROR(LinkUnnamedFile());
  if (file_.Close() != 0) return Failed(errno);
  return absl::OkStatus();
}

absl::Status AtomicFile::CommitUnsynced() {
  BOWLINE_RETURN_IF_ERROR(Complete());
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) return Failed(errno);
  temporary_path_.clear();
  return absl::OkStatus();
}

absl::Status AtomicFile::CommitNewUnsynced() {
  BOWLINE_RETURN_IF_ERROR(Complete());
  // The destructor takes the temporary name away.
  if (::link(temporary_path_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  // A file system without links.
  const bool unsupported = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
  if (!unsupported || ::access(path_.c_str(), F_OK) == 0) return Failed(unsupported ? EEXIST : errno);
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) return Failed(errno);
  temporary_path_.clear();
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  BOWLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  BOWLINE_RETURN_IF_ERROR(file.Append(content));
  return file.Commit();
}

}  // namespace bowline
