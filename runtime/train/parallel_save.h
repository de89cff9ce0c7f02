#ifndef BOWLINE_RUNTIME_TRAIN_PARALLEL_SAVE_H_
#define BOWLINE_RUNTIME_TRAIN_PARALLEL_SAVE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/agreement.h"
#include "runtime/train/checkpoint.h"

namespace bowline {

// Saves a checkpoint as SaveCheckpoint does, by all ranks of a run, which call it with their own tensors and a
// directory that they share. Each writes its shards; only when all are on disk does the checkpoint get its name. If a
// rank fails, all return its error, and nothing has changed.
absl::StatusOr<std::string> SaveCheckpointOfRanks(const std::string& directory, const TrainerState& state,
                                                  absl::Span<const CheckpointTensor> tensors,
                                                  absl::string_view config_json, const RankInMesh& self,
                                                  Agreement& agreement);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_PARALLEL_SAVE_H_
