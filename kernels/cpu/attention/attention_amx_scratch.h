#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SCRATCH_H_

// The units of work of attention in AMX tiles, and the scratch of a thread that computes one; see attention_scratch.h.
// All of it is a template over a type of the including file, so that each file has its own functions, and a compiler
// that plans for another machine computes sizes without AMX's instructions.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention/attention_scratch.h"
#include "kernels/signatures/attention_shape.h"

namespace bowline::kernels {

// A unit of work is a block of queries of some query heads that share a key head, so that many rows use the packed keys
// and values. The rows of each head begin at a multiple of kRows.
template <typename Owner>
struct AttentionAmxUnits {
  static constexpr int64_t kRows = 32;  // queries that are multiplied at once: two registers
  int64_t heads, queries;               // query heads and queries of a unit; the last units may have fewer
  int64_t head_parts, blocks;           // parts that the heads of a group, and the queries, are divided into

  explicit AttentionAmxUnits(const AttentionShape& shape) {
    // With 256 rows, packing is a twentieth of the work. Fewer rows if there were too few units for many threads.
    constexpr int64_t kUnitRows = 256, kMostHeads = 8, kLeastQueries = 64, kEnoughUnits = 32;
    const int64_t group = shape.heads / shape.kv_heads;
    head_parts = CeilDiv(group, kMostHeads);
    heads = CeilDiv(group, head_parts);
    queries = RoundUp(kUnitRows / heads, kRows);
    if (queries > RoundUp(shape.queries, kRows)) queries = RoundUp(shape.queries, kRows);
    blocks = CeilDiv(shape.queries, queries);
    while (queries > kLeastQueries && Count(shape) < kEnoughUnits) {
      queries = RoundUp(queries / 2, kRows);
      blocks = CeilDiv(shape.queries, queries);
    }
  }

  // The number of units. Unit ((batch * kv_heads + kv_head) * head_parts + part) * blocks + block.
  int64_t Count(const AttentionShape& shape) const { return shape.batch * shape.kv_heads * head_parts * blocks; }
  int64_t Rows() const { return heads * queries; }

  static constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }
};

template <typename Owner>
struct AttentionAmxMemory {
  using AmxUnits = AttentionAmxUnits<Owner>;
  // Keys packed at once; their scores with kRows queries take 16 KiB. In every unit, blocks of keys begin at multiples
  // of kBlockK, so that the bits of a query's result do not depend on the division into units.
  static constexpr int64_t kBlockK = 128;

  uint16_t* q;                    // registers of A: [kRows / 2 rows][group of 32 elements][16 rows][32]
  float *out, *sums, *reference;  // [row][padded head_dim], [row][16], [row]
  uint16_t *k, *v;                // registers of B: [16 keys][group][16 pairs][16 keys], [32 keys][16 elements][16][16]
  float* scores;                  // [kRows][kBlockK]
  uint16_t* p;                    // probabilities in bf16: [kRows][kBlockK]
  int64_t floats;

  AttentionAmxMemory(const AttentionShape& shape, float* base) {
    constexpr int64_t kRows = AmxUnits::kRows;
    const int64_t rows = AmxUnits(shape).Rows(), dim = AmxUnits::RoundUp(shape.head_dim, 32);
    int64_t used = 0;
    const auto take = [&](int64_t count) {
      float* piece = base == nullptr ? nullptr : base + used;
      used += AmxUnits::RoundUp(count, 16);
      return piece;
    };
    const auto take_halves = [&](int64_t count) { return reinterpret_cast<uint16_t*>(take(count / 2)); };
    q = take_halves(rows * dim);
    out = take(rows * dim);
    sums = take(rows * 16);
    reference = take(rows);
    k = take_halves(kBlockK * dim);
    v = take_halves(kBlockK * dim);
    scores = take(kRows * kBlockK);
    p = take_halves(kRows * kBlockK);
    floats = used;
  }

