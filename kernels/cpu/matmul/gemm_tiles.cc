#include "kernels/cpu/matmul/gemm_tiles.h"

#include "kernels/cpu/matmul/gemm_scratch.h"

namespace bowline::kernels {
namespace {

// The sizes that tile.h has for vectors of kLanes f32.
template <int kLanes, int kRows, int kVectors, int kStepsPerWord>
struct VectorSizes {
  static constexpr int64_t kTileM = kRows, kPanelColumns = int64_t{kVectors} * kLanes, kBlockM = 12 * kTileM,
                           kStripN = 3 * kPanelColumns, kScratchWords = 0, kPadWords = 1, kSteps = kStepsPerWord;
};

template <typename Sizes>
constexpr GemmTiles TilesOf() {
  return {static_cast<int>(Sizes::kTileM), Sizes::kBlockM, &GemmScratch<Sizes>::Words};
}

template <int kLanes, int kRows, int kVectors, int kStepsOfBf16>
constexpr GemmLevel LevelOf() {
  using F32 = VectorSizes<kLanes, kRows, kVectors, 1>;
  using Bf16 = VectorSizes<kLanes, kRows, kVectors, kStepsOfBf16>;
  return {static_cast<int>(F32::kPanelColumns), kStepsOfBf16 == 2, TilesOf<F32>(), TilesOf<Bf16>(),
          /*f16=*/TilesOf<F32>()};
}

constexpr GemmLevel kBaseline = LevelOf<4, 4, 2, 1>(), kAvx2 = LevelOf<8, 4, 3, 1>(), kAvx512 = LevelOf<16, 8, 3, 1>(),
                    kAvx512Bf16 = LevelOf<16, 8, 3, 2>();
constexpr GemmTiles kAmxTiles = TilesOf<AmxSizes>();

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

const GemmTiles& AmxTilesOfBf16() { return kAmxTiles; }

}  // namespace bowline::kernels
