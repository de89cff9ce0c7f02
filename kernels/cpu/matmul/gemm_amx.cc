#include "kernels/cpu/matmul/amx_product.h"
#include "kernels/cpu/matmul/amx_split_tile.h"
#include "kernels/cpu/matmul/amx_tile.h"
#include "kernels/cpu/matmul/gemm.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

template <typename Tiles>
void Run(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output, float* scratch) {
  AmxProduct<Tiles>(shape, static_cast<const typename Tiles::Source*>(a), b, output, scratch).Run();
}

template <typename Tiles>
constexpr GemmFunctions Functions() {
  return {AmxTilesOf<typename Tiles::Sizes>(), &Run<Tiles>};
}

}  // namespace

extern const GemmFunctions kGemmBf16 = Functions<AmxTiles>();
extern const GemmFunctions kGemmF32 = Functions<AmxSplitTiles>();

}  // namespace bowline::kernels::BOWLINE_ISA
