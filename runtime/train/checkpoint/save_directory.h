#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"

namespace bowline {

// The directory into which a run saves. Made and tested before the first step, and locked for this run while the object
// lives. The destructor removes a new directory, unless the run began (Keep).
class SaveDirectory {
 public:
  struct Run {
    std::string id = {};            // TrainerState.run
    std::string resumed_from = {};  // the checkpoint that the run resumes from; empty: none
    int64_t first_step = 0;         // the step of that checkpoint; otherwise 0
    uint64_t checkpoint_bytes = 0;  // size of the tensors of one checkpoint
    int64_t keep = 0;               // most checkpoints of the run to keep; 0: all
    // How long to wait for the lock of a process on another host, which may be gone.
    std::chrono::nanoseconds patience = std::chrono::minutes(2);
  };

  SaveDirectory() = default;
  SaveDirectory(const SaveDirectory&) = delete;
  SaveDirectory& operator=(const SaveDirectory&) = delete;
  ~SaveDirectory();

  // All ranks call this together. Rank 0 makes the directory, locks it, and writes a file there. Returns
  // kFailedPrecondition, naming the directory, when another run is saving into it, when its checkpoints are of another
  // run, or when a rank, which the error names, does not see rank 0's file. If the run goes on from the latest
  // checkpoint there, deletes those that Run::keep does not keep, to make room. Calls `note` when that fails, and when
  // the disk has no room for a checkpoint.
  absl::Status Prepare(const std::string& path, const Run& run, Agreement& agreement,
                       const std::function<void(absl::string_view)>& note);

  // Call before each save; only rank 0 acts. If a user has deleted or moved the directory or its lock, rank 0 makes and
  // locks it again, with the errors of Prepare, and calls `note`.
  absl::Status Hold(const std::function<void(absl::string_view)>& note);

  // Call when the run begins: the destructor then keeps the directory.
  void Keep() { is_new_ = false; }

 private:
  absl::Status Make(const std::string& path, const Run& run);
  absl::Status Lock(std::chrono::nanoseconds patience);
  // Returns whether the lock file on disk is still the one that this process has locked.
  bool HasLock() const;
  absl::Status CheckRun(const Run& run) const;
  absl::Status CheckShared(const std::string& path, const Run& run, Agreement& agreement) const;

  std::string path_;  // set on rank 0 only
  Run run_;
  FileDescriptor lock_;
  bool is_new_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_
