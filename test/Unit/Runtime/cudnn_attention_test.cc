// Attention by cuDNN, on a card or the stand-in, against the references in f64, and its replacement where cuDNN is
// missing or does not take it.

#include <gmock/gmock.h>

#include <cstdlib>

#include "kernels/cuda/attention_program.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Runtime/card_attention.h"

namespace bowline::kernels::testing {
namespace {

using bowline::testing::CardRunner;
using bowline::testing::IsStandIn;
using bowline::testing::StandInIs;
using reference::AttentionSize;
using ::testing::HasSubstr;

class CudnnAttention : public ::testing::Test {
 protected:
  // Skips the test where there is no card, or none of NVIDIA's libraries.
  std::unique_ptr<CardRunner> Card(std::map<std::string, std::string> settings) {
    absl::StatusOr<std::unique_ptr<CardRunner>> made = CardRunner::Create(std::move(settings));
    if (made.ok()) return *std::move(made);
    EXPECT_EQ(std::getenv("BOWLINE_REQUIRE_CARD"), nullptr) << made.status();
    return nullptr;
  }

  std::mt19937_64 random_{TestSeed()};
};

#define CARD_OR_SKIP(name, ...)                               \
  const std::unique_ptr<CardRunner> name = Card(__VA_ARGS__); \
  if (name == nullptr) GTEST_SKIP() << "there is no card"

AttentionSize RandomSize(std::mt19937_64& random, int64_t head_dim, int64_t most) {
  AttentionSize s{};
  s.batch = 1 + static_cast<int64_t>(random() % 3);
  s.queries = 2 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  s.keys = s.queries + (random() % 2 == 0 ? static_cast<int64_t>(random() % 40) : 0);
  s.kv_heads = 1 + static_cast<int64_t>(random() % 3);
  s.heads = s.kv_heads * (1 + static_cast<int64_t>(random() % 3));
  s.head_dim = head_dim;
  s.causal = random() % 4 != 0;
  if (s.causal && random() % 2 == 0) s.window = 1 + static_cast<int64_t>(random() % 30);
  s.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  return s;
}

Signature Backward(const AttentionSize& s, DType dtype = DType::kBF16) {
  const std::vector<int64_t> q = {s.batch, s.queries, s.heads, s.head_dim},
                             k = {s.batch, s.keys, s.kv_heads, s.head_dim};
  std::vector<Attribute> attributes = {Int("causal", s.causal), Float("scale", s.scale)};
  if (s.window != 0) attributes.push_back(Int("window", s.window));
  return {"attention_backward",
          attributes,
          {In(q, dtype), In(k, dtype), In(k, dtype), In(q, dtype), In({s.batch, s.heads, s.queries}), In(q, dtype),
           Out(q, dtype), Out(k, dtype), Out(k, dtype)}};
}

TEST_F(CudnnAttention, OfRandomShapes) {
  CARD_OR_SKIP(card, {{"attention", "cudnn"}});
  for (const int64_t dim : {8, 64, 72, 96, 128}) {
    for (int i = 0; i < 4; ++i) {
      CheckAttention(*card, random_, RandomSize(random_, dim, 40), DType::kBF16, {.rounds_heads = true});
      if (HasFatalFailure()) return;
    }
  }
}

// Gradients of these are for sm_90 alone.
TEST_F(CudnnAttention, OfLargeHeads) {
  CARD_OR_SKIP(card, {{"attention", "cudnn"}});
  if (const auto made = card->device().CreateKernel(Backward({1, 8, 8, 1, 1, 256, true, 0.1}));
      !IsStandIn() && !made.ok()) {
    GTEST_SKIP() << made.status();
  }
  for (int i = 0; i < 3; ++i) {
    CheckAttention(*card, random_, RandomSize(random_, 256, 20), DType::kBF16, {.rounds_heads = true});
  }
}

TEST_F(CudnnAttention, OfOneQuery) {
  CARD_OR_SKIP(card, {{"attention", "cudnn"}});
  AttentionSize s = {2, 1, 33, 4, 2, 64, true, 0.125};
  CheckAttention(*card, random_, s, DType::kBF16, {.rounds_heads = true});
  s.window = 7;
  CheckAttention(*card, random_, s, DType::kBF16, {.rounds_heads = true});
}

// The logarithms that one way computes in the forward pass are valid inputs of the other way's backward pass.
TEST_F(CudnnAttention, LogarithmsAreThoseOfOwnKernels) {
  CARD_OR_SKIP(cudnn, {{"attention", "cudnn"}});
  CARD_OR_SKIP(own, {{"attention", "own"}});
  for (int i = 0; i < 2; ++i) {
    const AttentionSize s = RandomSize(random_, 64, 40);
    CheckAttention(*cudnn, random_, s, DType::kBF16, {.rounds_heads = true, .back = own.get()});
    CheckAttention(*own, random_, s, DType::kBF16, {.rounds_heads = true, .back = cudnn.get()});
  }
}

// With less workspace, batches and then heads are computed one after another.
TEST_F(CudnnAttention, InParts) {
  CARD_OR_SKIP(card, {{"attention", "cudnn"}});
  const AttentionSize s = {4, 36, 40, 6, 3, 64, true, 0.125};
  const size_t whole = cuda::BackwardWorkspace({4, 36, 40, 6, 3, 64, true, DType::kBF16, 0.125f, 0}, true);
  size_t tried = 0;
  for (const auto& [batch, kv_heads] : {std::pair(4, 3), {2, 3}, {1, 3}, {1, 1}}) {
    const size_t limit =
        (cuda::BackwardWorkspace({batch, 36, 40, 2 * kv_heads, kv_heads, 64, true, DType::kBF16, 0.125f, 0}, true) +
         255) /
        256 * 256;
    EXPECT_LE(limit, (whole + 255) / 256 * 256);
    CheckAttention(*card, random_, s, DType::kBF16, {.rounds_heads = true, .scratch_limit = limit});
    if (HasFatalFailure()) return;
    ++tried;
  }
  EXPECT_EQ(tried, 4u);
  Signature signature = Backward(s);
  signature.scratch_limit = 16 << 10;
  const auto refused = card->device().CreateKernel(signature);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("too few for cuDNN"));
}

TEST_F(CudnnAttention, InAnyOrder) {
  if (!IsStandIn()) GTEST_SKIP() << "bits differ from run to run, which the runner of kernels refuses";
  CARD_OR_SKIP(card, {{"attention", "cudnn"}, {"any-order", "1"}});
  for (int i = 0; i < 3; ++i) {
    CheckAttention(*card, random_, RandomSize(random_, 64, 40), DType::kBF16, {.rounds_heads = true});
  }
}

TEST_F(CudnnAttention, RefusesWhatItDoesNotCompute) {
  CARD_OR_SKIP(cudnn, {{"attention", "cudnn"}});
  for (const auto& [size, dtype] : {std::pair(AttentionSize{1, 8, 8, 1, 1, 64, true, 0.1}, DType::kF32),
                                    {AttentionSize{1, 8, 8, 1, 1, 20, true, 0.1}, DType::kBF16},
                                    {AttentionSize{1, 8, 8, 1, 1, 264, true, 0.1}, DType::kBF16},
                                    {AttentionSize{1, 1, 1, 1, 1, 64, true, 0.1}, DType::kBF16}}) {
    const auto refused = cudnn->device().CreateKernel(Backward(size, dtype));
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("attention=cudnn, but cuDNN computes attention of bf16"));
  }
}

