#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/random_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

struct Dimension {
  int64_t extent = 1, global = 1, offset = 0;
  int operand = -1;

  bool whole() const { return operand < 0 && offset == 0 && extent == global; }
};

// The shard's dimensions, where those that lie whole within the one before are joined to it: each index of the joined
// one is an index of both.
std::vector<Dimension> JoinedDimensions(const ShardShape& shard) {
  std::vector<Dimension> joined;
  for (size_t d = 0; d < shard.shape.size(); ++d) {
    const Dimension own = {shard.shape[d], shard.global_shape[d], shard.offsets[d], shard.operands[d]};
    if (!joined.empty() && own.whole()) {
      joined.back().extent *= own.extent;
      joined.back().global *= own.global;
      joined.back().offset *= own.extent;
    } else if (!joined.empty() && joined.back().whole() && joined.back().extent == 1) {
      joined.back() = own;
    } else {
      joined.push_back(own);
    }
  }
  return joined;
}

absl::StatusOr<KernelProgram> RandomProgram(const Signature& signature, const std::string& function,
                                            absl::StatusOr<RandomSpec> parsed) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const RandomSpec spec, std::move(parsed));
  constexpr size_t kDimensions = 4;  // that the device function takes
  std::vector<Dimension> dimensions = JoinedDimensions(spec.shard);
  if (dimensions.size() > kDimensions) {
    return Refuse(signature, absl::StrCat("the tensor is divided along dimensions in ", dimensions.size(),
                                          " places; a CUDA device can have at most ", kDimensions));
  }
  dimensions.insert(dimensions.begin(), kDimensions - dimensions.size(), Dimension());
  std::vector<Parameter> parameters = {Parameter::I32(static_cast<int32_t>(spec.key[0])),
                                       Parameter::I32(static_cast<int32_t>(spec.key[1])),
                                       Parameter::F64(spec.scaling.bias),
                                       Parameter::F64(spec.scaling.gain),
                                       Parameter::F32(spec.scaling.limit),
                                       Parameter::F32(spec.scaling.below_limit)};
  for (const Dimension& d : dimensions) {
    for (int64_t value : {d.extent, d.global, d.offset}) parameters.push_back(Parameter::I64(value));
    parameters.push_back(d.operand < 0 ? Parameter::I64(0) : Parameter::Argument(U32(d.operand)));
  }
  const int64_t rows = dimensions[0].extent * dimensions[1].extent * dimensions[2].extent;
  const int64_t units = CeilDiv(dimensions[3].extent + 3, 4);  // a row may begin in the middle of a block
  parameters.push_back(Parameter::I64(rows));
  parameters.push_back(Parameter::I64(units));
  parameters.push_back(Parameter::Argument(U32(static_cast<int64_t>(signature.arguments.size()) - 1)));
  const int64_t blocks = std::min(CeilDiv(rows * units, kBlockThreads), kManyBlocks);
  return KernelProgram{0,
                       {{absl::StrCat(function, "_", NameOf(spec.element)),
                         {U32(blocks), 1, 1},
                         {kBlockThreads, 1, 1},
                         0,
                         std::move(parameters)}}};
}

absl::StatusOr<KernelProgram> NormalProgram(const Signature& signature) {
  return RandomProgram(signature, "bowline_random_normal", ParseRandomNormal(signature));
}
absl::StatusOr<KernelProgram> UniformProgram(const Signature& signature) {
  return RandomProgram(signature, "bowline_random_uniform", ParseRandomUniform(signature));
}

}  // namespace

CudaKernel RandomNormalCuda() {
  return {&NormalProgram, {"seed", "key", "mean", "stddev", "global_shape", "offsets", "sharded_dims", "padded"}};
}
CudaKernel RandomUniformCuda() {
  return {&UniformProgram, {"seed", "key", "lo", "hi", "global_shape", "offsets", "sharded_dims"}};
}

}  // namespace bowline::kernels::cuda
