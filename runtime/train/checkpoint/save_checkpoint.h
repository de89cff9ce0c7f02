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

// Saves a checkpoint of a run with one rank into `directory`, which is created if needed. Replaces a checkpoint of the
// same step, and accepts any values. `config_json` is the content of config.json; empty: no such file. Returns the path
// of the checkpoint. On error nothing has changed, unless the error says that the checkpoint is complete.
absl::StatusOr<std::string> SaveCheckpoint(const std::string& directory, const TrainerState& state,
                                           absl::Span<const CheckpointTensor> tensors, absl::string_view config_json);

// Saves a checkpoint step by step, for several ranks: one rank calls Begin, all write their shards into its staging
// path, and then the first rank writes the remaining files and calls Commit.
class CheckpointWriter {
 public:
  static absl::StatusOr<CheckpointWriter> Begin(const std::string& directory, int64_t step);

  // The folder that receives all files until Commit.
  const std::string& staging_path() const { return target_.staging_path(); }

  absl::Status WriteState(const TrainerState& state, absl::string_view config_json) const;
  absl::Status WriteIndex(int64_t step, const RankMesh& mesh, absl::Span<const CheckpointTensor> tensors) const;

  // Gives the checkpoint its name and makes it the latest. Returns its path. A later error says that it is complete.
  absl::StatusOr<std::string> Commit();
  // Returns whether the checkpoint has its name.
  bool is_complete() const { return is_complete_; }

 private:
  CheckpointWriter(std::string directory, std::string name, AtomicDirectory target)
      : directory_(std::move(directory)), name_(std::move(name)), target_(std::move(target)) {}

  std::string directory_, name_;
  AtomicDirectory target_;
  bool is_complete_ = false;
};

// Writes this rank's parts (see StoredParts) into its files in `staging_path` and syncs these: whole files for a run of
// one rank, otherwise the rank's own, each with its FileMetadata. `check`, which may be null, visits all values.
absl::Status WriteParts(const std::string& staging_path, const TrainerState& state, absl::Span<const StoredPart> parts,
                        const RankInMesh& self, FiniteCheck* check);

// Exports a checkpoint, saved by any ranks, into whole files as SaveCheckpoint writes them; equal values give equal
// bytes. Uses little memory. `output` must be missing or empty, and appears complete or not at all. Writes a checkpoint
// to resume from if `with_training`, and otherwise a Hugging Face directory.
absl::Status ExportCheckpoint(const Checkpoint& checkpoint, const std::string& output, bool with_training);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVE_CHECKPOINT_H_
