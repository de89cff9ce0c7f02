#ifndef BOWLINE_RUNTIME_BASE_ATOMIC_FILE_H_
#define BOWLINE_RUNTIME_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"

namespace bowline {

// Writes a file that other processes see either as it was before or complete, never in between. The bytes go to an
// unnamed file in the same directory, or to a hidden one if the file system has no unnamed files. Commit syncs it and
// gives it the name. Without Commit nothing changes. A power failure after Commit does not lose the file.
//
// A symbolic link is followed; an existing file keeps its permissions. Errors name the path and the remedy:
// kResourceExhausted for a full disk, kPermissionDenied, kNotFound for a missing directory, kInvalidArgument where the
// target is something other than a regular file.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&&) = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Appends all of `bytes`. After an error the file can no longer be committed.
  absl::Status Append(absl::Span<const uint8_t> bytes);
  absl::Status Append(absl::string_view text);

  // Overwrites bytes that were appended before (a count in a header, say).
  absl::Status OverwriteAt(uint64_t offset, absl::Span<const uint8_t> bytes);

  // Bytes appended so far.
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Syncs the file and gives it its name. Call it at most once.
  absl::Status Commit();

  // Like Commit, but does not wait for the disk: after a power failure the file may be missing, empty or hold anything.
  // For content that can be made again and is checked when it is read.
  absl::Status CommitUnsynced();

  // Like CommitUnsynced, but replaces no file: kAlreadyExists if a file has the name already.
  absl::Status CommitNewUnsynced();

 private:
  AtomicFile() = default;
  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::Status Failed(int error_number);
  absl::Status LinkUnnamedFile();
  // Gives the file a temporary name if it has none, and closes it.
  absl::Status Complete();

  std::string path_;
  std::string directory_;
  std::string temporary_path_;  // empty while the file has no name
  FileDescriptor file_;
  uint64_t size_ = 0;
  bool failed_ = false;
};

// Writes a file by Create, Append and Commit.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// Returns whether writes to `first` and to `second` would go to one file. The paths may be spelled differently, and
// symbolic links are followed. Neither file has to exist.
bool AreSameFile(const std::string& first, const std::string& second);

// Syncs a directory, so that the names inside it survive a power failure.
absl::Status SyncDirectory(const std::string& directory);

// A hidden name beside `path` that no other process or thread picks: "DIR/.NAME.tmp-PID-RANDOM".
std::string TemporarySiblingOf(const std::string& path);

// The directory part of `path`: "a/b" -> "a", "b" -> ".", "/b" -> "/".
std::string DirectoryOf(absl::string_view path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_ATOMIC_FILE_H_
