#include "runtime/base/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "test/Support/test_seed.h"

namespace bowline {
namespace {

TEST(EditDistanceTest, OfWords) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("check", ""), 5u);
  EXPECT_EQ(EditDistance("", "check"), 5u);
  EXPECT_EQ(EditDistance("chekc", "check"), 2u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

// As it is defined.
size_t Slow(const std::string& from, const std::string& to) {
  if (from.empty() || to.empty()) return from.size() + to.size();
  const size_t replaced = Slow(from.substr(1), to.substr(1)) + (from[0] == to[0] ? 0 : 1);
  return std::min({replaced, Slow(from.substr(1), to) + 1, Slow(from, to.substr(1)) + 1});
}

TEST(EditDistanceTest, IsTheLeastOfAllWays) {
  std::mt19937 random(TestSeed());
  const auto word = [&] {
    std::string text(random() % 6, ' ');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 200; ++i) {
    const std::string from = word(), to = word();
    EXPECT_EQ(EditDistance(from, to), Slow(from, to)) << from << " " << to;
  }
}

}  // namespace
}  // namespace bowline
