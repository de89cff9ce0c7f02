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
// With several ranks, each writes two files in place of those two files of tensors, and rank 0 writes an index:
//
//     shards.json                           how tensors are divided among ranks, see shard_index.h
//     parameters.rank-00003.safetensors     the elements of parameters that rank 3 stores
//     optimizer.rank-00003.safetensors      the elements of optimizer state that rank 3 stores
//
// Any plan of the model, for any mesh, loads either form. Beside the checkpoints lies
//
//   DIR/latest                    the name of the checkpoint that was saved last, one line of text
//
// AtomicDirectory writes a checkpoint under a hidden name, syncs and renames it; then `latest` is replaced. So if a run
// is killed or finds the disk full at any instant, every checkpoint that was complete before remains, and `latest`
// names one of them.

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

// Returns the names of checkpoints in `directory`, later steps first, without looking into them. A save that replaces a
// checkpoint deletes the old one last; until then the list has that name twice.
absl::StatusOr<std::vector<std::string>> CheckpointNames(const std::string& directory);
// Returns whether `name` has the form of a checkpoint name: "step-00000020".
bool IsCheckpointName(absl::string_view name);
// Returns whether the step in name `a` is later than that in `b`, also for steps of more than eight digits.
bool IsLaterStep(absl::string_view a, absl::string_view b);

// Deletes the checkpoints of `directory` whose TrainerState.run is `run`, up to the step saved last, except the `keep`
// >= 1 latest ones. Each disappears as a whole. After an error it continues with the next checkpoint; it returns the
// first error.
absl::Status DeleteOldCheckpoints(const std::string& directory, int64_t keep, absl::string_view run);

// A checkpoint that exists on disk.
class Checkpoint {
 public:
  // Opens the checkpoint at `path`, or, if that is the directory of a run, its latest one. Errors name the file:
  // kNotFound when there is no checkpoint, kInvalidArgument or kDataLoss when its files are damaged. An error of a
  // damaged checkpoint also names the one before it.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);
  // As Open, where `path` must be the directory of a run.
  static absl::StatusOr<Checkpoint> OpenLatest(const std::string& path);

  const std::string& path() const { return path_; }
  const TrainerState& state() const { return state_; }
  // The path of a checkpoint with a later step than the one that the run's file `latest` names; empty if there is none.
  // It was saved when `latest` could not be written, or belongs to a run that went back.
  const std::string& later() const { return later_; }
  // The name of the checkpoint that the run's file `latest` names, if that does not exist; otherwise empty.
  const std::string& lost() const { return lost_; }

  // Annotates an error about one of its files: for kNotFound, kInvalidArgument and kDataLoss it adds that the
  // checkpoint is damaged, and names the one before it.
  absl::Status Damaged(const absl::Status& status) const;
  // Checks that the files of tensors were saved with this state. Reads only their headers.
  absl::Status CheckState() const;

  // Reads this rank's shards of `tensors`, all those of a plan, into their memory, whichever ranks saved them;
  // padding becomes zero. A parameter that is stored rounded is read from the optimizer's tensor with its
  // exact bits. A tensor with is_saved false is rounded to its own type. Before touching any memory, Load
  // returns kFailedPrecondition when a tensor is missing, differs in type or shape, or is stored but not in
  // `tensors`, kInvalidArgument or kDataLoss for damaged files, and kInvalidArgument, naming tensor and
  // element, for a rounded parameter that contradicts its exact bits. Then it calls `begin`, whose error ends
  // the loading. `check`, which may be null, visits all saved values; its error ends the loading with some
  // memory written.
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
