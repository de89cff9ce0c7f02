#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/cpu/quantized/integer_tiles.h"
#include "kernels/cpu/quantized/quantized.h"
#include "kernels/cpu/quantized/quantized_division.h"
#include "kernels/cpu/quantized/split_tiles.h"
#include "kernels/signatures/quantized_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

const GemmFunctions& SelectGemm(const QuantizedDivision& division) {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  if (division.amx) return isa_amx::kGemmBf16;
#endif
  return BOWLINE_SELECT_BF16_ISA(kGemm).Of(division.operands);
}

// A piece of work is a strip of rows of the weights, with all rows of x.
class QuantizedMatmul : public Kernel {
 public:
  QuantizedMatmul(const QuantizedMatmulShape& shape, int threads, Isa isa, bool plain)
      : shape_(shape),
        table_(BOWLINE_SELECT_ISA(kQuantized)),
        integers_(BOWLINE_SELECT_BF16_ISA(kIntegerProducts)),
        integer_tiles_(BOWLINE_SELECT_BF16_ISA(kIntegerTiles)),
        division_(DivideQuantizedMatmul(shape, threads, isa, plain)),
        gemm_(SelectGemm(division_)),
        threads_(threads),
        loop_(threads),
        round_loop_(threads) {}

  size_t ScratchBytes() const override { return division_.ScratchBytes(threads_); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const QuantizedMatrix& weights = shape_.weights;
    const void* x = arguments[0];
    if (division_.x_bytes > 0) {
      table_.widen(static_cast<const uint16_t*>(x), shape_.m * weights.columns, static_cast<float*>(scratch));
      x = scratch;
    }
    const uint8_t* blocks = static_cast<const uint8_t*>(arguments[1]);
    char* out = static_cast<char*>(arguments[2]);
    const int64_t strips = (weights.rows + division_.strip - 1) / division_.strip;
#if defined(BOWLINE_HAVE_X86_VARIANTS)
    if (division_.split) {
      RunSplit(static_cast<const float*>(x), blocks, strips, static_cast<char*>(scratch),
               reinterpret_cast<float*>(out));
      return;
    }
    if (division_.integers) {
      RunIntegers(static_cast<const float*>(x), blocks, strips, static_cast<char*>(scratch) + division_.x_bytes, out);
      return;
    }
#endif
    if (division_.few) {
      loop_.Run(strips, NanosecondsOfStrip(), [&](int64_t begin, int64_t end) {
        table_.few(shape_, static_cast<const float*>(x), blocks, begin * division_.strip,
                   std::min(end * division_.strip, weights.rows), out);
      });
      return;
    }
    char* own = static_cast<char*>(scratch) + division_.x_bytes;
    loop_.RunMembers(strips, [&](int member, int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        MultiplyStrip(x, blocks, strip * division_.strip, out,
                      own + static_cast<size_t>(member) * division_.thread_bytes);
      }
    });
  }

 private:
  // Of few rows: about 10 bytes a nanosecond, or 20 as integers.
  double NanosecondsOfStrip() const {
    return (division_.integers ? 0.05 : 0.1) * static_cast<double>(division_.strip * shape_.weights.row_bytes);
  }

