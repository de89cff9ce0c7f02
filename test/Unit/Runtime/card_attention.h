#ifndef BOWLINE_TEST_UNIT_RUNTIME_CARD_ATTENTION_H_
#define BOWLINE_TEST_UNIT_RUNTIME_CARD_ATTENTION_H_

#include <cmath>
#include <limits>
#include <random>

#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/attention_bounds.h"
#include "test/Unit/Runtime/card_runner.h"

namespace bowline::kernels::testing {

struct AttentionCheck {
  bool rounds_heads = false;  // before the gradients of a group's query heads are added: as cuDNN does
  bowline::testing::CardRunner* back = nullptr;  // who computes the backward pass, if that is another one
  size_t scratch_limit = std::numeric_limits<size_t>::max();
};

// Forward and backward against the references in f64, of kernels that may round weights to bf16.
inline void CheckAttention(bowline::testing::CardRunner& card, std::mt19937_64& random,
                           const reference::AttentionSize& s, DType dtype, const AttentionCheck& check = {}) {
  SCOPED_TRACE(::testing::Message() << "B " << s.batch << " S " << s.queries << " T " << s.keys << " H " << s.heads
                                    << " KV " << s.kv_heads << " D " << s.head_dim << " causal " << s.causal
                                    << " window " << s.window << " " << NameOf(dtype));
  const std::vector<int64_t> q_shape = {s.batch, s.queries, s.heads, s.head_dim};
  const std::vector<int64_t> k_shape = {s.batch, s.keys, s.kv_heads, s.head_dim};
  const std::vector<int64_t> lse_shape = {s.batch, s.heads, s.queries};
  std::vector<Attribute> attributes = {Int("causal", s.causal), Float("scale", s.scale)};
  if (s.window != 0) attributes.push_back(Int("window", s.window));
  Stored q = RandomStored(random, dtype, Count(q_shape)), k = RandomStored(random, dtype, Count(k_shape));
  Stored v = RandomStored(random, dtype, Count(k_shape)), dout = RandomStored(random, dtype, Count(q_shape));
  Stored out = Unwritten(dtype, Count(q_shape)), lse = Unwritten(DType::kF32, Count(lse_shape));
  Stored dq = out, dk = Unwritten(dtype, Count(k_shape)), dv = dk;
  Signature ahead = {"attention_forward",
                     attributes,
                     {In(q_shape, dtype), In(k_shape, dtype), In(k_shape, dtype), Out(q_shape, dtype), Out(lse_shape)}};
  ahead.scratch_limit = check.scratch_limit;
  card.Run(ahead, {q.data(), k.data(), v.data(), out.data(), lse.data()});
  Signature back = {"attention_backward",
                    attributes,
                    {In(q_shape, dtype), In(k_shape, dtype), In(k_shape, dtype), In(q_shape, dtype), In(lse_shape),
                     In(q_shape, dtype), Out(q_shape, dtype), Out(k_shape, dtype), Out(k_shape, dtype)}};
  back.scratch_limit = check.scratch_limit;
  (check.back == nullptr ? card : *check.back)
      .Run(back, {q.data(), k.data(), v.data(), out.data(), lse.data(), dout.data(), dq.data(), dk.data(), dv.data()});
  if (::testing::Test::HasFatalFailure()) return;
  const auto q64 = q.Doubles(), k64 = k.Doubles(), v64 = v.Doubles(), dout64 = dout.Doubles();
  const auto forward = reference::Attention(s, q64, k64, v64);
  const auto backward = reference::AttentionBackward(s, q64, k64, v64, dout64);
  AttentionBounds bounds;
  if (dtype == DType::kBF16) {
    bounds = BoundAttention(s, /*rounds_weights=*/true, q64, k64, v64, dout64, forward,
                            check.rounds_heads && s.heads != s.kv_heads);
  }
  EXPECT_LE(ScaledError(lse.Values(), forward.lse), 1e-5);
  ExpectWithin("out", dtype, out, forward.out, bounds.out);
  ExpectWithin("dq", dtype, dq, backward.dq, bounds.dq);
  ExpectWithin("dk", dtype, dk, backward.dk, bounds.dk);
  ExpectWithin("dv", dtype, dv, backward.dv, bounds.dv);
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_CARD_ATTENTION_H_
