#include "kernels/cpu/grouped/grouped_division.h"

#include <algorithm>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

GemmSums SumsFor(DType result) { return result == DType::kF32 ? GemmSums::kInC : GemmSums::kInScratch; }

}  // namespace

GroupedMatmulPieces DivideGroupedMatmul(const GroupedMatmulShape& shape, int tile_n, const GemmTiles& tiles) {
  constexpr int64_t kBlock = 512;
  // Strips so wide that packing a block of rows for each is little work beside multiplying it.
  constexpr int64_t kStrip = 256;
  const int64_t block = RoundUp(std::min(kBlock, shape.rows), tiles.tile_m),
                strip = RoundUp(std::min(kStrip, shape.n), tile_n);
  return {block, strip,
          sizeof(float) * tiles.scratch_words(std::min(block, shape.rows), std::min(strip, shape.n), shape.k,
                                              SumsFor(shape.result), /*b_packed=*/false)};
}

GroupedOuterPieces DivideGroupedOuter(const GroupedOuterShape& shape, const GemmTiles& tiles) {
  constexpr int64_t kStrip = 128;
  const int64_t strip = RoundUp(std::min(kStrip, shape.m), tiles.tile_m);
  return {strip, sizeof(float) * tiles.scratch_words(std::min(strip, shape.m), shape.n, shape.rows,
                                                     SumsFor(shape.result), /*b_packed=*/false)};
}

absl::StatusOr<size_t> GroupedMatmulScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedMatmulShape shape, ParseGroupedMatmul(signature));
  const GemmLevel& level = GemmLevelOf(isa);
  return DivideGroupedMatmul(shape, level.tile_n, level.Of(shape.operands)).scratch_bytes *
         static_cast<size_t>(signature.threads);
}

absl::StatusOr<size_t> GroupedOuterScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedOuterShape shape, ParseGroupedOuter(signature));
  return DivideGroupedOuter(shape, GemmLevelOf(isa).Of(shape.operands)).scratch_bytes *
         static_cast<size_t>(signature.threads);
}

}  // namespace bowline::kernels
