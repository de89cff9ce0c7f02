#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_

// The file that says how the tensors of a checkpoint are divided among the files of ranks:
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
// `view`, `cuts` (the shardings of its dimensions), `flat`, `role` and `role_axis` may be missing; they are then the
// shape, none, none, 0 and none. Their meaning is in runtime/base/tensor_division.h; the axes that are not named there,
// in the order of the mesh and without the role's, are those of the copies. So the size of the index depends on the
// number of ranks no more than that of a plan.

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

// The file of a rank, in the directory of the index: "parameters.rank-00003.safetensors".
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

// The text of the index, with each tensor of `tensors` that is saved.
std::string ShardIndexToJson(int64_t step, const RankMesh& mesh, absl::Span<const CheckpointTensor> tensors);

// Reads an index. Every mistake in the file is an error that names the file: kInvalidArgument, or those of
// ReadJsonFile.
absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path);
// Reads the text of an index; `name` stands for the path in messages.
absl::StatusOr<ShardIndex> ShardIndexFromJson(absl::string_view text, const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_SHARD_INDEX_H_
