#include "runtime/base/rope_factors.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace bowline {
namespace {

// As the converter writes them, in f32.
std::vector<float> Llama3Factors(int half, float theta, float factor, float original) {
  const float low_wave = original / 1.0f, high_wave = original / 4.0f, pi = std::acos(-1.0f);
  std::vector<float> factors;
  for (int i = 0; i < half; ++i) {
    const float frequency = 1.0f / std::pow(theta, static_cast<float>(i) / static_cast<float>(half));
    const float wave = 2 * pi / frequency;
    if (wave < high_wave) {
      factors.push_back(1);
    } else if (wave > low_wave) {
      factors.push_back(factor);
    } else {
      const float smooth = (original / wave - 1.0f) / 3.0f;
      factors.push_back(1 / ((1 - smooth) / factor + smooth));
    }
  }
  return factors;
}

TEST(RopeFactors, AreThoseOfLlama3) {
  for (const int half : {32, 64}) {
    for (const float factor : {8.0f, 32.0f}) {
      for (const float original : {2048.0f, 8192.0f, 131072.0f}) {
        const auto scaling = RopeScalingOfFactors(Llama3Factors(half, 500000, factor, original), 500000);
        ASSERT_TRUE(scaling.has_value());
        EXPECT_EQ(*scaling, nlohmann::json({{"rope_type", "llama3"},
                                            {"factor", factor},
                                            {"low_freq_factor", 1},
                                            {"high_freq_factor", 4},
                                            {"original_max_position_embeddings", original}}));
      }
    }
  }
}

TEST(RopeFactors, AreAllTheSame) {
  EXPECT_EQ(RopeScalingOfFactors(std::vector<float>(8, 1), 1e4), nlohmann::json::object());
  EXPECT_EQ(RopeScalingOfFactors(std::vector<float>(8, 4), 1e4),
            nlohmann::json({{"rope_type", "linear"}, {"factor", 4}}));
}

TEST(RopeFactors, AreOfNoScaling) {
  const std::vector<float> factors = Llama3Factors(64, 500000, 8, 8192);
  EXPECT_FALSE(RopeScalingOfFactors(factors, 10000).has_value()) << "another theta";
  // Any factor that is a little off.
  for (size_t i = 0; i < factors.size(); ++i) {
    for (const float wrong : {0.999f, 1.001f}) {
      std::vector<float> changed = factors;
      changed[i] *= wrong;
      EXPECT_FALSE(RopeScalingOfFactors(changed, 500000).has_value()) << i;
    }
  }
  EXPECT_FALSE(RopeScalingOfFactors({}, 500000).has_value());
  EXPECT_FALSE(RopeScalingOfFactors({1, 1, 8, 8}, 500000).has_value()) << "no factor in between";
  for (const float bad : {0.0f, -1.0f, 0.5f, NAN, INFINITY}) {
    EXPECT_FALSE(RopeScalingOfFactors({bad, 2}, 500000).has_value()) << bad;
    EXPECT_FALSE(RopeScalingOfFactors({2, bad}, 500000).has_value()) << bad;
  }
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_FALSE(RopeScalingOfFactors({1, 2, 8}, bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace bowline
