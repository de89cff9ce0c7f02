#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_CHECKPOINT_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_directory.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/tensors/stored_part.h"

namespace bowline {

// Saves a checkpoint by one rank into `directory`, which is made if it does not exist, and replaces one of the same
// step, whatever the values are. `config_json` is the content of config.json; empty for none. Returns the path of the
// checkpoint. On error nothing has changed, unless the error says that the checkpoint is complete.
absl::StatusOr<std::string> SaveCheckpoint(const std::string& directory, const TrainerState& state,
                                           absl::Span<const CheckpointTensor> tensors, absl::string_view config_json);

// The steps of SaveCheckpoint. Several ranks save like this: one begins; all write their shards into its staging path;
// when all have done so, the first one writes the rest and commits.
class CheckpointWriter {
 public:
  static absl::StatusOr<CheckpointWriter> Begin(const std::string& directory, int64_t step);

  // The folder into which files are written until Commit.
  const std::string& staging_path() const { return target_.staging_path(); }

  absl::Status WriteState(const TrainerState& state, absl::string_view config_json) const;
  absl::Status WriteIndex(int64_t step, const RankMesh& mesh, absl::Span<const CheckpointTensor> tensors) const;

  // Gives the checkpoint its name and makes it the latest. Returns its path. An error after it got its name says so.
  absl::StatusOr<std::string> Commit();
  // Whether it has its name.
  bool is_complete() const { return is_complete_; }

 private:
  CheckpointWriter(std::string directory, std::string name, AtomicDirectory target)
      : directory_(std::move(directory)), name_(std::move(name)), target_(std::move(target)) {}

  std::string directory_, name_;
  AtomicDirectory target_;
  bool is_complete_ = false;
};

// Writes this rank's parts, as StoredParts gives them, into its files in `staging_path`, synced: the whole files of a
// rank alone, or files of the rank, with their FileMetadata. `check` looks at all values; it may be null.
absl::Status WriteParts(const std::string& staging_path, const TrainerState& state, absl::Span<const StoredPart> parts,
                        const RankInMesh& self, FiniteCheck* check);

// Writes whole tensors of any checkpoint as SaveCheckpoint of one rank would, in little memory: with equal values, the
// same bytes. The directory `output`, which must not hold anything, appears complete or not at all. If `with_training`,
// it is a checkpoint that training resumes from, else a Hugging Face directory.
absl::Status ExportCheckpoint(const Checkpoint& checkpoint, const std::string& output, bool with_training);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_CHECKPOINT_H_
