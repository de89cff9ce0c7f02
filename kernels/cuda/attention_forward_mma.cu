// attention_forward of bf16 by matrix instructions: a warp has kRowTiles times 16 queries, whose sums stay in registers
// while blocks of keys stream past in shared memory, the next one being read meanwhile. Scores are multiplied with the
// scale, which is positive, and log2(e) where they are exponentiated.

#include "kernels/cuda/attention_geometry.h"
#include "kernels/cuda/tensor_core.h"

namespace {

using namespace bowline::device;

template <int kDim, int kRowTiles, int kWarps, int kKeys>
struct MmaForward {
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps * kWarpRows, kThreads = 32 * kWarps;
  using Rows = SharedRows<kDim>;
  static constexpr int kTileBytes = kKeys * Rows::kRowBytes;

  const NarrowSize& s;
  int warp, lane;
  int32_t row;  // the warp's first query
  float sums[kRowTiles][kDim / 8][4], largest[kRowTiles][2], total[kRowTiles][2];

  BOWLINE_DEVICE MmaForward(const NarrowSize& size, int32_t first)
      : s(size),
        warp(static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32),
        row(first + warp * kWarpRows) {
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

  BOWLINE_DEVICE int32_t LastRow() const { return Smaller(row + kWarpRows, s.queries) - 1; }

  // Scores of keys that a query does not see become minus infinity.
  BOWLINE_DEVICE void Hide(float (&scores)[kRowTiles][kKeys / 8][4], int32_t key) const {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const NarrowSize::Range seen = s.KeysOf(Smaller(row + tile * 16 + half * 8 + lane / 4, s.queries - 1));
        const int begin = seen.begin - key, end = seen.end - key;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int j = n * 8 + lane % 4 * 2 + i;
            if (j < begin || j >= end) scores[tile][n][half * 2 + i] = -kInfinity;
          }
        }
      }
    }
  }

  // Scores become exponentials under the largest score so far, under which sums are brought too.
  BOWLINE_DEVICE void Exponentiate(float (&scores)[kRowTiles][kKeys / 8][4], float scale) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float larger = largest[tile][half];
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
          larger = Max(larger, Max(scores[tile][n][half * 2], scores[tile][n][half * 2 + 1]));
        }
        larger = Max(larger, ShuffleXor(larger, 1));
        larger = Max(larger, ShuffleXor(larger, 2));
        // Of no key so far all exponentials are to be zero, and not those of infinity less infinity.
        const float base = larger == -kInfinity ? 0.0f : larger * scale;
        const float shrink = Exp2(MulAdd(largest[tile][half], scale, -base));
        largest[tile][half] = larger;
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& score = scores[tile][n][half * 2 + i];
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
  }

  BOWLINE_DEVICE void AddKeys(const Rows& q, const Rows& k, const Rows& v, int32_t key, float scale) {
    const NarrowSize::Range any = s.KeysOf(Smaller(row, s.queries - 1), LastRow() + 1);
    if (row >= s.queries || key + kKeys <= any.begin || key >= any.end) return;
    float scores[kRowTiles][kKeys / 8][4] = {};
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
    if (key < s.KeysOf(LastRow()).begin || key + kKeys > s.KeysOf(row).end) Hide(scores, key);
    Exponentiate(scores, scale);
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

  BOWLINE_DEVICE void Finish(const Rows& q, Bf16* out, float* lse) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      float inverse[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = total[tile][half];
        sum += ShuffleXor(sum, 1);
        sum += ShuffleXor(sum, 2);
        inverse[half] = 1.0f / sum;
        const int32_t query = row + tile * 16 + half * 8 + lane / 4;
        if (lane % 4 == 0 && query < s.queries) lse[query] = MulAdd(largest[tile][half], s.scale, Log(sum));
      }
      q.Write(sums[tile], inverse[0], inverse[1], warp * kWarpRows + tile * 16, lane, out, s.QueryStride(),
              row + tile * 16, s.queries);
    }
  }

  // Shared memory: q [kRows], then twice k and v [kKeys].
  BOWLINE_DEVICE static void Run(const Bf16* q, const Bf16* k, const Bf16* v, Bf16* out, float* lse,
                                 const NarrowSize& s) {
    const int32_t blocks = (s.queries + kRows - 1) / kRows, index = static_cast<int32_t>(blockIdx.x) / blocks;
    // Later queries see more keys under a causal mask: they begin first.
    const int32_t first = (blocks - 1 - static_cast<int32_t>(blockIdx.x) % blocks) * kRows;
    const int64_t head = index % s.heads, batch = index / s.heads;
    const int64_t kv = s.KeyOffset(batch, head / (s.heads / s.kv_heads)), own = s.QueryOffset(batch, head);
    const Rows q_rows = {SharedBase()};
    const SharedAddress tiles = SharedBase() + kRows * Rows::kRowBytes;
    const auto read = [&](int32_t key, int buffer) {
      const Rows k_rows = {tiles + 2 * buffer * kTileBytes}, v_rows = {k_rows.at + kTileBytes};
      k_rows.template Read<kKeys, kThreads>(k + kv, s.KeyStride(), key, s.keys);
      v_rows.template Read<kKeys, kThreads>(v + kv, s.KeyStride(), key, s.keys);
      CommitCopies();
    };
    const NarrowSize::Range seen = s.KeysOf(first, Smaller(first + kRows, s.queries));
    q_rows.template Read<kRows, kThreads>(q + own, s.QueryStride(), first, s.queries);
    read(seen.begin, 0);
    MmaForward block(s, first);
    const float scale = s.scale * kLog2E;
    int buffer = 0;
    for (int32_t key = seen.begin; key < seen.end; key += kKeys, buffer ^= 1) {
      WaitForCopies();
      Barrier();  // the block is there, and nobody reads the one before, whose place the next one takes
      if (key + kKeys < seen.end) read(key + kKeys, buffer ^ 1);
      const Rows k_rows = {tiles + 2 * buffer * kTileBytes}, v_rows = {k_rows.at + kTileBytes};
      block.AddKeys(q_rows, k_rows, v_rows, key, scale);
    }
    block.Finish(q_rows, out + own, lse + int64_t{index} * s.queries);
  }
};

}  // namespace

#define BOWLINE_ATTENTION_FORWARD(dim, row_tiles, warps)                                                 \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_forward_mma_##dim, 32 * warps, const Bf16* q, const Bf16* k, \
                          const Bf16* v, Bf16* out, float* lse, BOWLINE_ATTENTION_PARAMETERS) {          \
    MmaForward<dim, row_tiles, warps, 64>::Run(q, k, v, out, lse, BOWLINE_ATTENTION_SIZE(int32_t));      \
  }
BOWLINE_ATTENTION_FORWARD(64, 2, 4)
BOWLINE_ATTENTION_FORWARD(96, 1, 8)
BOWLINE_ATTENTION_FORWARD(128, 1, 8)
#undef BOWLINE_ATTENTION_FORWARD
