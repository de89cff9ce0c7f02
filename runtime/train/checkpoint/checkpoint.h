#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_H_

// Checkpoints on disk. A training run saves into one directory:
//
//   DIR/step-00000020/            one checkpoint, never changed once it has this name
//     model.safetensors           parameters under their Hugging Face names
//     config.json                 the model's, so that the checkpoint is itself a Hugging Face directory
//     optimizer.safetensors       optimizer state
//     trainer_state.json          TrainerState
//
// Several ranks write two files each instead of those two files of tensors, and rank 0 writes the index of all:
//
//     shards.json                           how tensors are divided among ranks, see shard_index.h
//     parameters.rank-00003.safetensors     the elements of parameters that rank 3 stores
//     optimizer.rank-00003.safetensors      the elements of optimizer state that rank 3 stores
//
// Either form loads into any plan of the model, for any mesh. Beside the checkpoints is
//
//   DIR/latest                    the name of the checkpoint that was saved last, one line of text
//
// A checkpoint is written under a hidden name, synced, and renamed (AtomicDirectory); then `latest` is replaced. A run
// that is killed or finds the disk full at any instant thus leaves every checkpoint that was complete before, and
// `latest` names one of them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/sharding.h"
#include "runtime/train/tensors/trainer_state.h"

namespace bowline {

class FiniteCheck;  // stored_part.h

// The names in `directory` that checkpoints have, those of later steps first; nothing looks into them. A save that
// replaces a checkpoint deletes the old one last: until then the list has the name twice.
absl::StatusOr<std::vector<std::string>> CheckpointNames(const std::string& directory);
// True for the name of a checkpoint, "step-00000020".
bool IsCheckpointName(absl::string_view name);
// The order of such names, also past eight digits.
bool IsLaterStep(absl::string_view a, absl::string_view b);

// Deletes all checkpoints of `directory` whose TrainerState.run is `run`, up to the step that was saved last, but the
// `keep` >= 1 latest of them. Each disappears as a whole. Goes on after one that cannot be deleted, and returns the
// error of the first.
absl::Status DeleteOldCheckpoints(const std::string& directory, int64_t keep, absl::string_view run);

// A checkpoint that exists on disk.
class Checkpoint {
 public:
  // `path`: the directory of a run (its latest checkpoint is taken) or of one checkpoint. Errors name the file:
  // kNotFound when there is no checkpoint, kInvalidArgument or kDataLoss when its files are damaged.
  // Those of a damaged one name the checkpoint before it.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);
  // The same where `path` is the directory of a run.
  static absl::StatusOr<Checkpoint> OpenLatest(const std::string& path);

  const std::string& path() const { return path_; }
  const TrainerState& state() const { return state_; }
  // A checkpoint of a later step that the directory of the run has, though its file `latest` names this one: the path,
  // or empty. It may be one that was saved while `latest` could not be written, or of a run that went back.
  const std::string& later() const { return later_; }
  // The checkpoint that the file `latest` of the run's directory names, where it is not there: the name, or empty.
  const std::string& lost() const { return lost_; }

  // An error of one of its files: kNotFound, kInvalidArgument and kDataLoss also say that the checkpoint is damaged,
  // and name the one before it.
  absl::Status Damaged(const absl::Status& status) const;
  // Checks that the files of tensors were saved with this state. Reads their headers alone.
  absl::Status CheckState() const;

  // Reads this rank's shards of all `tensors`, which are those of a plan, into their memory, whatever ranks saved them;
  // padding becomes zero. Returns, before any memory is touched, kFailedPrecondition when a tensor is missing from the
  // checkpoint, has another type or shape there, or is there but not in `tensors`; a parameter that is stored rounded
  // is read from the optimizer's tensor with its bits; kInvalidArgument or kDataLoss when its files are damaged. A
  // tensor that is not saved is rounded to its own type. `begin` runs right before memory is touched; its error ends
  // the loading. kInvalidArgument, naming tensor and element, before that when a parameter that is stored rounded is
  // not its bits, rounded: one of the two files was changed. `check`, which may be null, looks at all values that
  // were saved; its error ends the loading, with some memory written.
  absl::Status Load(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self = {},
                    absl::FunctionRef<absl::Status()> begin = absl::OkStatus, FiniteCheck* check = nullptr) const;

 private:
  Checkpoint(std::string path, TrainerState state) : path_(std::move(path)), state_(std::move(state)) {}

  static absl::StatusOr<Checkpoint> OpenOne(const std::string& directory);
  absl::Status LoadFiles(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self,
                         absl::FunctionRef<absl::Status()> begin, FiniteCheck* check) const;

  std::string path_;
  TrainerState state_;
  std::string later_;
  std::string lost_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_H_
