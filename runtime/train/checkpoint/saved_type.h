#ifndef BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_
#define BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_

// The type in which checkpoints have parameters.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "types/element_type.h"

namespace bowline {

// Gives each parameter of type f32 that is saved the type `type` = bf16, rounded to nearest even, and adds a tensor of
// the optimizer under kExactPrefix and its key, of its bits: Checkpoint::Load restores from that, so that a run goes
// on as it would have. Other tensors stay.
std::vector<CheckpointTensor> WithRoundedParameters(std::vector<CheckpointTensor> tensors, ElementType type);

// `config_json` with the type of the parameters of `tensors` that most elements have as "dtype" and "torch_dtype", of
// which it has at least one then; readers round to that without a word. The same text where it says so already, where
// it says nothing and the type is f32, which readers take then, and where it is no JSON object.
std::string ConfigWithType(absl::string_view config_json, absl::Span<const CheckpointTensor> tensors);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_CHECKPOINT_SAVED_TYPE_H_
