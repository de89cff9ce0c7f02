#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_PIECE_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_PIECE_H_

// Attention of a sequence's only row to a range of positions, and the function that joins ranges. Lanes of vectors are
// elements of a head, except in vectors of scores: these have four slots of kSlotKeys lanes, one per query head, whose
// lanes are keys. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_tiles.h"
#include "kernels/cpu/paged/paged_attention.h"
#include "kernels/cpu/paged/paged_blocks.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kSlots = PagedPieceMemory::kSlots, kSlotKeys = kLanes / kSlots;

// A step of SumEach: adds the two halves of each piece of 2 kHalf lanes, and puts x[i]'s sums before x[i + kHalf]'s.
template <int kHalf, int... kLane>
BOWLINE_ALWAYS_INLINE void FoldPairs(Vec (&x)[kLanes], IndexList<kLane...>) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kHalf; ++i) {
    const Vec a = x[i], b = x[i + kHalf];
    x[i] = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane : kLanes + kLane - kHalf)...) +
           __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane + kHalf : kLanes + kLane)...);
  }
}
// A vector whose lane i is the sum of the lanes of x[i], added pairwise. Overwrites x.
template <int kHalf = kLanes / 2>
BOWLINE_ALWAYS_INLINE Vec SumEach(Vec (&x)[kLanes]) {
  FoldPairs<kHalf>(x, Indices<kLanes>());
  if constexpr (kHalf > 1) {
    return SumEach<kHalf / 2>(x);
  } else {
    return x[0];
  }
}

template <int kDistance, int... kLane>
BOWLINE_ALWAYS_INLINE Vec Exchange(Vec x, IndexList<kLane...>) {
  return __builtin_shufflevector(x, x, (kLane ^ kDistance)...);
}
// Each lane becomes the largest of the lanes of its slot, or with SumOfSlots their sum.
template <int kDistance = 1>
BOWLINE_ALWAYS_INLINE Vec LargestOfSlots(Vec x) {
  if constexpr (kDistance < kSlotKeys) {
    const Vec y = Exchange<kDistance>(x, Indices<kLanes>());
    return LargestOfSlots<2 * kDistance>(y > x ? y : x);
  } else {
    return x;
  }
}
template <int kDistance = 1>
BOWLINE_ALWAYS_INLINE Vec SumOfSlots(Vec x) {
  if constexpr (kDistance < kSlotKeys) {
    return SumOfSlots<2 * kDistance>(x + Exchange<kDistance>(x, Indices<kLanes>()));
  } else {
    return x;
  }
}

// Lane i gets the scale of key `first + i % kSlotKeys`, or of the last key, count - 1, if there are fewer.
template <int... kLane>
BOWLINE_ALWAYS_INLINE Vec ScalesOfSlots(const Int8* cache, const int64_t* offsets, int64_t first, int64_t count,
                                        IndexList<kLane...>) {
  Vec scales = Vec(0.0f);
#pragma clang loop unroll(full)
  for (int i = 0; i < kSlotKeys; ++i) scales[i] = ScaleOf(cache + offsets[Smaller(first + i, count - 1)]);
  return __builtin_shufflevector(scales, scales, (kLane % kSlotKeys)...);
}

// sums[head * kSlotKeys + key] += the products of `count` elements from element d on, lane by lane.
template <int kHeads, typename T>
BOWLINE_ALWAYS_INLINE void MultiplyKeys(const T* const (&keys)[kSlotKeys], int64_t d, int64_t count, const float* query,
                                        int64_t padded, Vec (&sums)[kLanes]) {
  Vec key[kSlotKeys];
#pragma clang loop unroll(full)
  for (int i = 0; i < kSlotKeys; ++i) key[i] = LoadPart(keys[i] + d, count);
#pragma clang loop unroll(full)
  for (int h = 0; h < kHeads; ++h) {
    const Vec q = Load(query + h * padded + d);
#pragma clang loop unroll(full)
    for (int i = 0; i < kSlotKeys; ++i) sums[h * kSlotKeys + i] = MulAdd(q, key[i], sums[h * kSlotKeys + i]);
  }
}

