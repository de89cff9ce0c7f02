#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_

// The names of the files of a checkpoint (checkpoint.h), and the tensors that they hold.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/train/tensors/sharding.h"
#include "runtime/train/tensors/tensor_memory.h"
#include "types/element_type.h"

namespace bowline {

enum class CheckpointRole {
  kParameter,  // a weight, which goes into model.safetensors
  kOptimizer,  // anything else that is saved, which goes into optimizer.safetensors
};

// One tensor, dense and row-major, as a rank sees it.
struct CheckpointTensor {
  std::string key;  // name in the file
  CheckpointRole role = CheckpointRole::kParameter;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape = {};  // the global shape
  // The rank's shard, read by saving and written by Checkpoint::Load. Null if only other ranks have one.
  std::shared_ptr<TensorMemory> memory = nullptr;
  Sharding sharding = {};
  // The format of a quantised weight, whose `type` is u8; absent for other tensors.
  std::optional<ElementType> format = std::nullopt;
  bool is_saved = true;  // false if it always equals, but for rounding, a saved tensor with the same key
};

inline constexpr absl::string_view kLatestFile = "latest";
inline constexpr absl::string_view kStateFile = "trainer_state.json";
// Before the key of a parameter: the tensor of the optimizer that has its bits, where the parameter is stored rounded.
inline constexpr absl::string_view kExactPrefix = "exact.";
// "step-00000020"
std::string CheckpointName(int64_t step);
// "model.safetensors", "optimizer.safetensors"
absl::string_view WholeFileName(CheckpointRole role);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_
