#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_

// The index of a checkpoint by several ranks: how each tensor is divided among the files of the ranks.
//
//   {
//     "version": 1,
//     "step": 20,
//     "mesh": [{"axis": "pp", "size": 2}, {"axis": "dp", "size": 2}, {"axis": "tp", "size": 2}],
//     "role_axis": "pp",
//     "parameters": {
//       "model.embed_tokens.weight":
//         {"dtype": "F32", "shape": [251, 24], "view": [251, 24], "cuts": [["tp"], []], "flat": ["dp"], "role": 0}
//     },
//     "optimizer": {...}
//   }
//
// Defaults: `view` is the shape, `cuts` (which axes shard each dimension of the view) and `flat` are empty, `role` is
// 0, and `role_axis` is none. tensor_division.h in runtime/base explains them. Ranks along the remaining mesh axes hold
// copies and store an equal share of them each. So the size of the index, like that of a plan, does not grow with the
// number of ranks.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/sharding.h"
#include "types/element_type.h"

namespace bowline {

inline constexpr absl::string_view kShardIndexFile = "shards.json";

// Returns the name of a rank's file beside the index: "parameters.rank-00003.safetensors".
std::string ShardFileName(CheckpointRole role, int64_t rank);

struct ShardIndex {
  struct Tensor {
    std::string key;
    CheckpointRole role = CheckpointRole::kParameter;
    ElementType type = ElementType::kF32;
    std::vector<int64_t> shape;
    ShardedTensor sharded;
  };
  int64_t step = 0;
  RankMesh mesh;
  std::vector<Tensor> tensors;
};

// Formats the index of all saved tensors in `tensors`.
std::string ShardIndexToJson(int64_t step, const RankMesh& mesh, absl::Span<const CheckpointTensor> tensors);

// Reads and checks an index. Errors name the file: kInvalidArgument for any mistake in its content, or the errors of
// ReadJsonFile.
absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path);
// As above, for a text in memory; `name` stands for the path in messages.
absl::StatusOr<ShardIndex> ShardIndexFromJson(absl::string_view text, const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_
