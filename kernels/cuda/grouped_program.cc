#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/registry/valid_rows.h"
#include "kernels/signatures/grouped_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

// The tiles of grouped.cu and of grouped_mma.cu, which takes bf16 in rows of multiples of 16 bytes.
struct GroupedTiles {
  int64_t side;
  uint32_t shared_bytes;
  bool mma;

  GroupedTiles(DType operands, int64_t columns, int64_t other_columns) {
    mma = operands == DType::kBF16 && columns % 8 == 0 && other_columns % 8 == 0;
    side = mma ? 128 : 64;
    shared_bytes = mma ? 2 * 2 * 128 * 64 * 2 : 2 * 16 * (64 + 4) * 4;
  }

  absl::StatusOr<DeviceLaunch> Launch(const Signature& signature, std::string function, int64_t matrices,
                                      int64_t row_blocks, int64_t columns, std::initializer_list<int64_t> sizes) const {
    const __int128 blocks = static_cast<__int128>(matrices) * row_blocks * CeilDiv(columns, side);
    if (blocks > kMaxBlocks) {
      return Refuse(signature, absl::StrCat("the result has more than 2^31 - 1 tiles of ", side, " x ", side,
                                            ", more than a CUDA device launches"));
    }
    DeviceLaunch launch = {
        std::move(function), {U32(static_cast<int64_t>(blocks)), 1, 1}, {kBlockThreads, 1, 1}, shared_bytes};
    for (uint32_t i = 0; i < 4; ++i) launch.parameters.push_back(Parameter::Argument(i));
    for (int64_t size : sizes) launch.parameters.push_back(Parameter::I64(size));
    return launch;
  }
};

absl::StatusOr<KernelProgram> GroupedMatmulProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedMatmulShape shape, ParseGroupedMatmul(signature));
  const GroupedTiles tiles(shape.operands, shape.k, shape.n);
  const std::string function =
      tiles.mma
          ? absl::StrCat("bowline_grouped_matmul", shape.transposed ? "_transposed" : "", "_mma_", NameOf(shape.result))
          : absl::StrCat("bowline_grouped_matmul_", NameOf(shape.operands), "_", NameOf(shape.result));
  // Each group, and the rows before and behind them, may leave a block of rows unfilled. Blocks of rows that are left
  // out are launched all the same, as only the device knows which these are.
  const int64_t row_blocks = CeilDiv(shape.rows, tiles.side) + shape.groups + 2;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch launch, tiles.Launch(signature, function, 1, row_blocks, shape.n,
                                                                    {shape.rows, shape.k, shape.n, shape.groups}));
  if (!tiles.mma) launch.parameters.push_back(Parameter::I32(shape.transposed ? 1 : 0));
  launch.parameters.push_back(Parameter::I32(shape.leaves_rows_out ? 1 : 0));
  return KernelProgram{0, {std::move(launch)}};
}

absl::StatusOr<KernelProgram> GroupedOuterProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedOuterShape shape, ParseGroupedOuter(signature));
  const GroupedTiles tiles(shape.operands, shape.m, shape.n);
  const std::string function =
      tiles.mma ? absl::StrCat("bowline_grouped_outer_mma_", NameOf(shape.result))
                : absl::StrCat("bowline_grouped_outer_", NameOf(shape.operands), "_", NameOf(shape.result));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      DeviceLaunch launch, tiles.Launch(signature, function, shape.matrices, CeilDiv(shape.m, tiles.side), shape.n,
                                        {shape.rows, shape.m, shape.n, shape.groups}));
  return KernelProgram{0, {std::move(launch)}};
}

}  // namespace

CudaKernel GroupedMatmulCuda() { return {&GroupedMatmulProgram, {"transposed", kLeavesRowsOut}}; }
CudaKernel GroupedOuterCuda() { return {&GroupedOuterProgram, {}}; }

}  // namespace bowline::kernels::cuda
