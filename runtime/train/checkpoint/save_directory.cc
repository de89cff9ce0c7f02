#include "runtime/train/checkpoint/save_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/atomic_directory.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/small_file.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

// The file names the process that holds the lock, for messages.
constexpr absl::string_view kLockFile = ".lock";

std::string HostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this host";
}

// Whether `path` has `line`. A network file system may show a file a little later.
bool ShowsLine(const std::string& path, const std::string& line) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (FirstLineOf(path) == line) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

// The note about a disk on which a checkpoint does not fit; nothing when it does.
std::optional<std::string> NoteOfRoom(const std::string& path, uint64_t bytes) {
  struct statvfs disk = {};
  if (::statvfs(path.c_str(), &disk) != 0) return std::nullopt;
  const uint64_t room = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (room >= bytes) return std::nullopt;
  return absl::StrFormat(
      "a checkpoint takes %.3g GB, and the disk of '%s' has room for %.3g GB; make room before the first save",
      static_cast<double>(bytes) * 1e-9, path, static_cast<double>(room) * 1e-9);
}

// Whether `checkpoint` is the latest one of the directory. An earlier one may be resumed because of a later one.
bool IsLatest(const std::string& path, const std::string& checkpoint) {
  if (checkpoint.empty()) return false;
  const absl::StatusOr<Checkpoint> latest = Checkpoint::Open(path);
  std::error_code error;
  return latest.ok() && fs::equivalent(latest->path(), checkpoint, error) && !error;
}

// Acts as a save does: a directory and a file get their names by renaming, over old ones, and are deleted. Nothing of
// it stays.
absl::Status TrySave(const std::string& path, const std::string& run) {
  const std::string probe = absl::StrCat(path, "/.probe-", run);
  // The run holds the lock: one that is there was left when a start of this run was cut short.
  std::error_code ignored;
  fs::remove(probe, ignored);
  BOWLINE_ASSIGN_OR_RETURN(AtomicDirectory directory, AtomicDirectory::Create(probe));
  BOWLINE_RETURN_IF_ERROR(directory.Commit());
  std::error_code error;
  fs::remove(probe, error);
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot delete '", probe, "'"));
  const std::string latest = absl::StrCat(path, "/", kLatestFile);
  const absl::StatusOr<std::string> content = ReadSmallFile(latest, 4096);
  if (!content.ok()) return absl::IsNotFound(content.status()) ? absl::OkStatus() : content.status();
  return WriteFileAtomically(latest, *content);
}

// A checkpoint inside of a checkpoint would be found by no run, and be deleted with the outer one.
absl::Status RefuseCheckpoint(const std::string& path) {
  std::error_code ignored;
  // A path that ends with '/' has an empty last name.
  fs::path whole = fs::weakly_canonical(path, ignored);
  if (!whole.has_filename()) whole = whole.parent_path();
  const bool is_there = fs::exists(absl::StrCat(path, "/", kStateFile), ignored);
  if (!is_there && !IsCheckpointName(whole.filename().string())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--save: '", path, is_there ? "' is a checkpoint" : "' has the name of a checkpoint",
                   ", and checkpoints do not lie in each other; give --save ", whole.parent_path().string(),
                   ", the directory of its run, or another one"));
}

}  // namespace

SaveDirectory::~SaveDirectory() {
  std::error_code ignored;
  if (!is_new_) return;
  fs::remove(absl::StrCat(path_, "/", kLockFile), ignored);
  fs::remove(path_, ignored);
}

absl::Status SaveDirectory::Lock(std::chrono::nanoseconds patience) {
  const std::string file = absl::StrCat(path_, "/", kLockFile);
  lock_ = FileDescriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!lock_.valid()) return ErrnoToStatus(errno, absl::StrCat("cannot write '", file, "'"));
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    // A file system without locks has none of another run either.
    if (errno != EWOULDBLOCK) return absl::OkStatus();
    // A server keeps the lock of a host that is gone for a while.
    const bool is_here = absl::EndsWith(FirstLineOf(file), absl::StrCat(" on ", HostName()));
    if (!is_here && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat("another run is saving into '", path_, "': process ",
                                                      FirstLineOf(file),
                                                      "; wait until it ends, or save into another directory"));
  }
  // A run that did not begin may have taken the file back meanwhile.
  if (!HasLock()) {
    return absl::FailedPreconditionError(absl::StrCat("another run has just left '", path_, "'; start this one again"));
  }
  const std::string holder = absl::StrCat(::getpid(), " on ", HostName(), "\n");
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::pwrite(lock_.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", file, "'"));
  }
  return absl::OkStatus();
}

