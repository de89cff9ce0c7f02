#include "runtime/serve/prefix_cache.h"

#include <gmock/gmock.h>

#include "runtime/serve/block_pool.h"

namespace bowline::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<int32_t>;

TEST(PrefixCacheTest, MatchesWholeBlocksFromTheBeginning) {
  PrefixCache cache(8, 2);
  cache.Insert(0, {1, 2}, 5);
  cache.Insert(5, {3, 4}, 6);
  EXPECT_THAT(cache.Match({1, 2, 3, 4, 5}, 9), ElementsAre(5, 6));
  EXPECT_THAT(cache.Match({1, 2, 3, 4, 5}, 1), ElementsAre(5));
  EXPECT_THAT(cache.Match({1, 2, 3}, 9), ElementsAre(5));
  EXPECT_THAT(cache.Match({1, 2, 3, 5}, 9), ElementsAre(5));
  EXPECT_THAT(cache.Match({1}, 9), IsEmpty());
  // The same tokens behind others are another block.
  EXPECT_THAT(cache.Match({3, 4}, 9), IsEmpty());
  EXPECT_EQ(cache.Find(6, {3, 4}), std::nullopt);
}

TEST(PrefixCacheTest, EvictsWhatIsIdleForLongestAndForgetsIt) {
  PrefixCache cache(8, 1);
  for (const int32_t block : {1, 2, 3}) cache.Insert(0, {block}, block);
  EXPECT_EQ(cache.Evict(), std::nullopt);
  for (const int32_t block : {2, 1, 3}) cache.SetIdle(block);
  cache.SetUsed(2);
  cache.SetIdle(2);
  EXPECT_EQ(cache.idle(), 3);
  EXPECT_EQ(cache.Evict(), 1);
  EXPECT_FALSE(cache.Holds(1));
  EXPECT_EQ(cache.Find(0, {1}), std::nullopt);
  EXPECT_EQ(cache.Find(0, {2}), 2);
  EXPECT_EQ(cache.Evict(), 3);
  EXPECT_EQ(cache.Evict(), 2);
  EXPECT_EQ(cache.Evict(), std::nullopt);
  cache.Insert(0, {1}, 3);
  EXPECT_EQ(cache.Find(0, {1}), 3);
}

TEST(BlockPoolTest, TakesFreeBlocksBeforeCachedOnes) {
  BlockPool pool(4, 1);
  EXPECT_EQ(pool.size(), 3);
  const int32_t a = *pool.Take(), b = *pool.Take();
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.owned(), 2);
  pool.prefixes().Insert(0, {7}, a);
  pool.Release(a);
  EXPECT_EQ(pool.available(), 2);
  const int32_t c = *pool.Take();
  EXPECT_NE(c, a);
  EXPECT_TRUE(pool.prefixes().Holds(a));
  EXPECT_EQ(pool.Take(), a);
  EXPECT_FALSE(pool.prefixes().Holds(a));
  EXPECT_EQ(pool.Take(), std::nullopt);
  pool.Release(b);
  EXPECT_EQ(pool.Take(), b);
}

TEST(BlockPoolTest, ABlockIsGivenBackByItsLastOwner) {
  BlockPool pool(2, 1);
  const int32_t a = *pool.Take();
  EXPECT_EQ(a, 1);  // 0 is null
  pool.prefixes().Insert(0, {7}, a);
  pool.Share(a);
  pool.Release(a);
  EXPECT_EQ(pool.available(), 0);
  pool.Release(a);
  EXPECT_EQ(pool.available(), 1);
  pool.Share(a);
  EXPECT_EQ(pool.references(a), 1);
  EXPECT_EQ(pool.Take(), std::nullopt);
}

}  // namespace
}  // namespace bowline::serve
