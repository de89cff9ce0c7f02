#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SCRATCH_H_

// The units of work of attention, and the workspace of a thread that computes one. Everything is a template over the
// word layout of an instruction set. So each instruction set has its own functions, and a compiler that plans for
// another machine can compute sizes without that machine's instructions.
//
// `Words` has
//   kLanes    f32 in a vector
//   kSteps    terms of a sum in a word: 2 where pairs of bf16 are multiplied as they are, else 1
//   kWide     whether tensors are f32

#include <cstddef>
#include <cstdint>

#include "kernels/signatures/attention_shape.h"

namespace bowline::kernels {

// The gradients that a unit of the backward pass computes. kAll takes five products per pair of query and key, but has
// only as many units as there are key heads. kKeys and kQueries together take seven products, in many units. The terms
// of each element are added in the same order either way.
enum class BackwardPart : uint8_t {
  kAll,      // dq, dk, dv of one key head
  kKeys,     // dk, dv of a range of keys of one key head
  kQueries,  // dq of a block of queries of one head
};

// Two functions of an instruction set: the number of units, and the number of floats of scratch that the thread that
// computes a unit needs.
struct AttentionForwardSizes {
  int64_t (*units)(const AttentionShape& shape);
  size_t (*scratch_floats)(const AttentionShape& shape);
};
struct AttentionBackwardSizes {
  int64_t (*units)(const AttentionShape& shape, BackwardPart part);
  size_t (*scratch_floats)(const AttentionShape& shape, BackwardPart part);
};

template <typename Words>
struct AttentionBuffers {
  static constexpr int64_t kBlockQ = 64;                // queries that share each read of keys and values
  static constexpr int64_t kStrip = 2 * Words::kLanes;  // columns: queries of scores, or elements of a head
  static constexpr bool kPairs = Words::kSteps == 2;

  static int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
  static int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }

  // Floats for rows whose words are along head_dim: none where the tensor has such words.
  static int64_t Along(int64_t rows, int64_t head_dim) {
    const bool in_place = Words::kWide || (kPairs && head_dim % 2 == 0);
    return in_place ? 0 : rows * CeilDiv(head_dim, Words::kSteps);
  }
  // Floats for rows whose words are across rows.
  static int64_t Across(int64_t rows, int64_t head_dim) {
    return kPairs ? CeilDiv(rows, 2) * RoundUp(head_dim, Words::kLanes) : Along(rows, head_dim);
  }

  // Hands out 64-byte aligned pieces of a scratch buffer; with a null base it only counts.
  struct Cursor {
    float* base;
    int64_t used;

    float* Take(int64_t floats) {
      float* piece = base == nullptr ? nullptr : base + used;
      used += RoundUp(floats, 16);
      return piece;
    }
  };
};

template <typename Words>
struct AttentionForwardMemory {
  using Buffers = AttentionBuffers<Words>;
  static constexpr int64_t kBlockK = 128;  // a strip of scores is 16 KiB with AVX-512

  // These belong to one block of queries, a strip after the other: q [words of head_dim][kStrip], out
  // [head_dim][kStrip]; scores are in units of log2(e).
  float *q, *out, *maximum, *sum;
  float* scores;  // [kBlockK][kStrip]
  float *k, *v;   // words of a block of keys along head_dim and of values across keys, where tensors do not have them
  int64_t floats;

  AttentionForwardMemory(const AttentionShape& shape, float* base) {
    const int64_t dim = shape.head_dim, words = Buffers::CeilDiv(dim, Words::kSteps);
    typename Buffers::Cursor cursor{base, 0};
    q = cursor.Take(Buffers::kBlockQ * words);
    out = cursor.Take(Buffers::kBlockQ * dim);
    maximum = cursor.Take(Buffers::kBlockQ);
    sum = cursor.Take(Buffers::kBlockQ);
    scores = cursor.Take(kBlockK * Buffers::kStrip);
    k = cursor.Take(Buffers::Along(kBlockK, dim));
    v = cursor.Take(Buffers::Across(kBlockK, dim));
    floats = cursor.used;
  }

