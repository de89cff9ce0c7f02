#include "runtime/train/data/blend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/train/data/dataset_group.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(BlendTest, SharesHoldAtEveryDrawAndIndicesCount) {
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{1}, {0.7, 0.3}, {1, 1, 1}, {5, 1e-3, 2, 2, 0.5}, {1, 2, 3, 4, 5, 6, 7}}) {
    const Blend blend(weights);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double bound = 1 + std::log2(static_cast<double>(weights.size())) + 1e-6;
    std::vector<int64_t> counts(weights.size());
    for (int64_t draw = 0; draw < 20000; ++draw) {
      const Blend::Place place = blend.PlaceOf(draw);
      ASSERT_LT(place.source, counts.size());
      ASSERT_EQ(place.index, counts[place.source]++);
      for (size_t i = 0; i < counts.size(); ++i) {
        ASSERT_LE(std::abs(static_cast<double>(counts[i]) - weights[i] / all * static_cast<double>(draw + 1)), bound);
      }
    }
  }
}

// Quotients of f64 differ in their last bits. Draws whose place is a half times a share hang on them.
TEST(BlendTest, WeightsOfOneProportionAreOneBlend) {
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{1, 2}, {7, 3}, {1, 1, 4}, {3, 5, 7, 11}}) {
    const Blend blend(weights);
    for (const double factor : {0.1, 0.01, 0.3, 1.0 / 7, 1e-5, 1e9}) {
      std::vector<double> scaled = weights;
      for (double& weight : scaled) weight *= factor;
      const Blend other(scaled);
      for (int64_t draw = 0; draw < 20000; ++draw) {
        ASSERT_EQ(other.PlaceOf(draw).source, blend.PlaceOf(draw).source) << draw << ", factor " << factor;
      }
    }
  }
}

TEST(BlendTest, DrawsFarAheadFollowEachOther) {
  const Blend blend(std::vector<double>{0.7, 0.2, 0.1});
  std::vector<int64_t> next(3, -1);
  for (int64_t draw = int64_t{1} << 59; draw < (int64_t{1} << 59) + 1000; ++draw) {
    const Blend::Place place = blend.PlaceOf(draw);
    if (next[place.source] >= 0) ASSERT_EQ(place.index, next[place.source]);
    next[place.source] = place.index + 1;
  }
}

TEST(DataFilesTest, WeightsStandBeforeFiles) {
  const auto files = ParseDataFiles(std::vector<std::string>{"0.7:a", "3e-1:u16:b"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)[0].path, "a");
  EXPECT_EQ((*files)[0].weight, 0.7);
  EXPECT_EQ((*files)[1].path, "u16:b");
  EXPECT_EQ((*files)[1].weight, 0.3);
  const auto bare = ParseDataFiles(std::vector<std::string>{"./0.7", "dir:1/b", "u16:c"});
  ASSERT_TRUE(bare.ok()) << bare.status();
  for (const DataFile& file : *bare) EXPECT_EQ(file.weight, 0) << file.path;
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(ParseDataFiles(arguments).status().message());
  };
  EXPECT_THAT(error({"0.7:a", "b"}), HasSubstr("'b' has no weight"));
  EXPECT_THAT(error({"a", "0.7:b"}), HasSubstr("'a' has no weight"));
  EXPECT_THAT(error({"0:a", "1:b"}), HasSubstr("not a number above 0"));
  EXPECT_THAT(error({"nan:a"}), HasSubstr("not a number above 0"));
  EXPECT_THAT(error({"0.5"}), HasSubstr("'0.5' is a weight without a data file; give both as one, 0.5:FILE"));
}

}  // namespace
}  // namespace bowline
