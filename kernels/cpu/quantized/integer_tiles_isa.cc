#include "kernels/cpu/half.h"
#include "kernels/cpu/quantized/integer_blocks.h"
#include "kernels/cpu/quantized/integer_tiles.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// Registers hold the sums of kTileRows rows and kTileVecs vectors of columns.
constexpr int kTileVecs = kLanes == kWideLanes ? 3 : 2, kTileColumns = kTileVecs * kLanes,
              kTileRows = kLanes == kWideLanes ? 8 : 4;
static_assert(kPanelColumns % kTileColumns == 0);

using LaneShorts = int16_t __attribute__((ext_vector_type(2 * kLanes)));

// AddPairs of vectors of kLanes.
template <typename Ints, typename Pairs>
BOWLINE_ALWAYS_INLINE Ints AddLanePairs(Ints sums, Pairs a, Ints b) {
  if constexpr (sizeof(Ints) == sizeof(WideInts)) {
    return AddPairs(sums, a, b);
  } else {
    using Products = int32_t __attribute__((ext_vector_type(2 * kLanes)));
    const auto p =
        __builtin_convertvector(a, Products) * __builtin_convertvector(__builtin_bit_cast(Pairs, b), Products);
    if constexpr (sizeof(Ints) == sizeof(WideInts) / 2) {
      return sums + (__builtin_shufflevector(p, p, 0, 2, 4, 6, 8, 10, 12, 14) +
                     __builtin_shufflevector(p, p, 1, 3, 5, 7, 9, 11, 13, 15));
    } else {
      return sums + (__builtin_shufflevector(p, p, 0, 2, 4, 6) + __builtin_shufflevector(p, p, 1, 3, 5, 7));
    }
  }
}