TEST_F(CudnnAttention, RefusesWhereTheLibraryHasNoKernel) {
  if (!IsStandIn()) GTEST_SKIP() << "the library takes all of them";
  CARD_OR_SKIP(cudnn, {{"attention", "cudnn"}});
  const AttentionSize s = {1, 20, 30, 2, 1, 64, true, 0.125};
  {
    const StandInIs refusing("BOWLINE_STAND_IN_CUDNN_REFUSES", "1");
    EXPECT_THAT(std::string(cudnn->device().CreateKernel(Backward(s)).status().message()),
                HasSubstr("attention=cudnn, but cuDNN has no kernel for it; attention=auto takes the driver's own"));
  }
  EXPECT_TRUE(cudnn->device().CreateKernel(Backward(s)).ok());
}

// Whatever cuDNN has.
TEST_F(CudnnAttention, IsNotTakenUnlessAskedFor) {
  if (!IsStandIn()) GTEST_SKIP() << "the library's kernels and the own ones may give the same bits";
  const StandInIs refusing("BOWLINE_STAND_IN_CUDNN_REFUSES", "1");
  for (const std::map<std::string, std::string>& settings :
       {std::map<std::string, std::string>{}, {{"attention", "auto"}}, {{"attention", "own"}, {"any-order", "1"}}}) {
    CARD_OR_SKIP(card, settings);
    const AttentionSize s = {1, 20, 30, 2, 1, 64, true, 0.125};
    const auto kernel = card->device().CreateKernel(Backward(s));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->Note(), "");
    CheckAttention(*card, random_, s, DType::kBF16);
  }
}

