#include "kernels/cpu/attention/attention_amx_pack.h"
#include "kernels/cpu/attention/attention_amx_product.h"
#include "kernels/cpu/attention/attention_amx_softmax.h"
#include "kernels/cpu/isa/amx_registers.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

constexpr int64_t kRows = ForwardUnits::kRows, kRowBytes = 64;

// Keys [begin, end) of a block, multiples of 32, that some query of up to kRows sees.
struct KeyRange {
  int64_t begin, end;
};

// Scores of 32 queries, or 16, with the keys.
template <bool kBoth>
void Multiply(KeyRange range, int64_t groups, const uint16_t* q, const uint16_t* k, float* scores) {
  const int64_t block = groups * kRegisterHalves;
  for (int64_t j = range.begin; j < range.end; j += 32) {
    MultiplyRegisters<kBoth, /*kAccumulate=*/false>(groups, {q, kRowBytes, block, kRegisterHalves},
                                                    {k + j / 16 * block, kRowBytes, block, kRegisterHalves}, scores + j,
                                                    kBlockK);
  }
}

// out += p v
template <bool kBoth>
void AddValues(KeyRange range, int64_t groups, const uint16_t* p, const uint16_t* v, float* out) {
  const int64_t step = 2 * groups * kRegisterHalves;
  for (int64_t g = 0; g < groups; ++g) {
    MultiplyRegisters<kBoth, /*kAccumulate=*/true>(
        (range.end - range.begin) / 32, {p + range.begin, kBlockK * 2, 16 * kBlockK, 32},
        {v + range.begin / 32 * step + 2 * g * kRegisterHalves, kRowBytes, kRegisterHalves, step}, out + 32 * g,
        groups * 32);
  }
}

// Scores of keys that a query does not see become minus infinity.
void Hide(const AttentionShape& shape, int64_t query, int64_t queries, int64_t k0, KeyRange range, float* scores) {
  IntVec lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  for (int64_t i = 0; i < kRows; ++i, scores += kBlockK) {
    const int64_t here = query + Smaller(i, queries - 1);  // rows without a query see the keys of the last query
    const int64_t first = FirstKey(shape, here) - k0, end = VisibleKeys(shape, here) - k0;
    for (int64_t j = range.begin; j < range.end; j += kLanes) {
      if (j >= first && j + kLanes <= end) continue;
      const IntVec key = lane + static_cast<int>(j);
      const Vec score = Load(scores + j), none = Vec(-__builtin_inff());
      const int begin = static_cast<int>(Larger(first, -1)),
                behind = static_cast<int>(Larger(0, Smaller(end, kBlockK)));
      const Vec from = key < begin ? none : score;
      Store(scores + j, key < behind ? from : none);
    }
  }
}

class Unit {
 public:
  Unit(const AttentionShape& shape, const AttentionForwardArguments& x, const ForwardMemory& memory)
      : shape_(shape), x_(x), m_(memory), units_(shape) {}

  void Run(int64_t unit) {
    const int64_t block = FromBothEnds(unit % units_.blocks, units_.blocks), part = unit / units_.blocks;
    const int64_t index = part / units_.head_parts, batch = index / shape_.kv_heads, kv_head = index % shape_.kv_heads;
    const int64_t group = shape_.heads / shape_.kv_heads, first = part % units_.head_parts * units_.heads;
    heads_ = Smaller(units_.heads, group - first);
    q0_ = block * units_.queries;
    queries_ = Smaller(units_.queries, shape_.queries - q0_);
    const int64_t head = kv_head * group + first, dim = shape_.head_dim;
    const int64_t q = ((batch * shape_.queries + q0_) * shape_.heads + head) * dim;
    const int64_t kv = (batch * shape_.keys * shape_.kv_heads + kv_head) * dim;
    Begin(static_cast<const uint16_t*>(x_.q) + q);
    Attend(static_cast<const uint16_t*>(x_.k) + kv, static_cast<const uint16_t*>(x_.v) + kv);
    Finish(static_cast<Bf16*>(x_.out) + q, x_.lse + (batch * shape_.heads + head) * shape_.queries + q0_);
  }

 private:
  int64_t Row(int64_t head, int64_t query) const { return head * units_.queries + query; }

