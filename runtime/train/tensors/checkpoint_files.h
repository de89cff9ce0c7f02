#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_

// Names the files of a checkpoint (checkpoint.h) and describes the tensors in them.

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
  kParameter,  // a weight, stored in model.safetensors
  kOptimizer,  // any other saved state, stored in optimizer.safetensors
};

// One dense row-major tensor of a checkpoint, with the shard that a rank holds.
struct CheckpointTensor {
  std::string key;  // name in the file
  CheckpointRole role = CheckpointRole::kParameter;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape = {};  // of the whole tensor
  // Memory of the rank's shard: saving reads it, Checkpoint::Load writes it. Null if the rank holds no shard.
  std::shared_ptr<TensorMemory> memory = nullptr;
  Sharding sharding = {};
  // The block format of a quantised weight, which is stored as `type` u8; absent for other tensors.
  std::optional<ElementType> format = std::nullopt;
  bool is_saved = true;  // false if it equals, up to rounding, a saved tensor with the same key
};

inline constexpr absl::string_view kLatestFile = "latest";
inline constexpr absl::string_view kStateFile = "trainer_state.json";
// Before a parameter's key: the optimizer tensor with the exact bits of a parameter that is stored rounded.
inline constexpr absl::string_view kExactPrefix = "exact.";
// "step-00000020"
std::string CheckpointName(int64_t step);
// "model.safetensors", "optimizer.safetensors"
absl::string_view WholeFileName(CheckpointRole role);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_CHECKPOINT_FILES_H_
