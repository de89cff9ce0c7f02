#ifndef BOWLINE_KERNELS_SIGNATURES_RANDOM_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_RANDOM_SIGNATURE_H_

// `random_normal` and `random_uniform`, checked.

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/registry/philox.h"
#include "kernels/registry/registry.h"
#include "kernels/signatures/random_scaling.h"

namespace bowline::kernels {

// The place of a shard in the global tensor. The global tensor may be sharded along some dimensions, and an operand
// says for each of them which shard this is.
struct ShardShape {
  std::vector<int64_t> shape, global_shape, offsets;
  std::vector<int> operands;  // by dimension, the operand that has the shard's place, or -1
  bool padded = false;        // elements may lie beyond the end of the global tensor

  // The index along dimension `d` at which the shard begins.
  int64_t Start(absl::Span<void* const> places, size_t d) const {
    return operands[d] < 0 ? offsets[d] : *static_cast<const int32_t*>(places[operands[d]]) * shape[d];
  }

  // The global index of the first element of local row `row`, and how many of the row lie in the global tensor: these
  // follow the first.
  std::pair<uint64_t, int64_t> Row(absl::Span<void* const> places, int64_t row) const {
    const int64_t last = Start(places, shape.size() - 1);
    const int64_t count = std::clamp<int64_t>(global_shape.back() - last, 0, shape.back());
    uint64_t index = last, stride = global_shape.back();
    for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d) {
      const int64_t at = Start(places, d) + row % shape[d];
      if (at >= global_shape[d]) return {0, 0};
      index += stride * static_cast<uint64_t>(at);
      stride *= static_cast<uint64_t>(global_shape[d]);
      row /= shape[d];
    }
    return {index, count};
  }
};

struct RandomSpec {
  ShardShape shard;
  PhiloxKey key;
  RandomScaling scaling;
  DType element;  // f32, of normal numbers any of types/computed_types.h
};
absl::StatusOr<RandomSpec> ParseRandomNormal(const Signature& signature);
absl::StatusOr<RandomSpec> ParseRandomUniform(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_RANDOM_SIGNATURE_H_
