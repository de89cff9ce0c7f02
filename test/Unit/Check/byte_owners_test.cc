#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "checker/ByteOwners.h"
#include "test/Support/test_seed.h"

namespace bowline {
namespace {

// Against an array with one owner a byte.
TEST(ByteOwners, AgreesWithAnArray) {
  constexpr uint64_t kBytes = 97;
  std::mt19937 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    ByteOwners owners;
    std::vector<int> bytes(kBytes, -1);
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = random() % kBytes, end = begin + random() % (kBytes - begin + 1);
      const uint32_t buffer = random() % 3;
      switch (random() % 4) {
        case 0:
          owners.erase({begin, end});
          std::fill(bytes.begin() + begin, bytes.begin() + end, -1);
          break;
        case 1:
        case 2:
          owners.assign({begin, end}, {buffer, 0, std::nullopt});
          std::fill(bytes.begin() + begin, bytes.begin() + end, static_cast<int>(buffer));
          break;
        default: {
          const auto mismatch = owners.findMismatch({begin, end}, buffer, 0);
          const auto first = std::find_if(bytes.begin() + begin, bytes.begin() + end,
                                          [&](int owner) { return owner != static_cast<int>(buffer); });
          ASSERT_EQ(mismatch.has_value(), first != bytes.begin() + end);
          if (!mismatch) break;
          ASSERT_EQ(mismatch->range.begin, static_cast<uint64_t>(first - bytes.begin()));
          ASSERT_GT(mismatch->range.end, mismatch->range.begin);
          ASSERT_LE(mismatch->range.end, end);
          for (uint64_t i = mismatch->range.begin; i < mismatch->range.end; ++i) {
            ASSERT_EQ(bytes[i], mismatch->owner ? static_cast<int>(mismatch->owner->buffer) : -1);
          }
        }
      }
    }
  }
}

TEST(ByteOwners, TellsSlotsApart) {
  ByteOwners owners;
  owners.assign({0, 8}, {1, 0, std::nullopt});
  EXPECT_FALSE(owners.findMismatch({0, 8}, 1, 0).has_value());
  EXPECT_TRUE(owners.findMismatch({0, 8}, 1, 1).has_value());
}

}  // namespace
}  // namespace bowline