// The second of the library's kernels, if the first one wants too much.
TEST_F(CudnnAttention, TakesTheFirstKernelWhoseWorkspaceFits) {
  if (!IsStandIn()) GTEST_SKIP() << "the library says what it needs";
  CARD_OR_SKIP(cudnn, {{"attention", "cudnn"}});
  CARD_OR_SKIP(own, {});
  const AttentionSize s = {1, 20, 30, 2, 1, 64, true, 0.125};
  const auto made = cudnn->device().CreateKernel(Backward(s));
  ASSERT_TRUE(made.ok()) << made.status();
  // Behind delta.
  const size_t room = (*made)->ScratchBytes() - 256;
  for (const size_t too_much : {0, 1, 128}) {
    SCOPED_TRACE(too_much);
    const StandInIs wanting("BOWLINE_STAND_IN_CUDNN_WORKSPACE", std::to_string(room + too_much));
    // Forward passes have less.
    CheckAttention(*own, random_, s, DType::kBF16, {.rounds_heads = true, .back = cudnn.get()});
  }
  for (const size_t too_much : {129, 300}) {
    const StandInIs wanting("BOWLINE_STAND_IN_CUDNN_WORKSPACE", std::to_string(room + too_much));
    EXPECT_THAT(std::string(cudnn->device().CreateKernel(Backward(s)).status().message()),
                HasSubstr(absl::StrCat("cuDNN needs ", room + too_much - 128, " bytes of workspace for it, and ", room,
                                       " are there")));
  }
}

TEST_F(CudnnAttention, SettingsAreChecked) {
  const auto refused = CardRunner::Create({{"attention", "fast"}});
  ASSERT_FALSE(refused.ok());
  if (absl::IsUnavailable(refused.status())) GTEST_SKIP() << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("attention=fast is none of auto, cudnn and own"));
}

// Run with a library of cuDNN's name that is another one.
TEST(CudnnMissing, IsSaidToThoseWhoAskForIt) {
  if (std::getenv("BOWLINE_TEST_WITHOUT_CUDNN") == nullptr) GTEST_SKIP() << "nobody says that cuDNN is missing";
  const auto automatic = CardRunner::Create({});
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  std::mt19937_64 random(TestSeed());
  const AttentionSize s = {1, 20, 30, 2, 1, 64, true, 0.125};
  CheckAttention(**automatic, random, s, DType::kBF16);
  const auto cudnn = CardRunner::Create({{"attention", "cudnn"}});
  ASSERT_TRUE(cudnn.ok()) << cudnn.status();
  EXPECT_THAT(std::string((*cudnn)->device().CreateKernel(Backward(s)).status().message()),
              HasSubstr("attention=cudnn, but libcudnn.so.9 has no function cudnn"));
}

}  // namespace
}  // namespace bowline::kernels::testing