#if defined(BOWLINE_HAVE_X86_VARIANTS)
  void RunSplit(const float* x, const uint8_t* blocks, int64_t strips, char* scratch, float* out) const {
    uint8_t* const planes = reinterpret_cast<uint8_t*>(scratch);
    uint8_t* const split_rows = planes + division_.records_bytes;
    uint8_t* const own = split_rows + division_.rounded_bytes;
    constexpr int64_t kRows = SplitTileSizes::kExtent;
    round_loop_.Run(
        (shape_.m + kRows - 1) / kRows, 0.4 * static_cast<double>(kRows * shape_.weights.columns),
        [&](int64_t begin, int64_t end) { isa_amx::kSplitTiles.split(shape_, x, begin, end, planes, split_rows); });
    loop_.RunMembers(strips, [&](int member, int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        const int64_t first = strip * division_.strip, last = std::min(first + division_.strip, shape_.weights.rows);
        isa_amx::kSplitTiles.multiply(shape_, planes, blocks, first, last,
                                      own + static_cast<size_t>(member) * division_.thread_bytes, out);
        MultiplyOthers(x, split_rows, blocks, first, last, reinterpret_cast<char*>(out));
      }
    });
  }

  void RunIntegers(const float* x, const uint8_t* blocks, int64_t strips, char* scratch, char* out) const {
    uint8_t* const records = reinterpret_cast<uint8_t*>(scratch);
    uint8_t* const rounded = records + division_.records_bytes;
    uint8_t* const own = rounded + division_.rounded_bytes;
    round_loop_.Run(shape_.m, 0.4 * static_cast<double>(shape_.weights.columns),
                    [&](int64_t begin, int64_t end) { integers_.round(shape_, x, begin, end, records, rounded); });
    if (division_.few) {
      loop_.Run(strips, NanosecondsOfStrip(), [&](int64_t begin, int64_t end) {
        const int64_t first = begin * division_.strip, last = std::min(end * division_.strip, shape_.weights.rows);
        integers_.few(shape_, records, blocks, first, last, out);
        MultiplyOthers(x, rounded, blocks, first, last, out);
      });
      return;
    }
    loop_.RunMembers(strips, [&](int member, int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        const int64_t first = strip * division_.strip, last = std::min(first + division_.strip, shape_.weights.rows);
        integer_tiles_.multiply(shape_, records, blocks, first, last,
                                own + static_cast<size_t>(member) * division_.thread_bytes, out);
        MultiplyOthers(x, rounded, blocks, first, last, out);
      }
    });
  }
#endif

  // Rows of x that are not rounded.
  void MultiplyOthers(const float* x, const uint8_t* rounded, const uint8_t* blocks, int64_t begin, int64_t end,
                      char* out) const {
    QuantizedMatmulShape row = shape_;
    row.m = 1;
    for (int64_t i = 0; i < shape_.m; ++i) {
      if (rounded[i] != 0) continue;
      table_.few(row, x + i * row.weights.columns, blocks, begin, end,
                 out + i * row.weights.rows * static_cast<int64_t>(SizeOf(row.out)));
    }
  }

  void MultiplyStrip(const void* x, const uint8_t* blocks, int64_t begin, char* out, char* scratch) const {
    const QuantizedMatrix& weights = shape_.weights;
    const int64_t rows = std::min(division_.strip, weights.rows - begin), k = weights.columns;
    table_.decode(weights.format, blocks + begin * weights.row_bytes,
                  rows * (k / InfoOf(weights.format).block_elements), division_.operands, scratch);
    const GemmShape piece = {shape_.m, rows, k, k, 1, 1, k, weights.rows, 1, /*accumulate=*/false};
    gemm_.run(piece, x, scratch, {GemmResultOf(shape_.out), out + begin * static_cast<int64_t>(SizeOf(shape_.out))},
              reinterpret_cast<float*>(scratch + division_.weights_bytes));
  }

  const QuantizedMatmulShape shape_;
  const QuantizedTable& table_;
  const IntegerTable& integers_;
  const IntegerTilesTable& integer_tiles_;
  const QuantizedDivision division_;
  const GemmFunctions& gemm_;
  const int threads_;
  const ParallelLoop loop_, round_loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedMatmulShape shape, ParseQuantizedMatmul(signature));
  // Plans for lesser processors may have no room for this processor's workspace.
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512Bf16}) {
    auto kernel =
        std::make_unique<QuantizedMatmul>(shape, signature.threads, std::min(isa, ActiveIsa()), /*plain=*/false);
    if (kernel->ScratchBytes() <= signature.scratch_limit) return kernel;
  }
  return std::make_unique<QuantizedMatmul>(shape, signature.threads, ActiveIsa(), /*plain=*/true);
}

}  // namespace

KernelDefinition QuantizedMatmulDefinition() {
  return {
      "quantized_matmul",
      "out[m, n] = sum_k x[m, k] weights[n, k]; x [M, K] f32 or bf16, weights u8 [N, K in blocks, bytes of a block], "
      "out [M, N] f32 or of the type of x; text format: q8_0, q4_0, q4_1, q4_k, q6_k; sums in f32; same bits for "
      "every number of threads",
      &Create};
}

}  // namespace bowline::kernels
