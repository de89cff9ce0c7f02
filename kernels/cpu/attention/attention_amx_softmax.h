#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SOFTMAX_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SOFTMAX_H_

// Softmax of 16 queries with a block of keys. Scores are [query][key], and lanes are keys: the layout in which AMX
// stores scores, and takes probabilities for the next product. Only for files compiled for AMX.

#include "kernels/cpu/attention/attention_amx_pack.h"
#include "kernels/cpu/attention/attention_amx_scratch.h"
#include "kernels/cpu/attention/attention_words.h"

namespace bowline::kernels::BOWLINE_ISA {

using ForwardUnits = AttentionAmxUnits<AmxOwner>;
using ForwardMemory = AttentionAmxMemory<AmxOwner>;

inline constexpr int64_t kBlockK = ForwardMemory::kBlockK;

// LargestOfRows returns a vector whose lane i is the largest lane of rows[i]. LargerHalves is a step of it.
template <int kD, int... kLane>
BOWLINE_ALWAYS_INLINE void LargerHalves(Vec (&rows)[16], IndexList<kLane...>) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kD; ++i) {
    const Vec a = rows[i], b = rows[i + kD];
    const Vec low = __builtin_shufflevector(a, b, ((kLane & kD) == 0 ? kLane : 16 + kLane - kD)...);
    const Vec high = __builtin_shufflevector(a, b, ((kLane & kD) == 0 ? kLane + kD : 16 + kLane)...);
    rows[i] = low > high ? low : high;
  }
}
BOWLINE_ALWAYS_INLINE Vec LargestOfRows(Vec (&rows)[16]) {
  LargerHalves<8>(rows, Indices<16>());
  LargerHalves<4>(rows, Indices<16>());
  LargerHalves<2>(rows, Indices<16>());
  LargerHalves<1>(rows, Indices<16>());
  return rows[0];
}

// The statistics of 16 queries. A probability is 2^(score - reference), with scores in units of log2(e). The reference
// is an earlier maximum; no score exceeds it by more than kSlack, else it is raised. So sums are hardly ever rescaled.
// That costs no accuracy, because rounding is relative, and 2^kSlack is far from overflow.
struct QueryStatistics {
  static constexpr float kSlack = 8;
  float* reference;  // [16]; minus infinity before the first key
  float* sums;       // [16][16]; the 16 lanes of a query are added at the end
  float* out;        // [16][ld]
  int64_t ld;
};

static void Rescale(Vec old, Vec reference, const QueryStatistics& s) {
  // If they are equal, both may be minus infinity, whose difference is NaN; then nothing was summed.
  const Vec shrink = reference == old ? Vec(1.0f) : Exp2(old - reference);
  for (int i = 0; i < 16; ++i) {
    if (shrink[i] == 1.0f) continue;
    Store(s.sums + i * 16, Load(s.sums + i * 16) * shrink[i]);
    for (int64_t d = 0; d < s.ld; d += kLanes) Store(s.out + i * s.ld + d, Load(s.out + i * s.ld + d) * shrink[i]);
  }
}

// Processes kCount vectors of scores per query, an even number; if kCount is 0, `count` vectors, also an even number.
template <int kCount>
static void UpdateQueries(int64_t count, const float* scores, float scale, const QueryStatistics& s, uint16_t* p) {
  if (kCount > 0) count = kCount;
  const auto larger = [](Vec a, Vec b) __attribute__((always_inline)) { return a > b ? a : b; };
  Vec rows[16];
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    const float* row = scores + i * kBlockK;
    rows[i] = larger(Load(row), Load(row + kLanes));
    for (int64_t v = 2; v < count; ++v) rows[i] = larger(Load(row + v * kLanes), rows[i]);
  }
  const Vec largest = LargestOfRows(rows) * scale, old = Load(s.reference);
  const auto grows = largest > old + QueryStatistics::kSlack;
  if (__builtin_reduce_or(grows) != 0) {
    const Vec reference = grows ? largest : old;
    Rescale(old, reference, s);
    Store(s.reference, reference);
  }
  // A query whose reference is still minus infinity sees no key in this block: an offset of 0 gives 2^(-inf) = 0.
  const Vec reference = Load(s.reference), none = Vec(-__builtin_inff());
  float offset[16];
  Store(offset, reference == none ? Vec(0.0f) : -reference);
  for (int i = 0; i < 16; ++i) {
    const float* row = scores + i * kBlockK;
    Vec total[2] = {Vec(0.0f), Vec(0.0f)};
#pragma clang loop unroll_count(4)
    for (int64_t v = 0; v < count; v += 2) {
      const Vec a = Exp2(MulAdd(Load(row + v * kLanes), Vec(scale), Vec(offset[i])));
      const Vec b = Exp2(MulAdd(Load(row + (v + 1) * kLanes), Vec(scale), Vec(offset[i])));
      total[0] += a;
      total[1] += b;
      const auto halves = RoundTwo(a, b);
      __builtin_memcpy(p + i * kBlockK + v * kLanes, &halves, sizeof(halves));
    }
    Store(s.sums + i * 16, Load(s.sums + i * 16) + (total[0] + total[1]));
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SOFTMAX_H_
