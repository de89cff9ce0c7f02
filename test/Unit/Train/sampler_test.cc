#include "runtime/train/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "runtime/train/data/dataset_group.h"
#include "test/Unit/Train/token_files.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The tokens 0, 1, 2, ...
class CountingDataset : public TokenDataset {
 public:
  explicit CountingDataset(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  int64_t max_possible_id() const override { return INT32_MAX; }
  std::string description() const override { return "counting"; }
  const std::string& path() const override { return path_; }
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    EXPECT_GE(begin, 0);
    EXPECT_LE(begin + count, size_);
    std::iota(out, out + count, static_cast<int32_t>(begin));
    return absl::OkStatus();
  }

 private:
  int64_t size_;
  std::string path_ = "counting";
};

TEST(ShufflePermutationTest, IsABijectionForEverySize) {
  for (int64_t size : {1, 2, 3, 4, 5, 7, 63, 64, 65, 97, 1000, 4096, 4097, 65537, 1'000'003}) {
    const ShufflePermutation permutation(size, 42);
    for (uint64_t epoch : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
      std::vector<bool> seen(static_cast<size_t>(size));
      for (int64_t i = 0; i < size; ++i) {
        const int64_t image = permutation(epoch, i);
        ASSERT_TRUE(image >= 0 && image < size) << size;
        ASSERT_FALSE(seen[static_cast<size_t>(image)]) << size;
        seen[static_cast<size_t>(image)] = true;
      }
    }
  }
}

TEST(ShufflePermutationTest, HugeSizesWork) {
  for (int64_t size : {int64_t{1} << 32, (int64_t{1} << 32) + 1, int64_t{1} << 62, INT64_MAX}) {
    const ShufflePermutation permutation(size, 7);
    std::set<int64_t> images;
    for (int64_t i = 0; i < 1000; ++i) {
      images.insert(permutation(3, i));
      images.insert(permutation(3, size - 1 - i));
    }
    EXPECT_EQ(images.size(), 2000u);
    EXPECT_GE(*images.begin(), 0);
    EXPECT_LT(*images.rbegin(), size);
    EXPECT_GT(*images.rbegin(), size / 2);
  }
}

TEST(ShufflePermutationTest, DependsOnSeedAndEpochAlone) {
  const auto order = [](uint64_t seed, uint64_t epoch) {
    const ShufflePermutation permutation(100, seed);
    std::vector<int64_t> images;
    for (int64_t i = 0; i < 100; ++i) images.push_back(permutation(epoch, i));
    return images;
  };
  EXPECT_EQ(order(1, 2), order(1, 2));
  EXPECT_NE(order(1, 2), order(1, 3));
  EXPECT_NE(order(1, 2), order(2, 2));
  EXPECT_NE(order(1, 2), order((uint64_t{1} << 32) + 1, 2));
  EXPECT_NE(order(1, 2), order(1, (uint64_t{1} << 32) + 2));
}

// All orders of few samples must be about equally frequent over epochs.
TEST(ShufflePermutationTest, SmallPermutationsAreUniform) {
  for (int64_t size : {2, 3, 4}) {
    const ShufflePermutation permutation(size, 99);
    std::map<std::vector<int64_t>, int> frequency;
    int64_t orders = 1;
    for (int64_t i = 2; i <= size; ++i) orders *= i;
    const int expected = 1000;
    for (int64_t epoch = 0; epoch < expected * orders; ++epoch) {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < size; ++i) order.push_back(permutation(static_cast<uint64_t>(epoch), i));
      ++frequency[order];
    }
    ASSERT_EQ(static_cast<int64_t>(frequency.size()), orders);
    double chi_squared = 0;
    for (const auto& [order, count] : frequency)
      chi_squared += (count - expected) * (count - expected) / double{expected};
    // 99.99th percentile for 23 degrees of freedom, the most there are here; the seed is fixed.
    EXPECT_LT(chi_squared, 58.6) << size;
  }
}

// A sample's place in one epoch says nothing about its place in the next, nor about its neighbour's.
TEST(ShufflePermutationTest, LargePermutationsAreUncorrelated) {
  constexpr int64_t kSize = 20'011;
  const ShufflePermutation permutation(kSize, 5);
  double identity = 0, epochs = 0, neighbours = 0;
  const auto centred = [&](uint64_t epoch, int64_t index) {
    return (static_cast<double>(permutation(epoch, index)) - (kSize - 1) / 2.0) / kSize * std::sqrt(12.0);
  };
  for (int64_t i = 0; i + 1 < kSize; ++i) {
    identity += centred(0, i) * (static_cast<double>(i) / kSize - 0.5) * std::sqrt(12.0);
    epochs += centred(0, i) * centred(1, i);
    neighbours += centred(0, i) * centred(0, i + 1);
  }
  // Each sum has a standard deviation near sqrt(kSize).
  for (double sum : {identity, epochs, neighbours}) EXPECT_LT(std::abs(sum), 5 * std::sqrt(double{kSize}));
}