  void Begin(const uint16_t* q) {
    const int64_t stride = shape_.heads * shape_.head_dim, rows = units_.Rows();
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t i = 0; i < RoundUp(queries_, kRows); i += 16) {
        PackRegisters(queries_ - i, shape_.head_dim, q + h * shape_.head_dim + i * stride, stride,
                      m_.q + Row(h, i) * padded_);
      }
    }
    __builtin_memset(m_.out, 0, static_cast<size_t>(rows * padded_) * sizeof(float));
    __builtin_memset(m_.sums, 0, static_cast<size_t>(rows * 16) * sizeof(float));
    for (int64_t i = 0; i < rows; ++i) m_.reference[i] = -__builtin_inff();
  }

  void Attend(const uint16_t* k, const uint16_t* v) {
    const int64_t stride = shape_.kv_heads * shape_.head_dim, limit = VisibleKeys(shape_, q0_ + queries_ - 1);
    const int64_t first = FirstKey(shape_, q0_);
    for (int64_t k0 = first / kBlockK * kBlockK; k0 < limit; k0 += kBlockK) {
      const int64_t begin = Larger(first - k0, 0) / 32 * 32, end = Smaller(limit - k0, kBlockK);
      PackKeys(begin, end, shape_.head_dim, k + k0 * stride, stride, m_.k);
      PackValues(begin, end, shape_.head_dim, v + k0 * stride, stride, m_.v);
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t i = 0; i < queries_; i += kRows) {
          const int64_t count = Smaller(queries_ - i, kRows);
          count > 16 ? AttendRows<true>(Row(h, i), q0_ + i, count, k0)
                     : AttendRows<false>(Row(h, i), q0_ + i, count, k0);
        }
      }
    }
  }

  template <bool kBoth>
  void AttendRows(int64_t row, int64_t query, int64_t queries, int64_t k0) {
    const int64_t last = query + queries - 1;
    const int64_t first = FirstKey(shape_, query) - k0, end = VisibleKeys(shape_, last) - k0;
    const KeyRange range = {Larger(first, 0) / 32 * 32, RoundUp(Smaller(end, kBlockK), 32)};
    if (range.begin >= range.end) return;
    Multiply<kBoth>(range, padded_ / 32, m_.q + row * padded_, m_.k, m_.scores);
    if (FirstKey(shape_, last) - k0 > range.begin || VisibleKeys(shape_, query) - k0 < range.end) {
      Hide(shape_, query, queries, k0, range, m_.scores);
    }
    const float scale = shape_.scale * kLog2E;
    const int64_t vectors = (range.end - range.begin) / kLanes;
    for (int64_t i = 0; i < (kBoth ? kRows : 16); i += 16) {
      const QueryStatistics s = {m_.reference + row + i, m_.sums + (row + i) * 16, m_.out + (row + i) * padded_,
                                 padded_};
      const float* scores = m_.scores + i * kBlockK + range.begin;
      uint16_t* p = m_.p + i * kBlockK + range.begin;
      vectors == kBlockK / kLanes ? UpdateQueries<kBlockK / kLanes>(vectors, scores, scale, s, p)
                                  : UpdateQueries<0>(vectors, scores, scale, s, p);
    }
    AddValues<kBoth>(range, padded_ / 32, m_.p, m_.v, m_.out + row * padded_);
  }

  void Finish(Bf16* out, float* lse) const {
    const int64_t dim = shape_.head_dim;
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t i = 0; i < queries_; ++i) {
        const int64_t row = Row(h, i);
        const float sum = ReduceAdd(Load(m_.sums + row * 16));
        UnpackRows(1, dim, m_.out + row * padded_, padded_, 1.0f / sum, out + (i * shape_.heads + h) * dim, 0);
        lse[h * shape_.queries + i] = m_.reference[row] * kLn2 + __builtin_logf(sum);
      }
    }
  }

  const AttentionShape& shape_;
  const AttentionForwardArguments& x_;
  const ForwardMemory& m_;
  const ForwardUnits units_;
  const int64_t padded_ = RoundUp(shape_.head_dim, 32);
  int64_t heads_ = 0, q0_ = 0, queries_ = 0;
};

void Run(const AttentionShape& shape, const AttentionForwardArguments& x, int64_t begin, int64_t end, float* scratch) {
  const AmxRegisters registers;
  const ForwardMemory memory(shape, scratch);
  Unit unit(shape, x, memory);
  for (int64_t i = begin; i < end; ++i) unit.Run(i);
}

}  // namespace

extern const AttentionForwardTable kAttentionForwardBf16 = {{&ForwardMemory::Units, &ForwardMemory::Floats}, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