bool SaveDirectory::HasLock() const {
  struct stat held = {}, there = {};
  return ::fstat(lock_.get(), &held) == 0 && ::stat(absl::StrCat(path_, "/", kLockFile).c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

absl::Status SaveDirectory::Hold(const std::function<void(absl::string_view)>& note) {
  if (path_.empty() || HasLock()) return absl::OkStatus();
  std::error_code ignored;
  const bool is_gone = !fs::exists(path_, ignored);
  BOWLINE_RETURN_IF_ERROR(MakeDirectories(path_));
  BOWLINE_RETURN_IF_ERROR(Lock(std::chrono::nanoseconds(0)));
  BOWLINE_RETURN_IF_ERROR(CheckRun(run_));
  note(is_gone ? absl::StrCat("somebody deleted or moved '", path_, "' while this run saves into it; it was made again")
               : absl::StrCat("somebody deleted the lock of '", path_,
                              "' while this run saves into it, or replaced the "
                              "directory; it was locked again"));
  return absl::OkStatus();
}

absl::Status SaveDirectory::CheckRun(const Run& run) const {
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<std::string> names, CheckpointNames(path_));
  // Older checkpoints do not name their run.
  std::error_code ignored;
  const bool is_resumed = !run.resumed_from.empty() &&
                          fs::equivalent(fs::path(absl::StrCat(run.resumed_from, "/..")), fs::path(path_), ignored);
  std::vector<std::string> others;  // the latest first
  bool has_own = false;
  for (const std::string& name : names) {
    const std::string whole = absl::StrCat(path_, "/", name);
    const std::string place = ResolveDirectory(whole).value_or(whole);
    const absl::StatusOr<TrainerState> state = ReadTrainerState(absl::StrCat(place, "/", kStateFile));
    const bool is_own = state.ok() && (state->run == run.id || (state->run.empty() && is_resumed));
    has_own |= is_own;
    if (!is_own) others.push_back(name);
  }
  if (others.empty()) return absl::OkStatus();
  if (!has_own) {
    return absl::FailedPreconditionError(absl::StrCat("'", path_, "' holds checkpoints of another run, the latest ",
                                                      others.front(), "; go on with that run by ", "--resume ", path_,
                                                      ", or save into another directory, or delete this one"));
  }
  // Checkpoints of steps that the run already passed stay: no save of this run replaces them.
  if (!IsLaterStep(others.front(), CheckpointName(run.first_step))) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("'", path_, "/", others.front(),
                                                    "' is no checkpoint of this run, or cannot be read; a save of this "
                                                    "step would replace it: move it elsewhere, or delete it"));
}

absl::Status SaveDirectory::Make(const std::string& path, const Run& run) {
  path_ = path;
  run_ = run;
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  BOWLINE_RETURN_IF_ERROR(RefuseCheckpoint(path));
  BOWLINE_RETURN_IF_ERROR(MakeDirectories(path));
  BOWLINE_RETURN_IF_ERROR(Lock(run.patience));
  is_new_ = is_new;
  BOWLINE_RETURN_IF_ERROR(CheckRun(run));
  const absl::Status tried = TrySave(path, run.id);
  return tried.ok() ? tried : Annotate(tried, absl::StrCat("--save: '", path, "' takes no checkpoints"));
}

absl::Status SaveDirectory::CheckShared(const std::string& path, const Run& run, Agreement& agreement) const {
  if (agreement.ranks() == 1) return absl::OkStatus();
  const std::string probe = absl::StrCat(path, "/.probe-", run.id);
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("writing into the save directory", [&] {
    return agreement.rank() == 0 ? WriteFileAtomically(probe, absl::StrCat(run.id, "\n")) : absl::OkStatus();
  }));
  const absl::Status seen = agreement.AllOkAfter("looking for the save directory", [&] {
    if (ShowsLine(probe, run.id)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' on ", HostName(),
                                                      " lacks the file that rank 0 wrote there; save into a directory "
                                                      "that all ranks share"));
  });
  std::error_code ignored;
  if (agreement.rank() == 0) fs::remove(probe, ignored);
  return seen;
}

absl::Status SaveDirectory::Prepare(const std::string& path, const Run& run, Agreement& agreement,
                                    const std::function<void(absl::string_view)>& note) {
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter(
      "locking the save directory", [&] { return agreement.rank() == 0 ? Make(path, run) : absl::OkStatus(); }));
  BOWLINE_RETURN_IF_ERROR(CheckShared(path, run, agreement));
  if (agreement.rank() != 0) return absl::OkStatus();
  if (run.keep > 0 && IsLatest(path, run.resumed_from)) {
    if (const absl::Status deleted = DeleteOldCheckpoints(path, run.keep, run.id); !deleted.ok()) {
      note(deleted.message());
    }
  }
  if (const std::optional<std::string> room = NoteOfRoom(path, run.checkpoint_bytes)) note(*room);
  return absl::OkStatus();
}

}  // namespace bowline
