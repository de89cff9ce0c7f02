#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/packed_matrix.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

static_assert(kPackedColumns % kTileN == 0, "the buffer's size holds for every tile");

template <typename Operand>
void WritePanels(const PackShape& shape, const void* source, int64_t begin, int64_t end, float* packed) {
  constexpr int64_t kSteps = Operand::kStepsPerWord;
  const auto* from = static_cast<const typename Operand::Source*>(source) + begin * kTileN * shape.stride_n;
  const int64_t words = CeilDiv(shape.k, kSteps), block = BlockWords(words), columns = RoundUp(shape.n, kTileN);
  const int64_t extent = (end * kTileN < shape.n ? end * kTileN : shape.n) - begin * kTileN;
  for (int64_t w0 = 0; w0 < words; w0 += block) {
    const int64_t wb = words - w0 < block ? words - w0 : block, k0 = w0 * kSteps;
    const int64_t steps = shape.k - k0 < wb * kSteps ? shape.k - k0 : wb * kSteps;
    Pack<Operand, kTileN>(extent, steps, from + k0 * shape.stride_k, shape.stride_n, shape.stride_k,
                          packed + w0 * columns + begin * kTileN * PanelWords<Operand>(wb), PanelWords<Operand>(wb));
  }
}

}  // namespace

extern const PackMatrixTable kPackMatrix = {kTileN, Bf16Operand::kStepsPerWord == 2, &WritePanels<F32Operand>,
                                            &WritePanels<Bf16Operand>, &WritePanels<F16Operand>};

}  // namespace bowline::kernels::BOWLINE_ISA
