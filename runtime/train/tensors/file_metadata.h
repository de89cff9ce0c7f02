#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_

// Metadata in the headers of a checkpoint's tensor files, which reveals a file that belongs to another checkpoint.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/tensors/trainer_state.h"

namespace bowline {

// Returns the metadata of a file of a checkpoint: "step" and "state", a digest of the step, data and settings that
// trainer_state.json has. For the file of one rank, whose number is `rank`, also "rank", and "run" if the run has a
// name. Files of whole tensors do not name the run, so that runs with equal states save equal bytes.
std::map<std::string, std::string> FileMetadata(const TrainerState& state, std::optional<int64_t> rank);

// Checks that a file was saved with `state`, and by `rank` if given. Otherwise returns kInvalidArgument, naming the
// file and the difference. Missing keys are not compared: files from before 2026-11-27 or from other programs lack
// some. A rank's file must have step and rank.
absl::Status CheckFileMetadata(const std::string& path, const std::map<std::string, std::string>& metadata,
                               const TrainerState& state, std::optional<int64_t> rank);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_FILE_METADATA_H_