// Transposes the four elements of each quarter with those of the other vectors.
BOWLINE_ALWAYS_INLINE void TransposeQuarters(WideInts (&v)[4]) {
  const auto low = [](WideInts a, WideInts b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  };
  const auto high = [](WideInts a, WideInts b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  };
  const auto low_pairs = [](WideInts a, WideInts b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  };
  const auto high_pairs = [](WideInts a, WideInts b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  const WideInts ab_low = low(v[0], v[1]), ab_high = high(v[0], v[1]), cd_low = low(v[2], v[3]),
                 cd_high = high(v[2], v[3]);
  v[0] = low_pairs(ab_low, cd_low);
  v[1] = high_pairs(ab_low, cd_low);
  v[2] = low_pairs(ab_high, cd_high);
  v[3] = high_pairs(ab_high, cd_high);
}

// Element c of the four, that of column 4 c + q in the place of q.
BOWLINE_ALWAYS_INLINE Wide Interleave(const Quad (&q)[4]) {
  const auto ab = __builtin_shufflevector(q[0], q[1], 0, 1, 2, 3, 4, 5, 6, 7),
             cd = __builtin_shufflevector(q[2], q[3], 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(ab, cd, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

BOWLINE_ALWAYS_INLINE void StoreWide(float* to, Wide v) { __builtin_memcpy(to, &v, sizeof(v)); }

BOWLINE_ALWAYS_INLINE float* PanelRow(uint8_t* group, int row) {
  return reinterpret_cast<float*>(group) + row * kPanelColumns;
}

// Blocks of kWideLanes columns, in quads of which the columns are four apart, so that quarters of vectors are
// transposed.
template <typename Format>
BOWLINE_ALWAYS_INLINE void PackBlock(const BlockRows (&quads)[4], uint8_t* panel) {
  using Panel = IntegerPanel<Format>;
  RowScales<Format> scales[4];
#pragma clang loop unroll(full)
  for (int q = 0; q < 4; ++q) LoadScales(quads[q], scales[q]);
#pragma clang loop unroll(full)
  for (int group = 0; group < RowScales<Format>::kGroups; ++group, panel += Panel::kGroupBytes) {
#pragma clang loop unroll(full)
    for (int j = 0; j < Format::kRunsOfGroup; ++j) {
      WideInts halves[2][4];
#pragma clang loop unroll(full)
      for (int q = 0; q < 4; ++q) {
        Shorts even, odd;
        DecodeRows<Format>(quads[q], group * Format::kRunsOfGroup + j, even, odd);
        halves[0][q] = __builtin_bit_cast(WideInts, even - static_cast<int16_t>(Format::kBias));
        halves[1][q] = __builtin_bit_cast(WideInts, odd - static_cast<int16_t>(Format::kBias));
      }
#pragma clang loop unroll(full)
      for (int half = 0; half < 2; ++half) {
        TransposeQuarters(halves[half]);
#pragma clang loop unroll(full)
        for (int p = 0; p < 4; ++p) {
          StoreWide(PanelRow(panel, 8 * j + 4 * half + p), __builtin_bit_cast(Wide, halves[half][p]));
        }
      }
    }
    const Quad scale[4] = {scales[0].scale[group], scales[1].scale[group], scales[2].scale[group],
                           scales[3].scale[group]};
    StoreWide(PanelRow(panel, Panel::kPairs), Interleave(scale));
    if constexpr (Format::kHasOffset) {
      const Quad offset[4] = {scales[0].offset[group], scales[1].offset[group], scales[2].offset[group],
                              scales[3].offset[group]};
      StoreWide(PanelRow(panel, Panel::kPairs + 1), Interleave(offset));
    }
  }
}

// Columns [n, n + columns), the last one in place of those that are not there.
template <typename Format>
void PackIntegers(const QuantizedMatmulShape& shape, const uint8_t* weights, int64_t n, int64_t columns,
                  uint8_t* panel) {
  const int64_t row_bytes = shape.weights.row_bytes, blocks = shape.weights.columns / Format::kElements;
  for (int64_t first = 0; first < kPanelColumns; first += kWideLanes) {
    BlockRows quads[4];
    for (int64_t c = 0; c < kWideLanes; ++c) {
      const int64_t column = first + c < columns ? first + c : columns - 1;
      quads[c % 4].row[c / 4] = weights + (n + column) * row_bytes;
    }
    uint8_t* to = panel + first * sizeof(float);
    for (int64_t b = 0; b < blocks; ++b) {
      PackBlock<Format>(quads, to);
      to += RowScales<Format>::kGroups * IntegerPanel<Format>::kGroupBytes;
      for (BlockRows& quad : quads) {
        for (const uint8_t*& row : quad.row) row += Format::kBytes;
      }
    }
  }
}

// kRows rows with kTileColumns columns of a panel; records of a group are group_bytes after those of the one before.
template <typename Format, int kRows>
void MultiplyTile(int64_t groups, int64_t group_bytes, const uint8_t* records, const uint8_t* panel,
                  float (*out)[kPanelColumns]) {
  using Record = IntegerRecord<Format>;
  using Panel = IntegerPanel<Format>;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kTileVecs; ++j) Store(out[i] + j * kLanes, Vec(0.0f));
  }
  for (int64_t g = 0; g < groups; ++g, records += group_bytes, panel += Panel::kGroupBytes) {
    const float* row = reinterpret_cast<const float*>(panel);
    IntVec sums[kRows][kTileVecs] = {};
#pragma clang loop unroll_count(2)
    for (int p = 0; p < Panel::kPairs; ++p, row += kPanelColumns) {
      LaneShorts weights[kTileVecs];
#pragma clang loop unroll(full)
      for (int j = 0; j < kTileVecs; ++j) weights[j] = __builtin_bit_cast(LaneShorts, Load(row + j * kLanes));
#pragma clang loop unroll(full)
      for (int i = 0; i < kRows; ++i) {
        const IntVec x = LoadFrom<int32_t>(records + i * Record::kBytes + p * 4);
#pragma clang loop unroll(full)
        for (int j = 0; j < kTileVecs; ++j) sums[i][j] = AddLanePairs(sums[i][j], weights[j], x);
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const uint8_t* record = records + i * Record::kBytes;
      const Vec scale = LoadFrom<float>(record + Record::kScale);
#pragma clang loop unroll(full)
      for (int j = 0; j < kTileVecs; ++j) {
        float* to = out[i] + j * kLanes;
        Vec sum = MulAdd(__builtin_convertvector(sums[i][j], Vec) * scale, Load(row + j * kLanes), Load(to));
        if constexpr (Format::kHasOffset) {
          sum = MulAdd(Vec(LoadFrom<float>(record + Record::kTotal)), Load(row + kPanelColumns + j * kLanes), sum);
        }
        Store(to, sum);
      }
    }
  }
}

template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void MultiplyPanel(int64_t groups, int64_t group_bytes, const uint8_t* records,
                                         const uint8_t* panel, float (*out)[kPanelColumns]) {
  for (int column = 0; column < kPanelColumns; column += kTileColumns) {
    MultiplyTile<Format, kRows>(groups, group_bytes, records, panel + column * sizeof(float),
                                reinterpret_cast<float (*)[kPanelColumns]>(out[0] + column));
  }
}

template <typename Format>
BOWLINE_ALWAYS_INLINE void MultiplyRows(int64_t rows, int64_t groups, int64_t group_bytes, const uint8_t* records,
                                        const uint8_t* panel, float (&out)[kTileRows][kPanelColumns]) {
  switch (rows) {
    case 1:
      return MultiplyPanel<Format, 1>(groups, group_bytes, records, panel, out);
    case 2:
      return MultiplyPanel<Format, 2>(groups, group_bytes, records, panel, out);
    case 4:
      return MultiplyPanel<Format, 4>(groups, group_bytes, records, panel, out);
    default:
      return MultiplyPanel<Format, kTileRows>(groups, group_bytes, records, panel, out);
  }
}

void MultiplyTiles(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                   int64_t end, uint8_t* panels, void* out) {
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Format = decltype(type);
    using Record = IntegerRecord<Format>;
    const int64_t groups = shape.weights.columns / Record::kElements, group_bytes = shape.m * Record::kBytes,
                  panel_bytes = groups * IntegerPanel<Format>::kGroupBytes;
    uint8_t* panel = panels;
    for (int64_t n = begin; n < end; n += kPanelColumns, panel += panel_bytes) {
      PackIntegers<Format>(shape, weights, n, end - n < kPanelColumns ? end - n : kPanelColumns, panel);
    }
    int64_t rows = kTileRows;
    for (int64_t i = 0; i < shape.m; i += rows) {
      while (rows > shape.m - i) rows /= 2;
      panel = panels;
      for (int64_t n = begin; n < end; n += kPanelColumns, panel += panel_bytes) {
        alignas(64) float tile[kTileRows][kPanelColumns];
        MultiplyRows<Format>(rows, groups, group_bytes, records + i * Record::kBytes, panel, tile);
        const int64_t columns = end - n < kPanelColumns ? end - n : kPanelColumns;
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at = (i + r) * shape.weights.rows + n;
          if (shape.out == ElementType::kF32) {
            for (int64_t c = 0; c < columns; ++c) static_cast<float*>(out)[at + c] = tile[r][c];
          } else {
            for (int64_t c = 0; c < columns; ++c) static_cast<Bf16*>(out)[at + c] = Narrow<Bf16>(tile[r][c]);
          }
        }
      }
    }
  });
}

}  // namespace

extern const IntegerTilesTable kIntegerTiles = {&MultiplyTiles};

}  // namespace bowline::kernels::BOWLINE_ISA
