#include "kernels/cpu/quantized/quantized_division.h"

#include <algorithm>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/cpu/matmul/gemm_tiles.h"
#include "kernels/cpu/quantized/integer_tiles.h"
#include "kernels/cpu/quantized/split_tiles.h"
#include "kernels/signatures/quantized_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }

// Of elements of a type, in whole cache lines.
size_t BytesFor(int64_t elements, ElementType type) {
  return static_cast<size_t>(RoundUp(elements * static_cast<int64_t>(SizeOf(type)), 64));
}

// Of a panel.
size_t PanelBytes(const QuantizedMatrix& weights) {
  return VisitBlockFormat(weights.format, [&](auto format) {
    const int64_t groups = weights.columns / IntegerRecord<decltype(format)>::kElements;
    return static_cast<size_t>(groups * IntegerPanel<decltype(format)>::kGroupBytes);
  });
}

size_t RecordsBytes(const QuantizedMatmulShape& shape) {
  return VisitBlockFormat(shape.weights.format, [&](auto format) {
    using Record = IntegerRecord<decltype(format)>;
    const int64_t records = shape.m * (shape.weights.columns / Record::kElements);
    return static_cast<size_t>(RoundUp(records * Record::kBytes, 64));
  });
}

}  // namespace

QuantizedDivision DivideQuantizedMatmul(const QuantizedMatmulShape& shape, int threads, Isa isa, bool plain) {
  const GemmLevel& level = GemmLevelOf(isa);
  const int64_t k = shape.weights.columns, n = shape.weights.rows;
  QuantizedDivision division = {};
  division.few = shape.m <= kFewRows;
  division.split = !plain && isa >= Isa::kAmx && shape.m > kSomeRows && shape.x == ElementType::kF32;
  const bool takes_tiles = shape.x == ElementType::kF32 && (isa >= Isa::kAvx512Bf16 || shape.m <= kManyRows);
  division.integers = !plain && !division.split && isa >= Isa::kAvx2 && (division.few || takes_tiles);
  division.amx = !plain && isa >= Isa::kAmx && !division.few && shape.x == ElementType::kBF16;
  division.operands =
      !division.few && shape.x == ElementType::kBF16 && level.bf16_pairs ? ElementType::kBF16 : ElementType::kF32;
  if (shape.x != division.operands) division.x_bytes = BytesFor(shape.m * k, division.operands);
  if (division.integers) {
    division.records_bytes = RecordsBytes(shape);
    division.rounded_bytes = BytesFor(shape.m, ElementType::kU8);
  }
  if (division.split) {
    using Sizes = SplitTileSizes;
    const int64_t rows = RoundUp(shape.m, Sizes::kExtent);
    division.records_bytes = static_cast<size_t>(rows / Sizes::kExtent * (k / Sizes::kSteps) * Sizes::kGroupBytes);
    division.rounded_bytes = BytesFor(shape.m, ElementType::kU8);
    // Equal ones, as wide as may be, for x is read once for each, but two or more for each thread.
    const int64_t most = std::clamp(n / (2 * threads), 4 * Sizes::kExtent, Sizes::kStrip);
    division.strip = RoundUp(CeilDiv(n, CeilDiv(n, most)), 2 * Sizes::kExtent);
    division.thread_bytes =
        static_cast<size_t>(Sizes::kStripBytes) +
        sizeof(float) * static_cast<size_t>(division.strip * std::min(RoundUp(rows, 2 * Sizes::kExtent), Sizes::kSpan));
    return division;
  }
  if (division.few) {
    constexpr int64_t kRows = 16;
    division.strip = kRows;
    return division;
  }
  if (division.integers) {
    constexpr int64_t kPanels = 2;
    division.strip = std::min(kPanels * kPanelColumns, RoundUp(n, kPanelColumns));
    division.thread_bytes = static_cast<size_t>(division.strip / kPanelColumns) * PanelBytes(shape.weights);
    return division;
  }
  // Wide enough that packing x for each strip is little work, and no more than stays in a second-level cache.
  constexpr int64_t kStrip = 384, kStripElements = int64_t{1} << 18;
  const int64_t columns = std::clamp<int64_t>(kStripElements / k, level.tile_n, kStrip);
  division.strip = std::min(columns / level.tile_n * level.tile_n, RoundUp(n, level.tile_n));
  const GemmTiles& tiles = division.amx ? GemmTilesOfAmx(ElementType::kBF16) : level.Of(division.operands);
  const GemmSums sums = shape.out == ElementType::kF32 ? GemmSums::kInC : GemmSums::kInScratch;
  division.weights_bytes = BytesFor(std::min(division.strip, n) * k, division.operands);
  division.thread_bytes =
      division.weights_bytes +
      sizeof(float) * tiles.scratch_words(shape.m, std::min(division.strip, n), k, sums, /*b_packed=*/false);
  return division;
}

absl::StatusOr<size_t> QuantizedMatmulScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedMatmulShape shape, ParseQuantizedMatmul(signature));
  return DivideQuantizedMatmul(shape, signature.threads, isa, /*plain=*/false).ScratchBytes(signature.threads);
}

absl::StatusOr<size_t> QuantizedGatherScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(ParseQuantizedGather(signature).status());
  return 0;
}

}  // namespace bowline::kernels