  static size_t Floats(const AttentionShape& shape) {
    return static_cast<size_t>(AttentionForwardMemory(shape, nullptr).floats);
  }
  // (batch * heads + head) * blocks + block
  static int64_t Units(const AttentionShape& shape) {
    return shape.batch * shape.heads * Buffers::CeilDiv(shape.queries, Buffers::kBlockQ);
  }
};

template <typename Words>
struct AttentionBackwardMemory {
  using Buffers = AttentionBuffers<Words>;
  static constexpr int64_t kBlockK = 64;     // [kBlockK][kBlockQ] of probabilities are 16 KiB
  static constexpr int64_t kKeyRange = 256;  // keys of a unit of BackwardPart::kKeys
  static_assert(kKeyRange % kBlockK == 0 && Buffers::kBlockQ % Buffers::kStrip == 0);

  // These belong to one block of queries: strips ([words of head_dim][kStrip]) of q, scaled as PackStrips says, and of
  // dout; panels of their rows, in words of queries.
  float *q_strips, *dout_strips, *q_panels, *dout_panels;
  float *dq, *lse, *delta;  // strips; lse in units of log2(e)
  float *p, *ds;            // [kBlockK][words of kBlockQ]
  float* ds_across;         // [words of kBlockK][kBlockQ]; the same as ds where words are single elements
  float *k, *v, *k_across;  // a block of keys, where tensors do not have such words
  float *dk, *dv;           // [keys of the unit][padded head_dim], sums over the query heads of the group
  int64_t floats;

  AttentionBackwardMemory(const AttentionShape& shape, BackwardPart part, float* base) {
    constexpr int64_t kBlockQ = Buffers::kBlockQ, kSteps = Words::kSteps;
    const int64_t dim = shape.head_dim, padded = Buffers::RoundUp(dim, Buffers::kStrip),
                  words = Buffers::CeilDiv(dim, kSteps);
    const int64_t range = shape.keys < kKeyRange ? shape.keys : kKeyRange;
    const int64_t keys = part == BackwardPart::kQueries ? 0 : part == BackwardPart::kKeys ? range : shape.keys;
    typename Buffers::Cursor cursor{base, 0};
    q_strips = cursor.Take(kBlockQ * words);
    dout_strips = cursor.Take(kBlockQ * words);
    q_panels = cursor.Take(kBlockQ / kSteps * padded);
    dout_panels = cursor.Take(kBlockQ / kSteps * padded);
    dq = cursor.Take(kBlockQ * dim);
    lse = cursor.Take(kBlockQ);
    delta = cursor.Take(kBlockQ);
    p = cursor.Take(kBlockK * kBlockQ / kSteps);
    ds = cursor.Take(kBlockK * kBlockQ / kSteps);
    ds_across = Buffers::kPairs ? cursor.Take(kBlockK / 2 * kBlockQ) : ds;
    k = cursor.Take(Buffers::Along(kBlockK, dim));
    v = cursor.Take(Buffers::Along(kBlockK, dim));
    k_across = Buffers::kPairs ? cursor.Take(Buffers::Across(kBlockK, dim)) : k;
    dk = cursor.Take(keys * padded);
    dv = cursor.Take(keys * padded);
    floats = cursor.used;
  }

  static size_t Floats(const AttentionShape& shape, BackwardPart part) {
    return static_cast<size_t>(AttentionBackwardMemory(shape, part, nullptr).floats);
  }

  // How many pieces a head is divided into.
  static int64_t Pieces(const AttentionShape& shape, BackwardPart part) {
    return part == BackwardPart::kAll    ? 1
           : part == BackwardPart::kKeys ? Buffers::CeilDiv(shape.keys, kKeyRange)
                                         : Buffers::CeilDiv(shape.queries, Buffers::kBlockQ);
  }
  // head * pieces + piece, where heads are batch * (query heads for kQueries, else key heads).
  static int64_t Units(const AttentionShape& shape, BackwardPart part) {
    return shape.batch * (part == BackwardPart::kQueries ? shape.heads : shape.kv_heads) * Pieces(shape, part);
  }
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_SCRATCH_H_