// Prefetches tokens. Their heads are short and far apart, which hardware prefetchers do not foresee, so each pass over
// a block prefetches the tokens that the next pass reads.
template <typename T>
struct Ahead {
  const T* cache;
  const int64_t* offsets;
  int64_t count, dim;

  BOWLINE_ALWAYS_INLINE void Ask(const Ahead& ahead, int64_t token) {
    constexpr int kTo = 2;  // the second-level cache
    constexpr int64_t kLine = 64 / sizeof(T);
    if (token >= ahead.count) return;
    const T* from = ahead.cache + ahead.offsets[token];
    for (int64_t d = kHasScales<T> ? -kInt8ScaleBytes : 0; d < ahead.dim; d += kLine) {
      __builtin_prefetch(from + d, 0, kTo);
    }
  }
};

// Computes scores of `kHeads` queries with `count` keys, one vector per kSlotKeys keys; minus infinity beyond the last
// key. Returns the maximum of each slot's scores and `largest`, in all lanes of the slot.
template <int kHeads, typename T>
BOWLINE_ALWAYS_INLINE Vec ScoreKeys(int64_t dim, int64_t count, const T* cache, const int64_t* offsets,
                                    const float* query, int64_t padded, const Ahead<T>& ahead, float* scores,
                                    Vec largest) {
  for (int64_t j = 0; j < count; j += kSlotKeys) {
    const T* keys[kSlotKeys];
#pragma clang loop unroll(full)
    for (int i = 0; i < kSlotKeys; ++i) {
      keys[i] = cache + offsets[Smaller(j + i, count - 1)];
      Ahead<T>::Ask(ahead, j + i);
    }
    Vec sums[kLanes] = {};
    int64_t d = 0;
    for (; d + kLanes <= dim; d += kLanes) MultiplyKeys<kHeads>(keys, d, kLanes, query, padded, sums);
    if (d < dim) MultiplyKeys<kHeads>(keys, d, dim - d, query, padded, sums);
    Vec score = SumEach(sums);
    if constexpr (kHasScales<T>) score *= ScalesOfSlots(cache, offsets, j, count, Indices<kLanes>());
    if (j + kSlotKeys > count) {
      for (int lane = 0; lane < kLanes; ++lane) {
        if (lane % kSlotKeys >= count - j) score[lane] = -__builtin_inff();
      }
    }
    Store(scores + j * kSlots, score);
    largest = score > largest ? score : largest;
  }
  return LargestOfSlots(largest);
}

