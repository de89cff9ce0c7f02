#ifndef BOWLINE_RUNTIME_BASE_ATOMIC_DIRECTORY_H_
#define BOWLINE_RUNTIME_BASE_ATOMIC_DIRECTORY_H_

#include <string>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"

namespace bowline {

// Writes a directory of files that appears under its name complete or not at all:
//
//   1. Create makes a hidden sibling ".NAME.tmp-...", locked (flock) as long as its writer lives;
//   2. the caller writes files into staging_path(), each synced (AtomicFile does);
//   3. Commit renames it to the name and syncs the parent. Where the name exists the two are exchanged in one step
//      (renameat2 RENAME_EXCHANGE) and the old one is deleted; a file system without exchange renames the old one to
//      ".NAME.replaced" first, and ResolveDirectory finds it there should the process die between the two renames.
//
// So at any instant ResolveDirectory(path) gives the old or the new directory, whole. Leftovers of writers that were
// killed are deleted by the next Create in the same parent directory; those of live writers are not.
class AtomicDirectory {
 public:
  // Creates missing parent directories.
  static absl::StatusOr<AtomicDirectory> Create(const std::string& path);

  AtomicDirectory(AtomicDirectory&&) = default;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  // Deletes the written files, unless Commit gave them the name.
  ~AtomicDirectory();

  const std::string& path() const { return path_; }
  const std::string& staging_path() const { return staging_path_; }

  absl::Status Commit();

 private:
  AtomicDirectory() = default;

  std::string path_;
  std::string staging_path_;  // empty once committed
  FileDescriptor lock_;
};

// Returns where the directory `path` is to be read from: `path`, or its ".NAME.replaced" when a writer died in Commit.
// Returns kNotFound if neither exists.
absl::StatusOr<std::string> ResolveDirectory(const std::string& path);

// `mkdir -p`.
absl::Status MakeDirectories(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_ATOMIC_DIRECTORY_H_
