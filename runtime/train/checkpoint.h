#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_H_

// Checkpoints on disk. A training run saves into one directory:
//
//   DIR/step-00000020/            one checkpoint, never changed once it has this name
//     model.safetensors           parameters under their Hugging Face names
//     config.json                 of the model, so that the checkpoint is itself a Hugging Face directory
//     optimizer.safetensors       optimizer state
//     trainer_state.json          TrainerState
//   DIR/latest                    the name of the checkpoint that was saved last, one line of text
//
// A checkpoint is written under a hidden name, synced, and renamed (AtomicDirectory); then `latest` is replaced. A run
// that is killed or finds the disk full at any instant thus leaves every checkpoint that was complete before, and
// `latest` names one of them.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/base/storage_type.h"
#include "runtime/train/sampler.h"

namespace bowline {

enum class CheckpointRole {
  kParameter,  // goes into model.safetensors
  kOptimizer,  // goes into optimizer.safetensors
};

// One tensor in memory, dense and row-major.
struct CheckpointTensor {
  std::string key;  // name in the file
  CheckpointRole role = CheckpointRole::kParameter;
  StorageType type = StorageType::kF32;
  std::vector<int64_t> shape = {};
  void* data = nullptr;  // read by SaveCheckpoint, written by Checkpoint::Load
};

// What else a run needs to go on as if it had never stopped.
struct TrainerState {
  int64_t step = 0;   // optimizer steps done
  uint64_t seed = 0;  // of the shuffle and of random operations
  DataOrder order = DataOrder::kSequential;
  int64_t next_draw = 0;    // data position: the first draw of the Sampler that was not trained on
  int64_t data_tokens = 0;  // size of the dataset, to notice another one
  std::string plan = {};    // name of the plan, for messages

  bool operator==(const TrainerState&) const = default;
};

// Saves into `directory`, which is made if it does not exist, replacing a checkpoint of the same step. `config_json` is
// the content of config.json; empty for none. Returns the path of the checkpoint. On error nothing has changed.
absl::StatusOr<std::string> SaveCheckpoint(const std::string& directory, const TrainerState& state,
                                           absl::Span<const CheckpointTensor> tensors, absl::string_view config_json);

// Deletes checkpoints of `directory`: of those up to the step that was saved last, all but the `keep` >= 1 latest. Each
// disappears as a whole.
absl::Status DeleteOldCheckpoints(const std::string& directory, int64_t keep);

// A checkpoint that exists.
class Checkpoint {
 public:
  // `path`: the directory of a run (its latest checkpoint is taken) or of one checkpoint. Errors name the file:
  // kNotFound when there is no checkpoint, kInvalidArgument or kDataLoss when its files are damaged.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const TrainerState& state() const { return state_; }

  // Reads all of `tensors` into their memory. kFailedPrecondition, before any memory is touched, when a tensor is
  // missing from the checkpoint, has another type or shape there, or is there but not in `tensors`.
  absl::Status Load(absl::Span<const CheckpointTensor> tensors) const;

 private:
  Checkpoint(std::string path, TrainerState state) : path_(std::move(path)), state_(std::move(state)) {}

  std::string path_;
  TrainerState state_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_H_
