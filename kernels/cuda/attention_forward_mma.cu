// attention_forward of bf16 by matrix instructions: a warp has kRowTiles times 16 queries, whose sums stay in registers
// while blocks of keys stream past in shared memory, the next one being read meanwhile. Where the device has
// warpgroups, four warps multiply their queries together. Scores are multiplied with the scale, which is positive, and
// log2(e) where they are exponentiated.

#include "kernels/cuda/attention_geometry.h"
#include "kernels/cuda/warpgroup.h"

namespace {

using namespace bowline::device;

template <int kDim, int kRowTiles, int kWarps, int kKeys>
struct MmaForward {
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps * kWarpRows, kThreads = 32 * kWarps;
  static constexpr int kTogether = kWarpgroups ? 4 * kWarpRows : kWarpRows;  // rows that are multiplied together
  static constexpr int kTileStep = kWarpgroups ? 64 : 16;  // from a row of a warp's tile to that of the next one
  using Rows = SharedPanels<kDim, kRows>;
  using Keys = SharedPanels<kDim, kKeys>;
  using Scores = float[kKeys / 8][4];

  const NarrowSize& s;
  int warp, lane;
  int32_t row;  // the warp's first query
  float sums[kRowTiles][kDim / 8][4], largest[kRowTiles][2], total[kRowTiles][2];

  BOWLINE_DEVICE MmaForward(const NarrowSize& size, int32_t first)
      : s(size),
        warp(static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32),
        row(first + Begin() + (kWarpgroups ? warp % 4 * 16 : 0)) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[tile][n][i] = 0.0f;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) largest[tile][half] = -kInfinity, total[tile][half] = 0.0f;
    }
  }

  // The index in the block of the first row that is multiplied together with this warp's rows.
  BOWLINE_DEVICE int Begin() const { return warp * kWarpRows / kTogether * kTogether; }

  // Scores of keys that a query does not see become minus infinity.
  BOWLINE_DEVICE void Hide(int tile, Scores& scores, int32_t key) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const NarrowSize::Range seen = s.KeysOf(Smaller(row + tile * kTileStep + half * 8 + lane / 4, s.queries - 1));
      const int begin = seen.begin - key, end = seen.end - key;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int j = n * 8 + lane % 4 * 2 + i;
          if (j < begin || j >= end) scores[n][half * 2 + i] = -kInfinity;
        }
      }
    }
  }

  // Scores become exponentials under the largest score so far, under which sums are brought too.
  BOWLINE_DEVICE void Exponentiate(int tile, Scores& scores, float scale) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float larger = largest[tile][half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        larger = Max(larger, Max(scores[n][half * 2], scores[n][half * 2 + 1]));
      }
      larger = Max(larger, ShuffleXor(larger, 1));
      larger = Max(larger, ShuffleXor(larger, 2));
      // If no key was seen so far, all exponentials must be zero, and not those of infinity less infinity.
      const float base = larger == -kInfinity ? 0.0f : larger * scale;
      const float shrink = Exp2(MulAdd(largest[tile][half], scale, -base));
      largest[tile][half] = larger;
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& score = scores[n][half * 2 + i];
          score = Exp2(MulAdd(score, scale, -base));
          sum += score;
        }
      }
      total[tile][half] = MulAdd(total[tile][half], shrink, sum);
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) sums[tile][n][half * 2 + i] *= shrink;
      }
    }
  }

  // Adds keys by products of a warpgroup, whose tiles of 64 rows have 16 rows of each warp.
  BOWLINE_DEVICE void AddKeysTogether(const Rows& q, const Keys& k, const Keys& v, int32_t key, float scale,
                                      bool hide) {
    Scores scores[kRowTiles];
    StartProducts();
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int step = 0; step < kDim / 16; ++step) {
        MultiplyTogether<false>(scores[tile], q.Describe(Begin() + tile * 64, step), k.Describe(0, step), step > 0);
      }
      CommitProducts();
    }
    uint32_t weights[kRowTiles][kKeys / 16][4];
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      WaitForProducts<kRowTiles - 1>();
      Settle(scores[tile]);
      if (hide) Hide(tile, scores[tile], key);
      Exponentiate(tile, scores[tile], scale);
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
        PackA(weights[tile][step], scores[tile][2 * step], scores[tile][2 * step + 1]);
      }
      StartProducts();
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
        MultiplyTogether<true>(sums[tile], weights[tile][step], v.DescribeTransposed(step * 16), true);
      }
      CommitProducts();
    }
    WaitForProducts<0>();
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) Settle(sums[tile]);
  }

  BOWLINE_DEVICE void AddKeys(const Rows& q, const Keys& k, const Keys& v, int32_t key, float scale) {
    // Decided for all rows that are multiplied together.
    const int32_t begin = row - (kWarpgroups ? warp % 4 * 16 : 0), last = Smaller(begin + kTogether, s.queries) - 1;
    if (begin > last) return;
    const NarrowSize::Range any = s.KeysOf(begin, last + 1);
    if (key + kKeys <= any.begin || key >= any.end) return;
    const bool hide = key < s.KeysOf(last).begin || key + kKeys > s.KeysOf(begin).end;
    if constexpr (kWarpgroups) {
      AddKeysTogether(q, k, v, key, scale, hide);
      return;
    }
    Scores scores[kRowTiles] = {};
#pragma unroll 2
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t a[kRowTiles][4];
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) q.LoadA(a[tile], warp * kWarpRows + tile * 16, step, lane);
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        uint32_t b[4];
        k.LoadB(b, n * 16, step, lane);
