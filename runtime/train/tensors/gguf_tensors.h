#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {

// The tensors of a GGUF file under the names of Hugging Face: floats as they are stored, blocks of bits as f32 or, by
// FindBlocks, as they are stored. GPT-2's projections are f32.
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenGgufTensors(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_GGUF_TENSORS_H_
