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
#include "runtime/comm/agreement.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/stored_part.h"

namespace bowline {

// The content of a checkpoint, with the tensors of one rank.
struct CheckpointContent {
  TrainerState state;
  std::vector<CheckpointTensor> tensors;
  std::string config_json;  // empty: none
  RankInMesh self;
};

// One save by all ranks of a run, which share a directory. Each rank writes its files, and only when all files are on
// disk does the checkpoint get its name. If one rank fails, all ranks return its error and no checkpoint has changed.
// All ranks call Begin and Commit together.
class ParallelSave {
 public:
  struct Options {
    // Note infinities and NaNs and write them. If false, such a value ends the save: Copy, or Write without a Copy,
    // returns an error for which IsNotFinite (non_finite.h) holds.
    bool allows_non_finite = false;
  };

  // Begins a save. Rank 0 makes the folder into which all ranks write.
  static absl::StatusOr<std::unique_ptr<ParallelSave>> Begin(const std::string& directory, CheckpointContent content,
                                                             const Options& options, Agreement& agreement);

  int64_t step() const { return content_.state.step; }
  const std::string& run() const { return content_.state.run; }
  // The size of the tensors that this rank stores.
  absl::StatusOr<uint64_t> bytes() const;

  // Copies the tensors that the ranks store into `memory`, so that the states may change before Write. `memory` must
  // outlive the save; Copy replaces it if it is too small. Returns false, without a copy on any rank, when a rank gets
  // no memory. All ranks call it together.
  absl::StatusOr<bool> Copy(PageMemory& memory, Agreement& agreement);

  // Writes the files of this rank. May run on any thread.
  absl::Status Write();

  // Writes as Write does, while the ranks wait for each other without a limit. Returns this rank's result, for Commit.
  absl::Status WriteTogether(Agreement& agreement);

  // Gives the checkpoint its name if Write succeeded on all ranks, and returns its path. `written` is this rank's
  // result of Write.
  absl::StatusOr<std::string> Commit(const absl::Status& written, Agreement& agreement);

  // As Commit, when a rank is gone and the ranks can no longer agree. Rank 0 gives the checkpoint its name once it sees
  // the files of all ranks, each of which appears complete or not at all. It waits while `others_live`, and then for
  // `patience`. Returns an empty path on other ranks.
  absl::StatusOr<std::string> CommitAlone(const absl::Status& written, std::chrono::nanoseconds patience,
                                          absl::FunctionRef<bool()> others_live);

  // After Commit: describes the first allowed infinity or NaN of the lowest rank that has one; empty if there is none.
  // See Options.
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
  std::vector<StoredPart> parts_;  // parts of content_.tensors that this rank stores
  std::string staging_;
  std::optional<CheckpointWriter> writer_;  // rank 0 only
  std::string named_;                       // rank 0 only: the path of the checkpoint, once it has its name
  std::string non_finite_;
};

// Saves with Begin, Write and Commit.
absl::StatusOr<std::string> SaveCheckpointOfRanks(const std::string& directory, CheckpointContent content,
                                                  Agreement& agreement);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_PARALLEL_SAVE_H_
