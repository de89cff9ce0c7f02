#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/product.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// c[j] (+)= a . b(j) for columns of B that are contiguous in k; four at a time share the loads of `a`.
template <typename Operand>
void DotColumns(const GemmShape& shape, const typename Operand::Source* a, const typename Operand::Source* b,
                const GemmOutput& output) {
  constexpr int kColumns = 4;
  constexpr int64_t kSteps = kLanes * Operand::kStepsPerWord, kFinish = 16 * kColumns;
  // The next columns where rows of B are short, which the processor does not see coming: their lines in order. Else a
  // kilobyte ahead in each row.
  constexpr int64_t kBytes = sizeof(typename Operand::Source), kShortBytes = 16384;
  const bool is_short = shape.b_n == shape.k && kColumns * shape.k * kBytes <= kShortBytes;
  float done[kFinish];
  for (int64_t j0 = 0; j0 < shape.n; j0 += kColumns) {
    const typename Operand::Source* column[kColumns];
    for (int j = 0; j < kColumns; ++j) column[j] = b + Smaller(j0 + j, shape.n - 1) * shape.b_n;
    Vec sum[kColumns][2] = {};
    int64_t k = 0;
    for (; k + 2 * kSteps <= shape.k; k += 2 * kSteps) {
      if (is_short) {
        const auto* next = reinterpret_cast<const char*>(column[0] + kColumns * (shape.k + k));
#pragma clang loop unroll(full)
        for (int64_t line = 0; line < 2 * kSteps * kColumns * kBytes; line += 64) __builtin_prefetch(next + line);
      } else {
#pragma clang loop unroll(full)
        for (const auto* at : column) __builtin_prefetch(reinterpret_cast<const char*>(at + k) + 1024);
      }
#pragma clang loop unroll(full)
      for (int half = 0; half < 2; ++half) {
        const Vec words = Operand::template AlongSteps<kLanes>(a + k + half * kSteps);
#pragma clang loop unroll(full)
        for (int j = 0; j < kColumns; ++j) {
          sum[j][half] = Operand::MultiplyAdd(
              words, Operand::template AlongSteps<kLanes>(column[j] + k + half * kSteps), sum[j][half]);
        }
      }
    }
    for (int64_t j = 0; j < Smaller(kColumns, shape.n - j0); ++j) {
      float dot = ReduceAdd(sum[j][0] + sum[j][1]);
      for (int64_t tail = k; tail < shape.k; ++tail) dot += Operand::Value(a[tail]) * Operand::Value(column[j][tail]);
      if (shape.accumulate) dot += static_cast<const float*>(output.c)[(j0 + j) * shape.c_n];
      done[j0 % kFinish + j] = dot;
    }
    const int64_t begin = j0 / kFinish * kFinish, end = Smaller(j0 + kColumns, shape.n);
    if (end % kFinish == 0 || end == shape.n) {
      Finish(output, shape.c_m, shape.c_n, 0, begin, 1, end - begin, done, kFinish);
    }
  }
}

template <typename Operand>
void Run(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output, float* scratch) {
  const auto* sa = static_cast<const typename Operand::Source*>(a);
  if (shape.dot) return DotColumns<Operand>(shape, sa, static_cast<const typename Operand::Source*>(b), output);
  Product<VectorTiles<Operand>>(shape, sa, b, output, scratch).Run();
}

template <typename Operand>
constexpr GemmFunctions Functions() {
  using Tiles = VectorTiles<Operand>;
  return {VectorTilesOf<Tiles>(), &Run<Operand>};
}

}  // namespace

extern const GemmTable kGemm = {kTileN, Functions<F32Operand>(), Functions<Bf16Operand>(), Functions<F16Operand>()};

}  // namespace bowline::kernels::BOWLINE_ISA
