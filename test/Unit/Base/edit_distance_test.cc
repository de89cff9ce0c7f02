#include "runtime/base/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

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

TEST(FindNearestTest, IsTheFirstOfTheNearest) {
  const std::vector<std::string> words = {"gpipe", "1f1b", "zb_h1", "zb_h2"};
  EXPECT_EQ(*FindNearest("1f1bb", words), "1f1b");
  EXPECT_EQ(*FindNearest("zb_h", words), "zb_h1");
  EXPECT_EQ(*FindNearest("", words), "1f1b");
  const std::vector<std::string> none;
  EXPECT_EQ(FindNearest("1f1b", none), none.end());
}

// Candidates are whatever has a name.
TEST(FindNearestTest, AsksCandidatesForTheirNames) {
  const std::map<std::string, int> numbers = {{"one", 1}, {"two", 2}, {"three", 3}};
  EXPECT_EQ(FindNearest("tree", numbers, [](const auto& number) { return number.first; })->second, 3);
}

// A name that has no end takes no time.
TEST(FindNearestTest, LooksAtTheBeginningOfLongNames) {
  const std::vector<std::string> words = {"b", std::string(255, 'a')};
  EXPECT_EQ(*FindNearest(std::string(256, 'a') + std::string(1 << 24, 'b'), words), words[1]);
}

}  // namespace
}  // namespace bowline