  static int64_t Units(const AttentionShape& shape) { return AmxUnits(shape).Count(shape); }
  static size_t Floats(const AttentionShape& shape) {
    return static_cast<size_t>(AttentionAmxMemory(shape, nullptr).floats);
  }
};

// The scratch of the backward pass. In all parts, blocks begin at multiples of kBlockQ queries and kBlockK keys.
template <typename Owner>
struct AttentionAmxBackwardMemory {
  using AmxUnits = AttentionAmxUnits<Owner>;
  static constexpr int64_t kBlockQ = 128, kBlockK = 128, kKeyRange = 256;  // keys of a unit of BackwardPart::kKeys
  static_assert(kKeyRange % kBlockK == 0);

  // A block of queries as registers of B: with words that are pairs along head_dim, and with pairs of queries.
  uint16_t *q_words, *dout_words, *q_pairs, *dout_pairs;
  // A block of keys as registers of A: plain and transposed (k_across). k_words is the input of PackAcross.
  uint16_t *k, *v, *k_across, *k_words;
  uint16_t *p, *ds, *ds_pairs;  // [kBlockK][kBlockQ], and registers of B: [32 keys][16 queries][16 pairs][16 queries]
  float *scores, *dp;           // [32 keys][32 queries]
  float *lse, *delta;           // of a block of queries; lse is negated, in units of log2(e)
  float* dq;                    // [padded head_dim][kBlockQ]
  float *dk, *dv;               // [keys of the unit][padded head_dim]
  int64_t floats;

  AttentionAmxBackwardMemory(const AttentionShape& shape, BackwardPart part, float* base) {
    const int64_t dim = AmxUnits::RoundUp(shape.head_dim, 32);
    const int64_t range = shape.keys < kKeyRange ? shape.keys : kKeyRange;
    const int64_t keys = part == BackwardPart::kQueries ? 0 : part == BackwardPart::kKeys ? range : shape.keys;
    int64_t used = 0;
    const auto take = [&](int64_t count) {
      float* piece = base == nullptr ? nullptr : base + used;
      used += AmxUnits::RoundUp(count, 16);
      return piece;
    };
    const auto take_halves = [&](int64_t count) { return reinterpret_cast<uint16_t*>(take(count / 2)); };
    q_words = take_halves(kBlockQ * dim);
    dout_words = take_halves(kBlockQ * dim);
    q_pairs = take_halves(kBlockQ * dim);
    dout_pairs = take_halves(kBlockQ * dim);
    k = take_halves(kBlockK * dim);
    v = take_halves(kBlockK * dim);
    k_across = take_halves(kBlockK * dim);
    k_words = take_halves(kBlockK * dim);
    p = take_halves(kBlockK * kBlockQ);
    ds = take_halves(kBlockK * kBlockQ);
    ds_pairs = take_halves(kBlockK * kBlockQ);
    scores = take(32 * 32);
    dp = take(32 * 32);
    lse = take(kBlockQ);
    delta = take(kBlockQ);
    dq = take(dim * kBlockQ);
    dk = take(AmxUnits::RoundUp(keys, 32) * dim);
    dv = take(AmxUnits::RoundUp(keys, 32) * dim);
    floats = used;
  }

  static size_t Floats(const AttentionShape& shape, BackwardPart part) {
    return static_cast<size_t>(AttentionAmxBackwardMemory(shape, part, nullptr).floats);
  }
  // As in AttentionBackwardMemory.
  static int64_t Pieces(const AttentionShape& shape, BackwardPart part) {
    return part == BackwardPart::kAll    ? 1
           : part == BackwardPart::kKeys ? AmxUnits::CeilDiv(shape.keys, kKeyRange)
                                         : AmxUnits::CeilDiv(shape.queries, kBlockQ);
  }
  static int64_t Units(const AttentionShape& shape, BackwardPart part) {
    return shape.batch * (part == BackwardPart::kQueries ? shape.heads : shape.kv_heads) * Pieces(shape, part);
  }
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_SCRATCH_H_
