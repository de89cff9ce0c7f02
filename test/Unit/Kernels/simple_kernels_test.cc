#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

Signature Rope(int64_t positions, int64_t half, double theta, int threads) {
  return {"rope_angles",
          {Float("theta", theta)},
          {In({positions}, DType::kI32), Out({positions, half}), Out({positions, half})},
          threads};
}

TEST(RopeAngles, AgreesWithReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i) {
    const int64_t count = 1 + random() % 40, half = 1 + random() % 70;
    std::vector<int32_t> positions(count);
    for (int32_t& p : positions) p = static_cast<int32_t>(random() % 200000);
    Floats cosines(count * half, NAN), sines(count * half, NAN);
    RunKernel(Rope(count, half, 10000.0, 1 + i % 3), {positions.data(), cosines.data(), sines.data()});
    const auto expected = reference::RopeAngles(positions, half, 10000.0);
    EXPECT_LT(ScaledError(cosines, expected.cos), 6.1e-8);  // half a unit in the last place below 1, and f64's error
    EXPECT_LT(ScaledError(sines, expected.sin), 6.1e-8);
  }
}

TEST(RopeAngles, Refusals) {
  ExpectRefused(Rope(3, 4, 0.0, 1), "must be positive");
  ExpectRefused(Rope(3, 4, NAN, 1), "must be finite");
  Signature bad = Rope(3, 4, 1e4, 1);
  bad.arguments[2].shape = {3, 5};
  ExpectRefused(bad, "'sin' has shape [3, 5]");
  bad = Rope(3, 4, 1e4, 1);
  bad.arguments[0].shape = {2};
  ExpectRefused(bad, "'cos' has shape [3, 4]");
}

TEST(Fill, EveryElement) {
  Floats x(1003, NAN);
  RunKernel({"fill", {Float("value", -1.5)}, {Out({17, 59})}, 3}, {x.data()});
  EXPECT_THAT(x, ::testing::Each(-1.5f));
  std::vector<int32_t> i(5, 9);
  RunKernel({"fill", {Float("value", -7)}, {Out({5}, DType::kI32)}, 1}, {i.data()});
  EXPECT_THAT(i, ::testing::Each(-7));
  float scalar = 0;
  RunKernel({"fill", {Float("value", INFINITY)}, {Out({})}, 1}, {&scalar});
  EXPECT_EQ(scalar, INFINITY);
}

TEST(Fill, Refusals) {
  ExpectRefused({"fill", {Float("value", 0.5)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", 3e9)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", NAN)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", 0)}, {Out({5}, DType::kF16)}, 1}, "f16");
  ExpectRefused({"fill", {}, {Out({5})}, 1}, "'value' is missing");
}

}  // namespace
}  // namespace bowline::kernels::testing
