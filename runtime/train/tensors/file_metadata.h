#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_

// Text in the header of each file of tensors of a checkpoint, by which a file of another checkpoint is noticed.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/tensors/trainer_state.h"

namespace bowline {

// "step", and "state", a digest of step, data and settings in trainer_state.json; of a file of a rank, which
// `rank` gives, also "rank", and "run" where the run has a name. Whole files lack the name of the run: with equal
// states runs save equal bytes.
std::map<std::string, std::string> FileMetadata(const TrainerState& state, std::optional<int64_t> rank);

// kInvalidArgument, naming the file and the difference, where a file was not saved with `state` by `rank`. A file of
// before 2026-11-27, or one that another program wrote, has fewer keys, and is compared by those; a file of a rank
// has at least step and rank.
absl::Status CheckFileMetadata(const std::string& path, const std::map<std::string, std::string>& metadata,
                               const TrainerState& state, std::optional<int64_t> rank);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_
