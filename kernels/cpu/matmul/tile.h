#ifndef BOWLINE_KERNELS_CPU_MATMUL_TILE_H_
#define BOWLINE_KERNELS_CPU_MATMUL_TILE_H_

// Tiles of C whose sums stay in registers over a block of k. Only for *_isa.cc files.

#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/prefetch.h"

namespace bowline::kernels::BOWLINE_ISA {

// The accumulators fill the registers, leaving room for one row of B and one broadcast word of A. kTileM is a power of
// two, as the extents of models are.
#if defined(__AVX512F__)
constexpr int kTileM = 8, kVecs = 3;  // 24 accumulators of 32 registers
#elif defined(__AVX2__)
constexpr int kTileM = 4, kVecs = 3;  // 12 accumulators of 16 registers
#else
constexpr int kTileM = 4, kVecs = 2;  // 8 accumulators of 16 registers
#endif
constexpr int kTileN = kVecs * kLanes;

constexpr int kRowsAhead = 32;  // rows of B from a load to its prefetch; measured

// The words of A that a tile multiplies with one row of B, read from packed A: kTileM consecutive words.
template <typename Operand>
struct PackedColumns {
  const float* p;
  BOWLINE_ALWAYS_INLINE float Word(const PackedColumns& columns, int row) { return columns.p[row]; }
  BOWLINE_ALWAYS_INLINE void Next(PackedColumns& columns) { columns.p += kTileM; }
};

// The same words read from A in place, whose rows are contiguous in k. k must be a multiple of kStepsPerWord.
template <typename Operand>
struct DirectColumns {
  const typename Operand::Source* p;
  int64_t row_stride;
  BOWLINE_ALWAYS_INLINE float Word(const DirectColumns& columns, int row) {
    return Operand::template AlongSteps<1>(columns.p + row * columns.row_stride)[0];
  }
  BOWLINE_ALWAYS_INLINE void Next(DirectColumns& columns) { columns.p += Operand::kStepsPerWord; }
};

// Reads rows of packed B, kTileN words each.
template <typename Operand>
struct PackedRows {
  const float* p;
  template <int kCount>
  BOWLINE_ALWAYS_INLINE void Read(const PackedRows& rows, Vec (&row)[kCount]) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kCount; ++j) {
      // The panel is in the second-level cache, and hardware prefetchers do not fetch it soon enough.
      __builtin_prefetch(rows.p + kRowsAhead * kTileN + j * kLanes);
      row[j] = Load(rows.p + j * kLanes);
    }
  }
  BOWLINE_ALWAYS_INLINE void Next(PackedRows& rows) { rows.p += kTileN; }
};

// Reads rows of B in place, which are contiguous in n. k must be a multiple of kStepsPerWord.
template <typename Operand>
struct DirectRows {
  const typename Operand::Source* p;
  int64_t step_stride;
  template <int kCount>
  BOWLINE_ALWAYS_INLINE void Read(const DirectRows& rows, Vec (&row)[kCount]) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kCount; ++j) row[j] = Operand::template Across<kLanes>(rows.p + j * kLanes, rows.step_stride);
  }
  BOWLINE_ALWAYS_INLINE void Next(DirectRows& rows) { rows.p += Operand::kStepsPerWord * rows.step_stride; }
};

// out = A B, or out += A B with `accumulate`, for kRows rows of kCount vectors, over `words` words of k.
template <typename Operand, int kRows, int kCount, typename ColumnsOfA, typename RowsOfB>
BOWLINE_ALWAYS_INLINE void Multiply(int64_t words, ColumnsOfA a, RowsOfB b, float* out, int64_t ld, bool accumulate) {
  // The loop does not touch C, so these prefetches have time to fetch it for the end.
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kCount; ++j) __builtin_prefetch(out + i * ld + j * kLanes, 1);
  }
  Vec sums[kRows][kCount] = {};
  for (int64_t s = 0; s < words; ++s, ColumnsOfA::Next(a), RowsOfB::Next(b)) {
    Vec row[kCount];
    RowsOfB::Read(b, row);
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const Vec scalar = ColumnsOfA::Word(a, i);
#pragma clang loop unroll(full)
      for (int j = 0; j < kCount; ++j) sums[i][j] = Operand::MultiplyAdd(scalar, row[j], sums[i][j]);
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kCount; ++j) {
      float* p = out + i * ld + j * kLanes;
      Store(p, accumulate ? Load(p) + sums[i][j] : sums[i][j]);
    }
  }
}

