#include "kernels/cpu/attention/attention_amx_pack.h"
#include "kernels/cpu/attention/attention_amx_product.h"
#include "kernels/cpu/attention/attention_amx_scratch.h"
#include "kernels/cpu/isa/amx_registers.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// Scores and p are [key][query] here, unlike forward: they are then factors of dk and dv as they are, and statistics of
// queries are vectors. dq is computed transposed.
using Memory = AttentionAmxBackwardMemory<AmxOwner>;
constexpr int64_t kQueries = Memory::kBlockQ, kKeys = Memory::kBlockK, kRange = Memory::kKeyRange, kRowBytes = 64;
constexpr int64_t kChunk = 32;  // keys and queries that are multiplied at once

struct Range {
  int64_t begin, end;
};

// One query head of one batch entry, from its first query and key.
struct Head {
  const uint16_t *q, *k, *v, *out, *dout;
  const float* lse;
  Bf16* dq;
};

class Unit {
 public:
  Unit(const AttentionShape& shape, BackwardPart part, const AttentionBackwardArguments& x, const Memory& memory)
      : shape_(shape), part_(part), x_(x), m_(memory) {}

  // One head, the block of queries from q0.
  void RunQueries(int64_t batch, int64_t head, int64_t q0) { RunBlock(HeadOf(batch, head), q0, 0, shape_.keys); }

