#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/gemm_tiles.h"

namespace bowline::kernels {
namespace {

// The sizes that tile.h has for vectors of kLanes f32.
template <int kLanes, int kRows, int kVectors, int kStepsPerWord>
struct VectorSizes {
  static constexpr int64_t kTileM = kRows, kPanelColumns = int64_t{kVectors} * kLanes, kBlockM = 12 * kTileM,
                           kStripN = 3 * kPanelColumns, kSteps = kStepsPerWord;
};

template <int kLanes, int kRows, int kVectors, int kStepsOfBf16>
constexpr GemmLevel LevelOf() {
  using F32 = VectorSizes<kLanes, kRows, kVectors, 1>;
  using Bf16 = VectorSizes<kLanes, kRows, kVectors, kStepsOfBf16>;
  return {static_cast<int>(F32::kPanelColumns), kStepsOfBf16 == 2, VectorTilesOf<F32>(), VectorTilesOf<Bf16>(),
          /*f16=*/VectorTilesOf<F32>()};
}

constexpr GemmLevel kBaseline = LevelOf<4, 4, 2, 1>(), kAvx2 = LevelOf<8, 4, 3, 1>(), kAvx512 = LevelOf<16, 8, 3, 1>(),
                    kAvx512Bf16 = LevelOf<16, 8, 3, 2>();
struct AmxBf16 : AmxBf16Sizes {};
struct AmxF32 : AmxF32Sizes {};
constexpr GemmTiles kAmxBf16 = AmxTilesOf<AmxBf16>(), kAmxF32 = AmxTilesOf<AmxF32>();

}  // namespace

const GemmLevel& GemmLevelOf(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return kBaseline;
    case Isa::kAvx2:
      return kAvx2;
    case Isa::kAvx512:
      return kAvx512;
    case Isa::kAvx512Bf16:
    case Isa::kAmx:
      break;
  }
  return kAvx512Bf16;
}

const GemmTiles& GemmTilesOfAmx(ElementType operands) { return operands == ElementType::kBF16 ? kAmxBf16 : kAmxF32; }

}  // namespace bowline::kernels