template <typename Operand, int kRows, int kCount>
static void PackedTile(int64_t words, const float* a, const float* b, float* out, int64_t ld, bool accumulate) {
  Multiply<Operand, kRows, kCount>(words, PackedColumns<Operand>{a}, PackedRows<Operand>{b}, out, ld, accumulate);
}
template <typename Operand, int kRows, int kCount>
static void DirectATile(int64_t words, const typename Operand::Source* a, int64_t row_stride, const float* b,
                        float* out, int64_t ld, bool accumulate) {
  Multiply<Operand, kRows, kCount>(words, DirectColumns<Operand>{a, row_stride}, PackedRows<Operand>{b}, out, ld,
                                   accumulate);
}
template <typename Operand, int kRows>
static void DirectBTile(int64_t words, const float* a, const typename Operand::Source* b, int64_t step_stride,
                        float* out, int64_t ld, bool accumulate) {
  Multiply<Operand, kRows, kVecs>(words, PackedColumns<Operand>{a}, DirectRows<Operand>{b, step_stride}, out, ld,
                                  accumulate);
}

// Tables of tiles by numbers of rows and vectors, so that few rows, as in decoding one token, take less time.
template <typename Operand, typename Index>
struct TileTables;
template <typename Operand, int... kIndex>
struct TileTables<Operand, IndexList<kIndex...>> {
  using Packed = void (*)(int64_t, const float*, const float*, float*, int64_t, bool);
  using DirectA = void (*)(int64_t, const typename Operand::Source*, int64_t, const float*, float*, int64_t, bool);
  using DirectB = void (*)(int64_t, const float*, const typename Operand::Source*, int64_t, float*, int64_t, bool);
  static constexpr Packed packed[] = {&PackedTile<Operand, kIndex / kVecs + 1, kIndex % kVecs + 1>...};
  static constexpr DirectA direct_a[] = {&DirectATile<Operand, kIndex / kVecs + 1, kIndex % kVecs + 1>...};
  static constexpr DirectB direct_b[] = {&DirectBTile<Operand, kIndex / kVecs + 1>...};
};
template <typename Operand>
using Tiles = TileTables<Operand, Indices<kTileM * kVecs>>;

// Rows of A: in place, `stride` elements apart, if in_place is not null; else at `packed`, as PackA packed them.
template <typename Source>
struct TileOfA {
  const float* packed;
  const Source* in_place;
  int64_t stride;
};
// Where sums go. With `accumulate` they are added to the values in memory. Rows are `ld` floats apart.
struct TileOfC {
  float* out;
  int64_t ld;
  bool accumulate;
};
// B in panels of kTileN columns, whose beginnings are `words` words apart.
struct Panels {
  const float* first;
  int64_t words;
};

// Tiles in vector registers, a `Tiles` argument of Product. product.h documents the members.
template <typename OperandType>
class VectorTiles {
 public:
  using Operand = OperandType;
  using Source = typename Operand::Source;
  static constexpr int64_t kTileM = BOWLINE_ISA::kTileM, kPanelColumns = kTileN, kBlockM = 12 * kTileM,
                           kStripN = 3 * kTileN, kSteps = Operand::kStepsPerWord;

  // True if rows of A are contiguous in k: a tile then reads kTileM streams, which hardware prefetchers can follow.
  static bool ReadsA(const GemmShape& shape) {
    return Operand::kWordsInMemory && shape.a_k == 1 && shape.k % Operand::kStepsPerWord == 0;
  }
  static void PackA(int64_t rows, int64_t steps, const Source* a, int64_t stride_m, int64_t stride_k, float* dst) {
    Pack<Operand, BOWLINE_ISA::kTileM>(rows, steps, a, stride_m, stride_k, dst, CeilDiv(steps, Operand::kStepsPerWord));
  }

  static void Multiply(int64_t rows, int64_t columns, int64_t words, const TileOfA<Source>& a, const Panels& panels,
                       int64_t column, const TileOfC& c, Prefetcher& prefetcher) {
    prefetcher.Step();
    const float* b = panels.first + column / kTileN * panels.words;
    const int64_t kind = (rows - 1) * kVecs + CeilDiv(columns, kLanes) - 1;
    if (a.in_place != nullptr) {
      Tiles<Operand>::direct_a[kind](words, a.in_place, a.stride, b, c.out, c.ld, c.accumulate);
    } else {
      Tiles<Operand>::packed[kind](words, a.packed, b, c.out, c.ld, c.accumulate);
    }
  }

  // Multiplies kTileN columns of B in place. Rows of B are contiguous, and b_k elements apart.
  static void MultiplyInPlace(int64_t rows, int64_t words, const float* a, const Source* b, int64_t b_k, float* out,
                              int64_t ld, bool accumulate) {
    Tiles<Operand>::direct_b[(rows - 1) * kVecs](words, a, b, b_k, out, ld, accumulate);
  }
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_TILE_H_
