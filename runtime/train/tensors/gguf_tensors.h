#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {

// Opens the tensors of a GGUF file under their Hugging Face names. Floats keep their stored type. Quantised blocks are
// read as f32, or as stored by FindBlocks. Projections of GPT-2 are read as f32.
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenGgufTensors(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_
