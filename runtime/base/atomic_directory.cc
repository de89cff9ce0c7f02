#include "runtime/base/atomic_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_file.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

std::string ReplacedName(const std::string& path) {
  return absl::StrCat(DirectoryOf(path), "/.", path.substr(path.rfind('/') + 1), ".replaced");
}

// A name that TemporarySiblingOf gives: another program's directory may look alike in part.
bool IsStagingName(absl::string_view name) {
  constexpr absl::string_view kMark = ".tmp-";
  const size_t mark = name.rfind(kMark);
  if (!absl::StartsWith(name, ".") || mark == absl::string_view::npos) return false;
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(name.substr(mark + kMark.size()), absl::MaxSplits('-', 1));
  const auto [process, random] = numbers;
  constexpr size_t kFewest = 9;  // eight digits and those of a counter
  return !process.empty() && std::all_of(process.begin(), process.end(), absl::ascii_isdigit) &&
         random.size() >= kFewest && std::all_of(random.begin(), random.end(), absl::ascii_isxdigit);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Deletes the leftovers of killed writers in `parent`: staging directories that no process holds locked.
void RemoveLeftovers(const std::string& parent) {
  std::error_code error;
  fs::directory_iterator entries(parent, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string path = entries->path().string();
    if (!IsStagingName(entries->path().filename().string())) continue;
    const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory.valid() && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) RemoveTree(path);
  }
}

}  // namespace

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code ignored;
  if (error && fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot make directory '", path, "': it is a symbolic link to '",
                                                   fs::read_symlink(path, ignored).string(),
                                                   "', which is not there; make that directory, or give another name"));
  }
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot make directory '", path, "'"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ResolveDirectory(const std::string& path) {
  if (IsDirectory(path)) return path;
  std::string replaced = ReplacedName(path);
  if (IsDirectory(replaced)) return replaced;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a file, not a directory; give the directory"));
  }
  return absl::NotFoundError(absl::StrCat("there is no directory '", path, "'; check the path"));
}

absl::StatusOr<AtomicDirectory> AtomicDirectory::Create(const std::string& path) {
  AtomicDirectory result;
  result.path_ = std::string(absl::StripSuffix(path, "/"));
  if (result.path_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write directory '", path, "'; give another name"));
  }
  struct stat existing;
  if (::lstat(result.path_.c_str(), &existing) == 0 && !S_ISDIR(existing.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write directory '", path, "': something else has this name; remove it or give another"));
  }
  const std::string parent = DirectoryOf(result.path_);
  BOWLINE_RETURN_IF_ERROR(MakeDirectories(parent));
  RemoveLeftovers(parent);

  const std::string staging = TemporarySiblingOf(result.path_);
  const std::string what = absl::StrCat("cannot write directory '", path, "'");
  if (::mkdir(staging.c_str(), 0777) != 0) return ErrnoToStatus(errno, what);
  result.staging_path_ = staging;
  result.lock_ = FileDescriptor(::open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!result.lock_.valid()) return ErrnoToStatus(errno, what);
  // Without locks (some network file systems) only the protection from a second writer's clean-up is lost.
  (void)!::flock(result.lock_.get(), LOCK_EX | LOCK_NB);
  return result;
}

AtomicDirectory::~AtomicDirectory() {
  if (!staging_path_.empty()) RemoveTree(staging_path_);
}

absl::Status AtomicDirectory::Commit() {
  const std::string parent = DirectoryOf(path_);
  const std::string what = absl::StrCat("cannot complete directory '", path_, "'");
  const std::string replaced = ReplacedName(path_);
  if (staging_path_.empty()) return absl::FailedPreconditionError(absl::StrCat(what, ": it is complete already"));
  BOWLINE_RETURN_IF_ERROR(SyncDirectory(staging_path_));

  if (::renameat2(AT_FDCWD, staging_path_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
    // The staging name now holds the old directory; it goes once the exchange is on disk.
    BOWLINE_RETURN_IF_ERROR(SyncDirectory(parent));
    RemoveTree(staging_path_);
  } else {
    if (IsDirectory(path_)) {
      RemoveTree(replaced);
      if (::rename(path_.c_str(), replaced.c_str()) != 0) return ErrnoToStatus(errno, what);
    }
    if (::rename(staging_path_.c_str(), path_.c_str()) != 0) {
      const int error_number = errno;
      // Best effort to undo; ResolveDirectory finds the old one in any case.
      (void)!::rename(replaced.c_str(), path_.c_str());
      return ErrnoToStatus(error_number, what);
    }
    BOWLINE_RETURN_IF_ERROR(SyncDirectory(parent));
  }
  staging_path_.clear();
  lock_.Close();
  // This also removes leftovers of an earlier, killed Commit: the name itself holds a whole directory again.
  RemoveTree(replaced);
  return absl::OkStatus();
}

}  // namespace bowline
