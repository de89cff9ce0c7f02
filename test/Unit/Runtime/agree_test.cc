// AgreeOn, over whichever exchanges the binary links.

#include "runtime/comm/agree.h"

#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline {
namespace {

using testing::World;
using Values = std::vector<std::pair<std::string, std::string>>;

// The status of all ranks, which must be the same.
absl::Status Agree(World& world, const std::function<Values(int)>& values_of) {
  const auto results = world.Run([&](int rank) { return AgreeOn(world.all(rank).exchange(), values_of(rank)); });
  for (const absl::Status& status : results) EXPECT_EQ(status, results[0]);
  return results[0];
}

TEST(AgreeOn, EqualValuesInAnyOrder) {
  World world(4);
  EXPECT_TRUE(Agree(world, [](int) { return Values(); }).ok());
  EXPECT_TRUE(Agree(world, [](int rank) {
                return rank % 2 == 0 ? Values{{"plan", "abc"}, {"seed", ""}} : Values{{"seed", ""}, {"plan", "abc"}};
              }).ok());
}

TEST(AgreeOn, NamesTheKeyTwoRanksAndTheirValues) {
  World world(4);
  const struct {
    Values usual, of_rank_2;
    const char* text;
  } cases[] = {
      {{{"plan", "abc"}, {"seed", "7"}},
       {{"plan", "abc"}, {"seed", "8"}},
       "the ranks do not agree on seed: rank 0 has '7', but rank 2 has '8'; start all ranks with the same plan and "
       "options"},
      {{{"a", "1"}, {"b", "2"}},
       {{"b", "2"}},
       "the ranks do not agree on a: rank 0 has '1', but rank 2 has none; start all ranks with the same plan and "
       "options"},
      {{},
       {{"b", "2"}},
       "the ranks do not agree on b: rank 0 has none, but rank 2 has '2'; start all ranks with the same plan and "
       "options"},
      {{{"a", "1"}},
       {{"a", "1"}, {"a", "2"}},
       "the ranks do not agree on a: rank 0 has none, but rank 2 has '2'; start all ranks with the same plan and "
       "options"},
  };
  for (const auto& c : cases) {
    const absl::Status status = Agree(world, [&](int rank) { return rank == 2 ? c.of_rank_2 : c.usual; });
    EXPECT_EQ(status, absl::FailedPreconditionError(c.text));
  }
  // A difference is not the end.
  EXPECT_TRUE(Agree(world, [](int) { return Values{{"plan", "abc"}}; }).ok());
}

TEST(AgreeOn, ShowsLongValuesWhereTheyDiffer) {
  World world(2);
  const std::string same(1000, 'x'), rest(500, 'y');
  const absl::Status status =
      Agree(world, [&](int rank) { return Values{{"options", same + (rank == 0 ? "one" : "two") + rest}}; });
  const std::string before = "'..." + std::string(20, 'x');
  EXPECT_THAT(std::string(status.message()), ::testing::AllOf(::testing::HasSubstr("rank 0 has " + before + "oneyyy"),
                                                              ::testing::HasSubstr("rank 1 has " + before + "twoyyy"),
                                                              ::testing::HasSubstr("yyy...'")));
  EXPECT_LT(status.message().size(), 450u);
}

}  // namespace
}  // namespace bowline