TEST(SamplerTest, SequentialBatchesFollowTheDocumentedOrderAndWrap) {
  const CountingDataset dataset(12);  // 3 samples of 3 tokens: 0..3, 3..6, 6..9
  const auto sampler = Sampler::Create(&dataset, 3, DataOrder::kSequential, 0);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ(sampler->samples(), 3);
  std::vector<int32_t> tokens(6), labels(6);
  ASSERT_TRUE(sampler->FillBatch(0, 2, tokens.data(), labels.data()).ok());
  EXPECT_THAT(tokens, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(labels, ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(sampler->FillBatch(1, 2, tokens.data(), labels.data()).ok());
  EXPECT_THAT(tokens, ElementsAre(6, 7, 8, 0, 1, 2));
  EXPECT_THAT(labels, ElementsAre(7, 8, 9, 1, 2, 3));
}

TEST(SamplerTest, TheLastSampleMayEndAtTheLastToken) {
  const CountingDataset exact(10), one_less(9);
  EXPECT_EQ(Sampler::Create(&exact, 3, DataOrder::kSequential, 0)->samples(), 3);
  EXPECT_EQ(Sampler::Create(&one_less, 3, DataOrder::kSequential, 0)->samples(), 2);
}

TEST(SamplerTest, AShuffledEpochTakesEverySampleOnceWhateverTheBatch) {
  const CountingDataset dataset(102);  // 101 samples of one token
  const auto sampler = Sampler::Create(&dataset, 1, DataOrder::kShuffle, 11);
  std::vector<int32_t> all(303), labels(303);
  ASSERT_TRUE(sampler->FillDraws(0, 303, all.data(), labels.data()).ok());
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(std::set<int32_t>(all.begin() + epoch * 101, all.begin() + (epoch + 1) * 101).size(), 101u);
  }
  EXPECT_FALSE(std::equal(all.begin(), all.begin() + 101, all.begin() + 101));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(labels[i], all[i] + 1);
  for (int64_t batch : {1, 7, 100}) {
    std::vector<int32_t> tokens(static_cast<size_t>(batch)), next(tokens);
    for (int64_t step = 0; (step + 1) * batch <= 303; ++step) {
      ASSERT_TRUE(sampler->FillBatch(step, batch, tokens.data(), next.data()).ok());
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), all.begin() + step * batch));
    }
  }
}

TEST(SamplerTest, ADatasetShorterThanOneSampleIsAnError) {
  for (int64_t size : {0, 1, 8}) {
    const CountingDataset dataset(size);
    const absl::Status status = Sampler::Create(&dataset, 8, DataOrder::kSequential, 0).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("'counting' is too short: it has " + std::to_string(size)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("takes 9"));
  }
  const CountingDataset dataset(9);
  EXPECT_FALSE(Sampler::Create(&dataset, 0, DataOrder::kSequential, 0).ok());
  EXPECT_FALSE(Sampler::Create(&dataset, INT64_MAX, DataOrder::kSequential, 0).ok());
}

TEST(SamplerTest, ImpossibleBatchesAreErrors) {
  const CountingDataset dataset(9);
  const auto sampler = Sampler::Create(&dataset, 8, DataOrder::kShuffle, 0);
  int32_t tokens[8], labels[8];
  EXPECT_FALSE(sampler->FillBatch(-1, 1, tokens, labels).ok());
  EXPECT_FALSE(sampler->FillBatch(0, 0, tokens, labels).ok());
  EXPECT_FALSE(sampler->FillBatch(INT64_MAX, 2, tokens, labels).ok());
  EXPECT_FALSE(sampler->FillDraws(INT64_MAX, 1, tokens, labels).ok());
  EXPECT_TRUE(sampler->FillBatch(INT64_MAX - 1, 1, tokens, labels).ok());
}

TEST(SamplerTest, AnIdOutsideOfTheVocabularyReachesTheCaller) {
  const std::string file = LlmcFile({1, 2, 300});
  const auto dataset = TokenDatasetFromBytes(AsBytes(file), "d.bin", {.vocabulary = 256});
  const auto sampler = Sampler::Create(dataset->get(), 2, DataOrder::kSequential, 0);
  int32_t tokens[2], labels[2];
  EXPECT_THAT(std::string(sampler->FillBatch(0, 1, tokens, labels).message()), HasSubstr("token 2 has the id 300"));
}

// Files whose tokens tell where they are from: 1000 * file + position.
class PlacedDataset : public CountingDataset {
 public:
  PlacedDataset(int64_t size, int32_t base) : CountingDataset(size), base_(base) {}
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    BOWLINE_RETURN_IF_ERROR(CountingDataset::Read(begin, count, out));
    for (int64_t i = 0; i < count; ++i) out[i] += base_;
    return absl::OkStatus();
  }

 private:
  int32_t base_;
};

std::unique_ptr<DatasetGroup> GroupOf(const std::vector<std::pair<int64_t, double>>& sizes_and_weights) {
  std::vector<DatasetGroup::Member> members;
  for (const auto& [size, weight] : sizes_and_weights) {
    const auto base = static_cast<int32_t>(1000 * members.size());
    members.push_back({std::make_unique<PlacedDataset>(size, base), weight});
  }
  return std::make_unique<DatasetGroup>(std::move(members));
}

