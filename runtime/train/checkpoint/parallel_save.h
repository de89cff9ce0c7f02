#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_PARALLEL_SAVE_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_PARALLEL_SAVE_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/page_memory.h"
#include "runtime/base/status.h"
#include "runtime/train/agreement.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/stored_part.h"

namespace bowline {

// The content of a checkpoint, as one rank sees it.
struct CheckpointContent {
  TrainerState state;
  std::vector<CheckpointTensor> tensors;
  std::string config_json;  // empty: none
  RankInMesh self;
};

// One save by all ranks of a run, which have a directory in common; a rank alone is all of them. Each writes its files;
// only when all are on disk does the checkpoint get its name. If a rank fails, all have its error, and nothing has
// changed. Ranks call Begin and Commit together.
class ParallelSave {
 public:
  struct Options {
    // Values that are not finite are noted and written. Without it they end the save: Copy or else Write gives
    // IsNotFinite (non_finite.h).
    bool allows_non_finite = false;
  };

  // Rank 0 makes the folder into which all write.
  static absl::StatusOr<std::unique_ptr<ParallelSave>> Begin(const std::string& directory, CheckpointContent content,
                                                             const Options& options, Agreement& agreement);

  int64_t step() const { return content_.state.step; }
  const std::string& run() const { return content_.state.run; }
  // The bytes of the tensors that this rank stores.
  absl::StatusOr<uint64_t> bytes() const;

  // Copies the tensors that the ranks store to `memory`, so that the states may change before Write. `memory`, which
  // outlives the save, is replaced where it is too small. Returns false, and nothing is copied, when a rank has no
  // memory for it. Ranks call it together.
  absl::StatusOr<bool> Copy(PageMemory& memory, Agreement& agreement);

  // Writes the files of this rank, on any thread.
  absl::Status Write();

  // Write, while the ranks wait for each other as long as it takes. Returns the result of this rank, for Commit.
  absl::Status WriteTogether(Agreement& agreement);

  // Gives the checkpoint its name, if Write gave OK on all ranks. `written`: the result of this rank's. Returns the
  // path.
  absl::StatusOr<std::string> Commit(const absl::Status& written, Agreement& agreement);

  // The same when ranks cannot agree any more, because one of them is gone: rank 0 gives the checkpoint its name when
  // the files of all ranks are there, which appear complete or not at all, and waits for them as long as the others
  // live, and then as long as `patience`. Empty on the other ranks.
  absl::StatusOr<std::string> CommitAlone(const absl::Status& written, std::chrono::nanoseconds patience,
                                          absl::FunctionRef<bool()> others_live);

  // After Commit: the first value that was not finite and allowed, of the first rank that has one; empty if there is
  // none.
  const std::string& non_finite() const { return non_finite_; }

 private:
  ParallelSave(CheckpointContent content, const Options& options)
      : content_(std::move(content)), check_(options.allows_non_finite) {}

  absl::Status BeginHere(const std::string& directory);
  absl::Status CopyParts(absl::Span<uint8_t> to);
  absl::Status AgreeOnContent(const absl::Status& written, Agreement& agreement);
  absl::StatusOr<std::string> NameHere(CheckpointWriter& writer);
  bool FilesAreThere() const;
  absl::Status Explain(const absl::Status& status) const;

  CheckpointContent content_;
  FiniteCheck check_;
  std::vector<StoredPart> parts_;  // of content_.tensors
  std::string staging_;
  std::optional<CheckpointWriter> writer_;  // of rank 0
  std::string named_;                       // of rank 0: the path of the checkpoint, once it has its name
  std::string non_finite_;
};

// Saves by Begin, Write and Commit.
absl::StatusOr<std::string> SaveCheckpointOfRanks(const std::string& directory, CheckpointContent content,
                                                  Agreement& agreement);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_PARALLEL_SAVE_H_
