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
#include "runtime/train/agreement.h"
#include "runtime/train/checkpoint/parallel_save.h"

namespace bowline {

// A checkpoint that got its name.
struct SavedCheckpoint {
  int64_t step = 0;
  std::string path;
  double seconds = 0;  // from the begin of the save to the name
  double stall = 0;    // of these, the seconds in which the run did nothing else
};

// The checkpoints of a run, one after the other. A save in the background copies the states and writes the copy while
// the run goes on; there is at most one at a time. The memory of the copy is kept for the next one while there is
// enough for others: it takes longer to get memory from the system than to fill it. All ranks of a run call the same
// methods in the same order.
class CheckpointSaver {
 public:
  struct Options {
    std::string directory;
    int64_t keep = 0;                // delete older checkpoints of the directory once there are more; 0: keep all
    bool allows_non_finite = false;  // see ParallelSave::Options
    std::function<void(const SavedCheckpoint&)> on_saved;
    std::function<void(absl::string_view)> on_note;  // about problems that do not fail the save
    // Is called before each save; an error of any rank is that of the save. May be null.
    std::function<absl::Status()> prepare = nullptr;
    // The bytes of memory that a copy may draw on; tests say others.
    std::function<uint64_t()> available_memory = [] { return AvailableMemory(); };
    // How long rank 0 waits for the files of the other ranks after one rank was lost, which may have died before it
    // wrote its file.
    std::chrono::nanoseconds patience = std::chrono::seconds(5);
  };

  // `agreement` outlives it.
  CheckpointSaver(Options options, Agreement* agreement) : options_(std::move(options)), agreement_(*agreement) {}
  // Ends a save in the background as Abandon does.
  ~CheckpointSaver();

  // Saves, once the save before is done: in the background if `in_background` and a copy of the tensors that all
  // ranks of this machine store fits into its memory. The states may change when it returns.
  absl::Status Save(CheckpointContent content, bool in_background);

  // To be called between steps: ends a save in the background whose files are all written.
  absl::Status Poll();

  // Waits for the save in the background.
  absl::Status Finish();

  // The same when the ranks cannot agree any more: see ParallelSave::CommitAlone.
  void Abandon();

 private:
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<bool> CopyFits(const CheckpointContent& content);
  // Whether each rank of this machine may have so many bytes for its copy; the memory of the last copy is available.
  bool IsRoomFor(uint64_t bytes) const;
  // Once.
  void NoteNoRoom(absl::string_view why);
  absl::Status Commit();
  void Report(std::string path);
  // Best effort: a checkpoint that cannot be deleted causes a note.
  absl::Status DeleteOld();

  const Options options_;
  Agreement& agreement_;
  bool noted_no_room_ = false;
  int neighbours_ = 1;  // the ranks of this machine

  PageMemory copy_;                     // of the states; empty: none is kept
  std::unique_ptr<ParallelSave> save_;  // in flight; null: none
  Clock::time_point begin_;
  double stall_ = 0;
  std::thread writer_;
  std::atomic<bool> is_written_{false};
  absl::Status written_;  // once is_written_
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_SAVER_H_