  void RunKeys(int64_t batch, int64_t kv_head, int64_t key_begin, int64_t key_end) {
    const int64_t group = shape_.heads / shape_.kv_heads, keys = key_end - key_begin;
    const size_t bytes = static_cast<size_t>(RoundUp(keys, kChunk) * padded_) * sizeof(float);
    __builtin_memset(m_.dk, 0, bytes);
    __builtin_memset(m_.dv, 0, bytes);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t q0 = 0; q0 < shape_.queries; q0 += kQueries) RunBlock(HeadOf(batch, head), q0, key_begin, key_end);
    }
    const int64_t kv = ((batch * shape_.keys + key_begin) * shape_.kv_heads + kv_head) * shape_.head_dim;
    UnpackRows(keys, shape_.head_dim, m_.dk, padded_, shape_.scale, static_cast<Bf16*>(x_.dk) + kv, KeyStride());
    UnpackRows(keys, shape_.head_dim, m_.dv, padded_, 1.0f, static_cast<Bf16*>(x_.dv) + kv, KeyStride());
  }

 private:
  int64_t QueryStride() const { return shape_.heads * shape_.head_dim; }
  int64_t KeyStride() const { return shape_.kv_heads * shape_.head_dim; }
  bool HasKeys() const { return part_ != BackwardPart::kQueries; }
  bool HasQueries() const { return part_ != BackwardPart::kKeys; }

  Head HeadOf(int64_t batch, int64_t head) const {
    const int64_t q = (batch * shape_.queries * shape_.heads + head) * shape_.head_dim;
    const int64_t kv_head = head / (shape_.heads / shape_.kv_heads);
    const int64_t kv = (batch * shape_.keys * shape_.kv_heads + kv_head) * shape_.head_dim;
    return {static_cast<const uint16_t*>(x_.q) + q,
            static_cast<const uint16_t*>(x_.k) + kv,
            static_cast<const uint16_t*>(x_.v) + kv,
            static_cast<const uint16_t*>(x_.out) + q,
            static_cast<const uint16_t*>(x_.dout) + q,
            x_.lse + (batch * shape_.heads + head) * shape_.queries,
            static_cast<Bf16*>(x_.dq) + q};
  }

  // Keys [key_begin, key_end) and the queries from q0.
  void RunBlock(const Head& head, int64_t q0, int64_t key_begin, int64_t key_end) {
    q0_ = q0;
    count_ = Smaller(shape_.queries - q0, kQueries);
    const int64_t limit = Smaller(VisibleKeys(shape_, q0 + count_ - 1), key_end);
    const int64_t first = Larger(FirstKey(shape_, q0), key_begin);
    if (first >= limit) return;
    BeginQueries(head);
    for (int64_t k0 = first / kKeys * kKeys; k0 < limit; k0 += kKeys) {
      const Range keys = {Larger(first - k0, 0) / kChunk * kChunk, Smaller(limit - k0, kKeys)};
      RunPair(head, k0, keys, k0 - key_begin);
    }
    if (HasQueries()) FinishQueries(head.dq);
  }

  void BeginQueries(const Head& head) {
    const int64_t dim = shape_.head_dim, stride = QueryStride(), at = q0_ * stride;
    PackKeys(0, count_, dim, head.q + at, stride, m_.q_words);
    PackKeys(0, count_, dim, head.dout + at, stride, m_.dout_words);
    if (HasKeys()) {
      PackValues(0, count_, dim, head.q + at, stride, m_.q_pairs);
      PackValues(0, count_, dim, head.dout + at, stride, m_.dout_pairs);
    }
    for (int64_t i = 0; i < RoundUp(count_, kChunk); ++i) {
      m_.lse[i] = i < count_ ? -kLog2E * head.lse[q0_ + i] : 0.0f;
      const int64_t row = at + i * stride;
      m_.delta[i] = i < count_ ? Dot(dim, reinterpret_cast<const Bf16*>(head.dout + row),
                                     reinterpret_cast<const Bf16*>(head.out + row))
                               : 0.0f;
    }
    if (HasQueries()) __builtin_memset(m_.dq, 0, static_cast<size_t>(padded_ * kQueries) * sizeof(float));
  }

  // `row` is where the block's first key is among the unit's.
  void RunPair(const Head& head, int64_t k0, const Range& keys, int64_t row) {
    const int64_t dim = shape_.head_dim, stride = KeyStride(), at = k0 * stride, groups = padded_ / 32;
    const int64_t end = RoundUp(keys.end, kChunk);
    for (int64_t j = keys.begin; j < end; j += 16) {
      PackRegisters(keys.end - j, dim, head.k + at + j * stride, stride, m_.k + j * padded_);
      PackRegisters(keys.end - j, dim, head.v + at + j * stride, stride, m_.v + j * padded_);
    }
    if (HasQueries()) {
      PackKeys(keys.begin, keys.end, dim, head.k + at, stride, m_.k_words);
      PackAcross(keys.begin, keys.end, dim, m_.k_words, m_.k_across, Indices<32>());
    }
    const int64_t block = groups * kRegisterHalves;  // 16 rows
    for (int64_t j = keys.begin; j < end; j += kChunk) {
      const Range queries = QueriesOf(k0 + j);
      for (int64_t i = queries.begin; i < queries.end; i += kChunk) {
        MultiplyRegisters<true, false>(groups, {m_.k + j * padded_, kRowBytes, block, kRegisterHalves},
                                       {m_.q_words + i * padded_, kRowBytes, block, kRegisterHalves}, m_.scores,
                                       kChunk);
        MultiplyRegisters<true, false>(groups, {m_.v + j * padded_, kRowBytes, block, kRegisterHalves},
                                       {m_.dout_words + i * padded_, kRowBytes, block, kRegisterHalves}, m_.dp, kChunk);
        const bool whole = i + kChunk <= count_ && k0 + j + kChunk <= VisibleKeys(shape_, q0_ + i) &&
                           k0 + j >= FirstKey(shape_, q0_ + i + kChunk - 1);
        whole ? Differentiate<true>(k0, j, i) : Differentiate<false>(k0, j, i);
      }
      if (HasKeys() && queries.begin < queries.end) {
        AddQueries(queries, m_.p + j * kQueries, m_.dout_pairs, m_.dv + (row + j) * padded_);
        AddQueries(queries, m_.ds + j * kQueries, m_.q_pairs, m_.dk + (row + j) * padded_);
      }
    }
    if (!HasQueries()) return;
    for (int64_t i = 0; i < count_; i += kChunk) {
      const int64_t first = Larger(FirstKey(shape_, q0_ + i) - k0, keys.begin) / kChunk * kChunk;
      const int64_t last = Smaller(RoundUp(VisibleKeys(shape_, q0_ + i + kChunk - 1) - k0, kChunk), end);
      if (first < last) AddKeys({first, last}, i);
    }
  }

  // Queries of the block, in whole chunks, some of which see some of the chunk of keys.
  Range QueriesOf(int64_t key) const {
    Range queries = {0, RoundUp(count_, kChunk)};
    if (shape_.causal) {
      const int64_t first = key - (shape_.keys - shape_.queries) - q0_;
      queries.begin = Larger(first, 0) / kChunk * kChunk;
      if (shape_.window != 0) {
        queries.end = Smaller(queries.end, RoundUp(Larger(first + kChunk - 1 + shape_.window, 0), kChunk));
      }
    }
    return queries;
  }

  // p and ds of a chunk of scores. Without kWhole some queries do not see some of the keys, or are not there.
  template <bool kWhole>
  void Differentiate(int64_t k0, int64_t j, int64_t i) {
    const Vec scale = Vec(shape_.scale * kLog2E);
    const Vec lse[2] = {Load(m_.lse + i), Load(m_.lse + i + kLanes)};
    const Vec delta[2] = {Load(m_.delta + i), Load(m_.delta + i + kLanes)};
    IntVec first[2], visible[2];  // of the keys of the chunk, which queries see
    if (!kWhole) {
      for (int n = 0; n < kChunk; ++n) {
        const int64_t query = q0_ + i + n, key = k0 + j;
        first[n / kLanes][n % kLanes] = static_cast<int>(Smaller(Larger(FirstKey(shape_, query) - key, 0), kChunk));
        // Zeros in place of a query times a key that is infinite are no number.
        const int64_t behind = i + n < count_ ? VisibleKeys(shape_, query) : key;
        visible[n / kLanes][n % kLanes] = static_cast<int>(Smaller(Larger(behind - key, 0), kChunk));
      }
    }
    uint16_t *p_to = m_.p + j * kQueries + i, *ds_to = m_.ds + j * kQueries + i;
    uint16_t* pairs_to = m_.ds_pairs + (j * kQueries + i * kChunk);
    for (int64_t key = 0; key < kChunk; key += 2) {
      Half32 rounded[2];
#pragma clang loop unroll(full)
      for (int n = 0; n < 2; ++n) {
        Vec p[2], ds[2];
#pragma clang loop unroll(full)
        for (int v = 0; v < 2; ++v) {
          const int64_t at = (key + n) * kChunk + v * kLanes;
          p[v] = Exp2(MulAdd(Load(m_.scores + at), scale, lse[v]));
          ds[v] = p[v] * (Load(m_.dp + at) - delta[v]);
          if (!kWhole) {
            const IntVec here = IntVec(static_cast<int>(key + n));
            const auto sees = here >= first[v] & here < visible[v];
            p[v] = sees ? p[v] : Vec(0.0f);
            ds[v] = sees ? ds[v] : Vec(0.0f);
          }
        }
        const auto rounded_p = RoundTwo(p[0], p[1]);
        __builtin_memcpy(p_to + (key + n) * kQueries, &rounded_p, sizeof(rounded_p));
        rounded[n] = __builtin_bit_cast(Half32, RoundTwo(ds[0], ds[1]));
        __builtin_memcpy(ds_to + (key + n) * kQueries, &rounded[n], sizeof(Half32));
      }
      Half32 pairs[2];
      Interleave(rounded[0], rounded[1], pairs, Indices<32>());
      __builtin_memcpy(pairs_to + key / 2 * 32, &pairs[0], sizeof(Half32));
      __builtin_memcpy(pairs_to + kRegisterHalves + key / 2 * 32, &pairs[1], sizeof(Half32));
    }
  }

  // Rows of 32 keys += weights [key][query] times rows of queries.
  void AddQueries(const Range& queries, const uint16_t* weights, const uint16_t* pairs, float* sums) const {
    const int64_t groups = padded_ / 32, step = 2 * groups * kRegisterHalves;
    for (int64_t g = 0; g < groups; ++g) {
      MultiplyRegisters<true, true>(
          (queries.end - queries.begin) / kChunk, {weights + queries.begin, kQueries * 2, 16 * kQueries, kChunk},
          {pairs + queries.begin / kChunk * step + 2 * g * kRegisterHalves, kRowBytes, kRegisterHalves, step},
          sums + 32 * g, padded_);
    }
  }

  // dq of 32 queries, transposed.
  void AddKeys(const Range& keys, int64_t i) const {
    const int64_t groups = padded_ / 32, a_step = 2 * groups * kRegisterHalves, b_step = kChunk * kQueries;
    for (int64_t g = 0; g < groups; ++g) {
      MultiplyRegisters<true, true>(
          (keys.end - keys.begin) / kChunk,
          {m_.k_across + keys.begin / kChunk * a_step + 2 * g * kRegisterHalves, kRowBytes, kRegisterHalves, a_step},
          {m_.ds_pairs + keys.begin * kQueries + i * kChunk, kRowBytes, kRegisterHalves, b_step},
          m_.dq + 32 * g * kQueries + i, kQueries);
    }
  }

  void FinishQueries(Bf16* dq) const {
    const int64_t dim = shape_.head_dim, stride = QueryStride();
    for (int64_t i = 0; i < count_; i += kLanes) {
      for (int64_t d = 0; d < dim; d += kLanes) {
        Vec x[16];
        for (int n = 0; n < 16; ++n) x[n] = Load(m_.dq + (d + n) * kQueries + i) * shape_.scale;
        Transpose<16>(x);
        for (int64_t n = 0; n < Smaller(count_ - i, kLanes); ++n) {
          StorePart(dq + (q0_ + i + n) * stride + d, Smaller(dim - d, kLanes), x[n]);
        }
      }
    }
  }

  const AttentionShape& shape_;
  const BackwardPart part_;
  const AttentionBackwardArguments& x_;
  const Memory& m_;
  const int64_t padded_ = RoundUp(shape_.head_dim, 32);
  int64_t q0_ = 0, count_ = 0;
};

void Run(const AttentionShape& shape, BackwardPart part, const AttentionBackwardArguments& x, int64_t begin,
         int64_t end, float* scratch) {
  const AmxRegisters registers;
  const Memory memory(shape, part, scratch);
  Unit unit(shape, part, x, memory);
  const int64_t pieces = Memory::Pieces(shape, part);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = i / pieces, piece = FromBothEnds(i % pieces, pieces);
    if (part == BackwardPart::kQueries) {
      unit.RunQueries(index / shape.heads, index % shape.heads, piece * kQueries);
    } else {
      const int64_t first = piece * kRange;
      unit.RunKeys(index / shape.kv_heads, index % shape.kv_heads, first,
                   part == BackwardPart::kAll ? shape.keys : Smaller(first + kRange, shape.keys));
    }
  }
}

}  // namespace

extern const AttentionBackwardTable kAttentionBackwardBf16 = {{&Memory::Units, &Memory::Floats}, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