#pragma unroll
        for (int tile = 0; tile < kRowTiles; ++tile) {
          MultiplyTile(scores[tile][2 * n], a[tile], b[0], b[1]);
          MultiplyTile(scores[tile][2 * n + 1], a[tile], b[2], b[3]);
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      if (hide) Hide(tile, scores[tile], key);
      Exponentiate(tile, scores[tile], scale);
    }
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t a[kRowTiles][4];
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
        const float (&left)[4] = scores[tile][2 * step], (&right)[4] = scores[tile][2 * step + 1];
        a[tile][0] = PackBf16(left[0], left[1]);
        a[tile][1] = PackBf16(left[2], left[3]);
        a[tile][2] = PackBf16(right[0], right[1]);
        a[tile][3] = PackBf16(right[2], right[3]);
      }
#pragma unroll
      for (int n = 0; n < kDim / 16; ++n) {
        uint32_t b[4];
        v.LoadTransposedB(b, step * 16, n, lane);
#pragma unroll
        for (int tile = 0; tile < kRowTiles; ++tile) {
          MultiplyTile(sums[tile][2 * n], a[tile], b[0], b[1]);
          MultiplyTile(sums[tile][2 * n + 1], a[tile], b[2], b[3]);
        }
      }
    }
  }

  BOWLINE_DEVICE void Finish(const Rows& q, int32_t first, Bf16* out, float* lse) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      float inverse[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = total[tile][half];
        sum += ShuffleXor(sum, 1);
        sum += ShuffleXor(sum, 2);
        inverse[half] = 1.0f / sum;
        const int32_t query = row + tile * kTileStep + half * 8 + lane / 4;
        if (lane % 4 == 0 && query < s.queries) lse[query] = MulAdd(largest[tile][half], s.scale, Log(sum));
      }
      const int32_t begin = row + tile * kTileStep;
      q.Write(sums[tile], inverse[0], inverse[1], begin - first, lane, out, s.QueryStride(), begin, s.queries);
    }
  }

  // Shared memory: q [kRows], then twice k and v [kKeys].
  BOWLINE_DEVICE static void Run(const Bf16* q, const Bf16* k, const Bf16* v, Bf16* out, float* lse,
                                 const NarrowSize& s) {
    const int32_t blocks = (s.queries + kRows - 1) / kRows;
    const BlockOrder order = OrderOfBlock(blocks, int64_t{4} * s.keys * kDim);
    // Later queries see more keys under a causal mask: they begin first.
    const int32_t index = order.head, first = (blocks - 1 - order.place) * kRows;
    const int32_t heads = static_cast<int32_t>(s.heads), group = heads / static_cast<int32_t>(s.kv_heads);
    const int32_t batch = index / heads, head = index - batch * heads;
    const int64_t kv = s.KeyOffset(batch, head / group), own = s.QueryOffset(batch, head);
    const Rows q_rows = {SharedBase()};
    const auto k_rows = [&](int buffer) { return Keys{q_rows.at + (Rows::kBytes + 2 * buffer * Keys::kBytes)}; };
    const auto v_rows = [&](int buffer) { return Keys{k_rows(buffer).at + Keys::kBytes}; };
    const auto read = [&](int32_t key, int buffer) {
      k_rows(buffer).template Read<kThreads>(k + kv, s.KeyStride(), key, s.keys);
      v_rows(buffer).template Read<kThreads>(v + kv, s.KeyStride(), key, s.keys);
      CommitCopies();
    };
    const NarrowSize::Range seen = s.KeysOf(first, Smaller(first + kRows, s.queries));
    q_rows.template Read<kThreads>(q + own, s.QueryStride(), first, s.queries);
    read(seen.begin, 0);
    MmaForward block(s, first);
    const float scale = s.scale * kLog2E;
    int buffer = 0;
    for (int32_t key = seen.begin; key < seen.end; key += kKeys, buffer ^= 1) {
      WaitForCopies();
      if constexpr (kWarpgroups) ShowToProducts();
      Barrier();  // the block is there, and no thread reads the one before, whose place the next one takes
      if (key + kKeys < seen.end) read(key + kKeys, buffer ^ 1);
      block.AddKeys(q_rows, k_rows(buffer), v_rows(buffer), key, scale);
    }
    if constexpr (kWarpgroups) Barrier();  // others may have read the queries that are written over
    block.Finish(q_rows, first, out + own, lse + int64_t{index} * s.queries);
  }
};

}  // namespace

#define BOWLINE_ATTENTION_FORWARD(dim, row_tiles, warps, keys, blocks)                                                 \
  BOWLINE_DEVICE_FUNCTION_OF(bowline_attention_forward_mma_##dim, 32 * warps, kWarpgroups ? blocks : 1, const Bf16* q, \
                             const Bf16* k, const Bf16* v, Bf16* out, float* lse, BOWLINE_ATTENTION_PARAMETERS) {      \
    MmaForward<dim, row_tiles, warps, keys>::Run(q, k, v, out, lse, BOWLINE_ATTENTION_SIZE(int32_t));                  \
  }
BOWLINE_ATTENTION_FORWARD(64, 1, 4, 64, 4)
BOWLINE_ATTENTION_FORWARD(96, 1, 8, 64, 1)
BOWLINE_ATTENTION_FORWARD(128, 1, 8, 64, 1)
#undef BOWLINE_ATTENTION_FORWARD
