#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_SAVER_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_SAVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/base/available_memory.h"
#include "runtime/base/page_memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"
#include "runtime/train/checkpoint/parallel_save.h"

namespace bowline {

// A saved checkpoint, which has its final name.
struct SavedCheckpoint {
  int64_t step = 0;
  std::string path;
  double seconds = 0;  // time from the begin of the save until the checkpoint had its name
  double stall = 0;    // of these, the seconds in which the run waited for the save
};

// Saves the checkpoints of a run, one at a time. A background save copies the states and writes the copy
// while the run goes on. The saver keeps the copy's memory for the next save as long as enough is free for
// others, because getting memory from the system takes longer than filling it. All ranks of a run must call
// the same methods in the same order.
class CheckpointSaver {
 public:
  struct Options {
    std::string directory;
    int64_t keep = 0;                // most checkpoints of the run that the directory keeps; 0: all
    bool allows_non_finite = false;  // see ParallelSave::Options
    std::function<void(const SavedCheckpoint&)> on_saved;
    std::function<void(absl::string_view)> on_note;  // receives problems that do not fail the save
    // Called before each save. An error on any rank fails the save. May be null.
    std::function<absl::Status()> prepare = nullptr;
    // Returns the bytes of free memory on this machine; tests replace it.
    std::function<uint64_t()> available_memory = [] { return AvailableMemory(); };
    // How long rank 0 waits for files of other ranks after a rank was lost: that rank may have
    // died before it wrote its file.
    std::chrono::nanoseconds patience = std::chrono::seconds(5);
  };

  // `agreement` must outlive the saver.
  CheckpointSaver(Options options, Agreement* agreement) : options_(std::move(options)), agreement_(*agreement) {}
  // Ends a background save as Abandon does.
  ~CheckpointSaver();

  // Waits for the previous save, then saves. Runs in the background if `in_background` and if each machine has memory
  // for a copy of the tensors that its ranks store. The caller may change the states when Save returns.
  absl::Status Save(CheckpointContent content, bool in_background);

  // Call between steps. If all ranks have written the files of a background save, gives the checkpoint its name.
  absl::Status Poll();

  // Waits for a background save to end and gives the checkpoint its name.
  absl::Status Finish();

  // As Finish, when the ranks can no longer agree: see ParallelSave::CommitAlone.
  void Abandon();

 private:
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<bool> CopyFits(const CheckpointContent& content);
  // Returns whether each rank of this machine may copy `bytes`. The memory of the last copy counts as free.
  bool IsRoomFor(uint64_t bytes) const;
  // Notes once, on rank 0, that saves block the run.
  void NoteNoRoom(absl::string_view why);
  absl::Status Commit();
  void Report(std::string path);
  // A checkpoint that cannot be deleted only causes a note.
  absl::Status DeleteOld();

  const Options options_;
  Agreement& agreement_;
  bool noted_no_room_ = false;
  int neighbours_ = 1;  // number of ranks on this machine

  PageMemory copy_;                     // copy of the states; empty: no memory is kept
  std::unique_ptr<ParallelSave> save_;  // the save in progress; null: none
  Clock::time_point begin_;
  double stall_ = 0;
  std::thread writer_;
  std::atomic<bool> is_written_{false};
  absl::Status written_;  // valid once is_written_
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_SAVER_H_
