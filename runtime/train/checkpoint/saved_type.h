#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_

// Chooses the type in which checkpoints store parameters.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "types/element_type.h"

namespace bowline {

// Gives each saved f32 parameter the type `type` = bf16, rounded to nearest even. For each it adds an optimizer tensor
// with the exact bits, whose key is kExactPrefix and the parameter's key. Checkpoint::Load restores from that one, so
// that a run continues unchanged. Other tensors stay as they are.
std::vector<CheckpointTensor> WithRoundedParameters(std::vector<CheckpointTensor> tensors, ElementType type);

// Readers silently round weights to the type that `config_json` states. Sets its keys "dtype" and "torch_dtype", as far
// as it has them, to the type of most elements of the saved parameters; adds "torch_dtype" if it has neither. Returns
// it unchanged if it is no JSON object, states the type, or has neither key and the type is f32, the readers' default.
std::string ConfigWithType(absl::string_view config_json, absl::Span<const CheckpointTensor> tensors);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_
