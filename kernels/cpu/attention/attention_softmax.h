#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SOFTMAX_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SOFTMAX_H_

// Scores of a strip of queries with a block of keys, and their softmax relative to the maximum so far. A `Mask` says
// which keys each query sees; it has the members of StripMask. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_words.h"

namespace bowline::kernels::BOWLINE_ISA {

// Computes products [key][query] for a strip of queries: minus infinity if the query does not see the key.
template <typename T, typename Mask>
static void Scores(const Mask& mask, int64_t words, const Matrix& k, const float* q, float* scores) {
  SplitVectors(mask.from, mask.seen[0], mask.seen[1],
               [&](auto vectors, int v, int64_t begin, int64_t end) __attribute__((always_inline)) {
                 ForRowTiles(end - begin, [&](auto tile, int64_t row) __attribute__((always_inline)) {
                   const int64_t key = begin + row;
                   Vec acc[tile.value][vectors.value] = {};
                   Accumulate<OperandOf<T>, tile.value, vectors.value>(words, k.Row(key), k.stride, 1, q + v * kLanes,
                                                                       kStrip, acc);
#pragma clang loop unroll(full)
                   for (int i = 0; i < tile.value; ++i) {
#pragma clang loop unroll(full)
                     for (int n = 0; n < vectors.value; ++n)
                       Store(scores + (key + i) * kStrip + (v + n) * kLanes, acc[i][n]);
                   }
                 });
               });
  for (int n = 0; n < 2; ++n) {
    const IntVec visible = mask.Visible(n), first = mask.First(n);
    for (int64_t key = Larger(mask.from, mask.all); key < mask.seen[n]; ++key) {
      float* score = scores + key * kStrip + n * kLanes;
      Store(score, visible > static_cast<int>(key) ? Load(score) : Vec(-__builtin_inff()));
    }
    for (int64_t key = mask.from; key < mask.hidden[n]; ++key) {
      float* score = scores + key * kStrip + n * kLanes;
      Store(score, first > static_cast<int>(key) ? Vec(-__builtin_inff()) : Load(score));
    }
  }
}

// The maximum, per query, of `largest` and the scores. Keeps four maxima so that no step waits for the one before.
template <typename T>
static Vec LargestScore(int64_t from, int64_t keys, const float* products, float scale, Vec largest) {
  const auto larger = [](Vec score, Vec than) __attribute__((always_inline)) { return score > than ? score : than; };
  Vec x[4] = {largest, largest, largest, largest};
  int64_t j = from;
  for (; j + 4 <= keys; j += 4) {
#pragma clang loop unroll(full)
    for (int n = 0; n < 4; ++n) x[n] = larger(Scaled<T>(Load(products + (j + n) * kStrip), scale), x[n]);
  }
  for (; j < keys; ++j) x[0] = larger(Scaled<T>(Load(products + j * kStrip), scale), x[0]);
  return larger(larger(x[0], x[1]), larger(x[2], x[3]));
}

// Turns products of one vector of queries with keys [from, keys) into 2^(score - maximum), as words of keys. If a
// maximum grows, first rescales `out` and `sum` to it. Adds values to `sum` before they are rounded.
template <typename T>
static void UpdateSoftmax(int64_t from, int64_t keys, int64_t head_dim, float scale, float* scores, float* out,
                          float* maximum, float* sum) {
  const Vec old = Load(maximum), largest = LargestScore<T>(from, keys, scores, scale, old);
  if (__builtin_reduce_or(largest > old) != 0) {
    const Vec shrink = Exp2NonPositive(old - largest);
    for (int64_t d = 0; d < head_dim; ++d) Store(out + d * kStrip, Load(out + d * kStrip) * shrink);
    Store(sum, Load(sum) * shrink);
    Store(maximum, largest);
  }
  constexpr int kSteps = kStepsOf<T>;
  if (keys % kSteps != 0) Store(scores + keys * kStrip, Vec(-__builtin_inff()));
  Vec total = Vec(0.0f);
  for (int64_t j = from; j < keys; j += kSteps) {
    Vec p[kSteps];
#pragma clang loop unroll(full)
    for (int step = 0; step < kSteps; ++step) {
      p[step] = Exponential<T>(Load(scores + (j + step) * kStrip), scale, largest);
      total += p[step];
    }
    Store(scores + j / kSteps * kStrip, Join(p));
  }
  Store(sum, Load(sum) + total);
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SOFTMAX_H_
