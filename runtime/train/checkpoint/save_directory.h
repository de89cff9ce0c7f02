#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "runtime/train/agreement.h"

namespace bowline {

// The directory into which a run saves: made and tried before the first step, and of this run alone as long as the
// object lives. Taken back, if it was new, unless the run begins.
class SaveDirectory {
 public:
  struct Run {
    std::string id = {};            // TrainerState.run
    std::string resumed_from = {};  // the checkpoint with which it goes on; empty: none
    int64_t first_step = 0;         // the step of that checkpoint
    uint64_t checkpoint_bytes = 0;  // of the tensors of one checkpoint
    // How long it waits for a lock that a process of another host has, which may be gone.
    std::chrono::nanoseconds patience = std::chrono::minutes(2);
  };

  SaveDirectory() = default;
  SaveDirectory(const SaveDirectory&) = delete;
  SaveDirectory& operator=(const SaveDirectory&) = delete;
  ~SaveDirectory();

  // To be called by all ranks. Rank 0 makes the directory, locks it, and writes a file, which all others must see.
  // kFailedPrecondition, naming the directory, when another run is saving into it, when the checkpoints there are of
  // another run, and when a rank does not see the file of rank 0, which the error names. `note` is told when the disk
  // has no room for a checkpoint.
  absl::Status Prepare(const std::string& path, const Run& run, Agreement& agreement,
                       const std::function<void(absl::string_view)>& note);

  // To be called before each save, on any rank: a user may have deleted or moved the directory, or its lock. Then
  // rank 0 makes and locks it again, as in Prepare and with the same errors, and `note` is told.
  absl::Status Hold(const std::function<void(absl::string_view)>& note);

  // The run begins.
  void Keep() { is_new_ = false; }

 private:
  absl::Status Make(const std::string& path, const Run& run);
  absl::Status Lock(std::chrono::nanoseconds patience);
  // Whether the file under the lock's name is the one that is locked.
  bool HasLock() const;
  absl::Status CheckRun(const Run& run) const;
  absl::Status CheckShared(const std::string& path, const Run& run, Agreement& agreement) const;

  std::string path_;  // of rank 0; empty on others
  Run run_;
  FileDescriptor lock_;
  bool is_new_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_DIRECTORY_H_
