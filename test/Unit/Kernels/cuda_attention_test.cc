// Attention on the emulator, against the reference, within the bounds that attention_bounds.h derives.

#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/cuda/attention_geometry.h"
#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/attention_bounds.h"
#include "test/Unit/Kernels/cuda_emulation.h"

namespace bowline::kernels::testing {
namespace {

using reference::AttentionSize;

std::vector<Attribute> Attributes(const AttentionSize& s) {
  std::vector<Attribute> attributes = {Int("causal", s.causal), Float("scale", s.scale)};
  if (s.window != 0) attributes.push_back(Int("window", s.window));
  return attributes;
}

void CheckAttention(const AttentionSize& s, DType dtype, uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << "B " << s.batch << " S " << s.queries << " T " << s.keys << " H " << s.heads
                                    << " KV " << s.kv_heads << " D " << s.head_dim << " causal " << s.causal
                                    << " window " << s.window << " " << NameOf(dtype));
  std::mt19937_64 random(seed);
  const std::vector<int64_t> q_shape = {s.batch, s.queries, s.heads, s.head_dim},
                             k_shape = {s.batch, s.keys, s.kv_heads, s.head_dim};
  const int64_t q_count = Count(q_shape), k_count = Count(k_shape);
  Stored q = RandomStored(random, dtype, q_count, 2.0f), k = RandomStored(random, dtype, k_count, 2.0f),
         v = RandomStored(random, dtype, k_count), dout = RandomStored(random, dtype, q_count);
  Stored out = Unwritten(dtype, q_count), dq = out, dk = Unwritten(dtype, k_count), dv = dk;
  Floats lse(s.batch * s.heads * s.queries, NAN);
  const TensorSpec in_q = In(q_shape, dtype), in_k = In(k_shape, dtype), out_q = Out(q_shape, dtype),
                   out_k = Out(k_shape, dtype);
  const std::vector<int64_t> lse_shape = {s.batch, s.heads, s.queries};
  Emulate({"attention_forward", Attributes(s), {in_q, in_k, in_k, out_q, Out(lse_shape)}},
          {q.data(), k.data(), v.data(), out.data(), lse.data()});
  Emulate({"attention_backward", Attributes(s), {in_q, in_k, in_k, in_q, In(lse_shape), in_q, out_q, out_k, out_k}},
          {q.data(), k.data(), v.data(), out.data(), lse.data(), dout.data(), dq.data(), dk.data(), dv.data()});
  if (::testing::Test::HasFatalFailure()) return;

  const auto exact = reference::Attention(s, q.Doubles(), k.Doubles(), v.Doubles());
  const auto gradients = reference::AttentionBackward(s, q.Doubles(), k.Doubles(), v.Doubles(), dout.Doubles());
  AttentionBounds bounds;
  if (dtype == DType::kBF16) {
    bounds = BoundAttention(s, /*rounds_weights=*/true, q.Doubles(), k.Doubles(), v.Doubles(), dout.Doubles(), exact);
  }
  EXPECT_LE(ScaledError(lse, exact.lse), 1e-5);
  ExpectWithin("out", dtype, out, exact.out, bounds.out);
  ExpectWithin("dq", dtype, dq, gradients.dq, bounds.dq);
  ExpectWithin("dk", dtype, dk, gradients.dk, bounds.dk);
  ExpectWithin("dv", dtype, dv, gradients.dv, bounds.dv);
}

struct Case {
  AttentionSize size;
  DType dtype;
};

std::vector<Case> GeneralCases() {
  std::vector<Case> cases;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (const AttentionSize& s : {AttentionSize{1, 1, 1, 1, 1, 1, true, 1.0},
                                   {2, 5, 5, 2, 1, 3, true, 0.7},
                                   {1, 37, 50, 4, 2, 16, true, 0.25},
                                   {1, 70, 70, 2, 2, 20, false, 0.3},
                                   {1, 9, 33, 3, 1, 65, false, 0.2},
                                   {1, 90, 100, 2, 1, 24, true, 0.2, 17},
                                   {1, 40, 40, 1, 1, 96, true, 0.1, 1},
                                   {1, 3, 40, 2, 1, 256, true, 0.06},
                                   {1, 2, 35, 1, 1, 1300, true, 0.02},
                                   {1, 20, 20, 1, 1, 320, true, 0.05}}) {
      cases.push_back({s, dtype});
    }
  }
  return cases;
}

TEST(CudaAttention, EveryHeadSize) {
  uint64_t seed = 10;
  for (const Case& c : GeneralCases()) CheckAttention(c.size, c.dtype, seed++);
}

TEST(CudaAttention, F32OfUsualHeads) {
  CheckAttention({1, 20, 20, 1, 1, 8, true, -0.3}, DType::kF32, 3);
  CheckAttention({1, 100, 100, 2, 1, 64, true, 0.125}, DType::kF32, 1);
  CheckAttention({1, 40, 70, 2, 2, 128, true, 0.09, 33}, DType::kF32, 2);
}

// Every block of every head once; of heads whose bytes fit a cache together, the first places first.
TEST(CudaAttention, OrderOfBlocks) {
  for (int32_t heads : {1, 5, 64}) {
    for (int32_t blocks : {1, 7, 32}) {
      for (int64_t bytes : {int64_t{1}, int64_t{3} << 20, int64_t{12} << 20, int64_t{1} << 40}) {
        std::vector<int> seen(static_cast<size_t>(heads * blocks));
        const int64_t together = std::clamp<int64_t>((int64_t{32} << 20) / bytes, 1, heads);
        int64_t section = 0, place = 0;
        for (int32_t index = 0; index < heads * blocks; ++index) {
          const device::BlockOrder order(index, heads, blocks, bytes);
          ASSERT_TRUE(order.head >= 0 && order.head < heads && order.place >= 0 && order.place < blocks);
          ++seen[static_cast<size_t>(order.head * blocks + order.place)];
          if (order.head / together != section) section = order.head / together, place = 0;
          EXPECT_GE(order.place, place) << heads << " heads, " << blocks << " blocks, " << bytes << " bytes";
          place = order.place;
        }
        EXPECT_THAT(seen, ::testing::Each(1)) << heads << " heads, " << blocks << " blocks, " << bytes << " bytes";
      }
    }
  }
}

// By matrix instructions.
TEST(CudaAttention, Bf16OfUsualHeads) {
  uint64_t seed = 40;
  for (int64_t dim : {64, 96, 128}) {
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    CheckAttention({1, 1, 1, 1, 1, dim, true, scale}, DType::kBF16, seed++);
    CheckAttention({1, 128, 128, 1, 1, dim, false, scale}, DType::kBF16, seed++);
    CheckAttention({2, 70, 70, 2, 1, dim, true, scale}, DType::kBF16, seed++);
    CheckAttention({1, 150, 301, 2, 2, dim, true, scale}, DType::kBF16, seed++);
    CheckAttention({1, 33, 77, 4, 2, dim, false, scale}, DType::kBF16, seed++);
    CheckAttention({1, 300, 300, 1, 1, dim, true, scale, 40}, DType::kBF16, seed++);
    CheckAttention({1, 140, 190, 3, 1, dim, true, scale, 1}, DType::kBF16, seed++);
    CheckAttention({1, 200, 200, 1, 1, dim, true, 4 * scale, 150}, DType::kBF16, seed++);
    CheckAttention({1, 20, 20, 1, 1, dim, true, 0.0}, DType::kBF16, seed++);
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
