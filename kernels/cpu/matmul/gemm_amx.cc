#include "kernels/cpu/matmul/amx_tile.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/product.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

void Run(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output, float* scratch) {
  Product<AmxTiles>(shape, static_cast<const uint16_t*>(a), b, output, scratch).Run();
}

}  // namespace

static_assert(AmxTiles::kTileM == AmxSizes::kTileM && AmxTiles::kPanelColumns == AmxSizes::kPanelColumns &&
              AmxTiles::kBlockM == AmxSizes::kBlockM && AmxTiles::kStripN == AmxSizes::kStripN &&
              AmxTiles::kScratchWords == AmxSizes::kScratchWords && AmxTiles::kPadWords == AmxSizes::kPadWords &&
              AmxTiles::kSteps == AmxSizes::kSteps);

extern const GemmFunctions kGemmBf16 = {{AmxTiles::kTileM, AmxTiles::kBlockM, &GemmScratch<AmxTiles>::Words}, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
