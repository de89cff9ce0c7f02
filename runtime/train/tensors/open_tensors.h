#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_OPEN_TENSORS_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_OPEN_TENSORS_H_

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {

// Opens the tensors of one role, parameters or optimizer state, of a checkpoint directory.
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenStoredTensors(const std::string& checkpoint, CheckpointRole role);

// Opens the weights of a Hugging Face directory, a checkpoint directory, or a GGUF file (*.gguf).
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenWeightTensors(const std::string& directory);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_OPEN_TENSORS_H_