// out[head] = out[head] * shrink + the sum of `count` weighted values, for kVectors vectors of elements from d on. The
// last of these vectors has `part` elements.
template <int kHeads, int kVectors, typename T>
BOWLINE_ALWAYS_INLINE void AddValues(int64_t d, int64_t part, int64_t count, const T* cache, const int64_t* offsets,
                                     const float* weights, const float* shrink, const Ahead<T>& ahead, float* out,
                                     int64_t padded) {
  Vec sums[kHeads][kVectors];
#pragma clang loop unroll(full)
  for (int h = 0; h < kHeads; ++h) {
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) sums[h][v] = Load(out + h * padded + d + v * kLanes) * shrink[h * kSlotKeys];
  }
  for (int64_t j = 0; j < count; ++j) {
    const T* from = cache + offsets[j] + d;
    if (d == 0) Ahead<T>::Ask(ahead, j);
    const float* weight = weights + j / kSlotKeys * kLanes + j % kSlotKeys;
    Vec value[kVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) {
      value[v] = v + 1 < kVectors ? LoadWide<kLanes>(from + v * kLanes) : LoadPart(from + v * kLanes, part);
    }
#pragma clang loop unroll(full)
    for (int h = 0; h < kHeads; ++h) {
      const Vec scalar = weight[h * kSlotKeys];
#pragma clang loop unroll(full)
      for (int v = 0; v < kVectors; ++v) sums[h][v] = MulAdd(scalar, value[v], sums[h][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int h = 0; h < kHeads; ++h) {
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) Store(out + h * padded + d + v * kLanes, sums[h][v]);
  }
}

// Adds the contributions of a block of `count` keys and values to `kHeads` query heads of a piece.
template <int kHeads, typename T>
static void AttendBlock(int64_t dim, int64_t count, const T* keys, const T* values, const int64_t* offsets,
                        const float* query, int64_t padded, const Ahead<T>& next_values, const Ahead<T>& next_keys,
                        float* scores, float* maximum, float* sum, float* out) {
  const Vec old = Load(maximum);
  const Vec largest = ScoreKeys<kHeads>(dim, count, keys, offsets, query, padded, next_values, scores, old);
  Store(maximum, largest);
  const Vec shrink = Exp2NonPositive(old - largest);
  Vec total = Load(sum) * shrink;
  for (int64_t j = 0; j < count; j += kSlotKeys) {
    Vec weight = Exp2NonPositive(Load(scores + j * kSlots) - largest);
    total += weight;
    if constexpr (kHasScales<T>) weight *= ScalesOfSlots(values, offsets, j, count, Indices<kLanes>());
    Store(scores + j * kSlots, weight);
  }
  Store(sum, total);
  float shrinks[kLanes];
  Store(shrinks, shrink);
#if defined(__AVX512F__)
  constexpr int kVectors = 4;
#else
  constexpr int kVectors = 2;
#endif
  int64_t d = 0;
  for (; d + kVectors * kLanes <= dim; d += kVectors * kLanes) {
    AddValues<kHeads, kVectors>(d, kLanes, count, values, offsets, scores, shrinks, next_keys, out, padded);
  }
  for (; d + kLanes <= dim; d += kLanes) {
    AddValues<kHeads, 1>(d, kLanes, count, values, offsets, scores, shrinks, next_keys, out, padded);
  }
  if (d < dim) AddValues<kHeads, 1>(d, dim - d, count, values, offsets, scores, shrinks, next_keys, out, padded);
}

template <typename Q, typename T>
static void AttendPiece(const PagedAttentionShape& shape, const PagedAttentionArguments& x, const PagedPiece& piece,
                        float* scratch) {
  constexpr int64_t kBlockKeys = PagedPieceMemory::kBlockKeys;
  const PagedPieceMemory s(shape);
  const PagedPartial partial(shape);
  const int64_t dim = shape.paged.head_dim, padded = partial.padded, group = PagedGroup(shape);
  float *query = scratch + s.query, *out = scratch + s.out, *maximum = scratch + s.maximum, *sum = scratch + s.sum;
  const int64_t row = (piece.row * shape.query_heads + piece.head * group) * dim;
  for (int64_t h = 0; h < group; ++h) {
    const Q* from = static_cast<const Q*>(x.query) + row + h * dim;
    for (int64_t d = 0; d < dim; d += kLanes) {
      Store(query + h * padded + d, LoadPart(from + d, Smaller(dim - d, kLanes)) * (shape.scale * kLog2E));
    }
  }
  __builtin_memset(out, 0, static_cast<size_t>(group * padded) * sizeof(float));
  for (int64_t h = 0; h < group; h += kSlots) {
    Store(maximum + h / kSlots * kLanes, Vec(-__builtin_inff()));
    Store(sum + h / kSlots * kLanes, Vec(0.0f));
  }

  const T *keys = static_cast<const T*>(x.keys), *values = static_cast<const T*>(x.values);
  int64_t tokens[2][kBlockKeys];  // offsets of the tokens of this block and of the next one, in turn
  const auto find = [&](int64_t begin, int64_t* offsets) {
    const int64_t count = Larger(0, Smaller(piece.end - begin, kBlockKeys));
    FindTokens(shape.paged, piece.table, piece.head, begin, count, offsets);
    return count;
  };
  int64_t count = find(piece.begin, tokens[0]), block = 0;
  for (int64_t k0 = piece.begin; k0 < piece.end; k0 += kBlockKeys, ++block) {
    const int64_t* offsets = tokens[block % 2];
    int64_t* next = tokens[(block + 1) % 2];
    const int64_t next_count = find(k0 + kBlockKeys, next);
    for (int64_t h = 0; h < group; h += kSlots) {
      const Ahead<T> next_values = {values, offsets, h == 0 ? count : 0, dim},
                     next_keys = {keys, next, h == 0 ? next_count : 0, dim};
      const auto attend = [&](auto heads) {
        AttendBlock<heads.value>(dim, count, keys, values, offsets, query + h * padded, padded, next_values, next_keys,
                                 scratch + s.scores, maximum + h / kSlots * kLanes, sum + h / kSlots * kLanes,
                                 out + h * padded);
      };
      const int64_t heads = group - h;
      if (heads >= 4) {
        attend(Constant<4>());
      } else if (heads == 3) {
        attend(Constant<3>());
      } else if (heads == 2) {
        attend(Constant<2>());
      } else {
        attend(Constant<1>());
      }
    }
    count = next_count;
  }

  for (int64_t h = 0; h < group; ++h) {
    const int64_t slot = h / kSlots * kLanes + h % kSlots * kSlotKeys;
    float weights[kLanes];
    Store(weights, SumOfSlots(Load(sum + h / kSlots * kLanes)));
    const float weight = weights[h % kSlots * kSlotKeys];
    if (piece.partial != nullptr) {
      __builtin_memcpy(piece.partial + h * padded, out + h * padded, static_cast<size_t>(padded) * sizeof(float));
      piece.partial[partial.maxima + h] = maximum[slot];
      piece.partial[partial.weights + h] = weight;
      continue;
    }
    Q* to = static_cast<Q*>(x.out) + row + h * dim;
    for (int64_t d = 0; d < dim; d += kLanes) {
      StorePart(to + d, Smaller(dim - d, kLanes), Load(out + h * padded + d) * (1.0f / weight));
    }
  }
}

// 2^x of one number.
BOWLINE_ALWAYS_INLINE float Exp2Of(float x) { return Exp2NonPositive(Vec(x))[0]; }

template <typename Q>
static void JoinPieces(const PagedAttentionShape& shape, const PagedAttentionArguments& x, int64_t row, int64_t head,
                       int64_t pieces, const float* partials) {
  const PagedPartial partial(shape);
  const int64_t dim = shape.paged.head_dim, group = PagedGroup(shape);
  for (int64_t h = 0; h < group; ++h) {
    float largest = -__builtin_inff(), weight = 0;
    for (int64_t i = 0; i < pieces; ++i) {
      const float maximum = partials[i * partial.floats + partial.maxima + h];
      largest = maximum > largest ? maximum : largest;
    }
    for (int64_t i = 0; i < pieces; ++i) {
      const float* from = partials + i * partial.floats;
      weight += from[partial.weights + h] * Exp2Of(from[partial.maxima + h] - largest);
    }
    Q* to = static_cast<Q*>(x.out) + (row * shape.query_heads + head * group + h) * dim;
    for (int64_t d = 0; d < dim; d += kLanes) {
      Vec sum = Vec(0.0f);
      for (int64_t i = 0; i < pieces; ++i) {
        const float* from = partials + i * partial.floats;
        const Vec shrink = Exp2NonPositive(Vec(from[partial.maxima + h] - largest));
        sum = MulAdd(Load(from + h * partial.padded + d), shrink, sum);
      }
      StorePart(to + d, Smaller(dim - d, kLanes), sum * (1.0f / weight));
    }
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_PIECE_H_