TEST(SamplerTest, FilesFollowEachOtherAndNoSampleReachesFromOneIntoTheNext) {
  const auto group = GroupOf({{8, 0}, {6, 0}, {4, 0}});  // 2, 1 and 1 samples of 3 tokens, and tokens left over
  const auto sampler = Sampler::Create(group.get(), 3, DataOrder::kSequential, 0);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ(sampler->samples(), 4);
  std::vector<int32_t> tokens(15), labels(15);
  ASSERT_TRUE(sampler->FillBatch(0, 5, tokens.data(), labels.data()).ok());
  EXPECT_THAT(tokens, ElementsAre(0, 1, 2, 3, 4, 5, 1000, 1001, 1002, 2000, 2001, 2002, 0, 1, 2));
  EXPECT_THAT(labels, ElementsAre(1, 2, 3, 4, 5, 6, 1001, 1002, 1003, 2001, 2002, 2003, 1, 2, 3));
  // A shuffled epoch takes each sample of all files once.
  const auto shuffled = Sampler::Create(group.get(), 3, DataOrder::kShuffle, 5);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 4; ++i) seen.insert(shuffled->SampleOfDraw(epoch * 4 + i));
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  }
}

// 10, 3 and 20 samples, drawn 5 : 3 : 2, so that the second file has many epochs while the third one has its first.
TEST(SamplerTest, ABlendHasItsSharesAndEachFileItsOwnOrder) {
  const auto group = GroupOf({{21, 5}, {7, 3}, {41, 2}});
  constexpr int64_t kSamples[] = {10, 3, 20}, kFirst[] = {0, 10, 13}, kShare[] = {5, 3, 2};
  for (const DataOrder order : {DataOrder::kSequential, DataOrder::kShuffle}) {
    const auto sampler = Sampler::Create(group.get(), 2, order, 7);
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    std::vector<int64_t> drawn[3];
    for (int64_t draw = 0; draw < 3000; ++draw) {
      const int64_t sample = sampler->SampleOfDraw(draw);
      const size_t file = sample < kFirst[1] ? 0 : sample < kFirst[2] ? 1 : 2;
      drawn[file].push_back(sample - kFirst[file]);
      for (size_t i = 0; i < 3; ++i) {
        // 1 + log2(3) files.
        EXPECT_LT(std::abs(static_cast<double>(drawn[i].size()) - 0.1 * static_cast<double>(kShare[i] * (draw + 1))),
                  2.6);
      }
    }
    for (size_t file = 0; file < 3; ++file) {
      const auto count = static_cast<size_t>(kSamples[file]);
      std::set<std::vector<int64_t>> orders;
      for (size_t begin = 0; begin + count <= drawn[file].size(); begin += count) {
        std::vector<int64_t> epoch(drawn[file].begin() + static_cast<ptrdiff_t>(begin),
                                   drawn[file].begin() + static_cast<ptrdiff_t>(begin + count));
        orders.insert(epoch);
        std::sort(epoch.begin(), epoch.end());
        std::vector<int64_t> all(count);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(epoch, all);
      }
      if (order == DataOrder::kSequential) {
        EXPECT_EQ(orders.size(), 1u);
      } else {
        EXPECT_GT(orders.size(), 3u);
      }
    }
  }
}

// A run that resumes at any draw, in batches of any size, reads the same tokens as a run from the start.
TEST(SamplerTest, ABlendGoesOnAtAnyDraw) {
  const auto group = GroupOf({{21, 0.7}, {7, 0.2}, {41, 0.1}});
  const auto sampler = Sampler::Create(group.get(), 2, DataOrder::kShuffle, 3);
  const auto again = Sampler::Create(group.get(), 2, DataOrder::kShuffle, 3);
  std::vector<int32_t> tokens(200), labels(200);
  ASSERT_TRUE(sampler->FillBatch(0, 100, tokens.data(), labels.data()).ok());
  for (const int64_t first : {1, 37, 99}) {
    for (const int64_t count : {int64_t{1}, 100 - first}) {
      std::vector<int32_t> some(static_cast<size_t>(count) * 2), next(some.size());
      ASSERT_TRUE(again->FillDraws(first, count, some.data(), next.data()).ok());
      EXPECT_TRUE(std::equal(some.begin(), some.end(), tokens.begin() + first * 2));
      EXPECT_TRUE(std::equal(next.begin(), next.end(), labels.begin() + first * 2));
    }
  }
}

TEST(SamplerTest, AShortFileOfAGroupIsNamed) {
  const auto group = GroupOf({{21, 0}, {3, 0}});
  EXPECT_THAT(std::string(Sampler::Create(group.get(), 3, DataOrder::kSequential, 0).status().message()),
              HasSubstr("'counting' is too short: it has 3 tokens"));
}

TEST(SamplerTest, OrderNames) {
  for (DataOrder order : {DataOrder::kSequential, DataOrder::kShuffle}) {
    EXPECT_EQ(*DataOrderFromName(NameOf(order)), order);
  }
  EXPECT_THAT(std::string(DataOrderFromName("random").status().message()), HasSubstr("give sequential or shuffle"));
}

}  // namespace
}  // namespace bowline
