// Generation by several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "runtime/train/generator.h"
#include "test/Unit/Runtime/comm_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/toy_plan.h"

namespace bowline {
namespace {

using testing::ReadTensor;
using testing::World;
using testing::WriteTensor;

constexpr int kRanks = 3;

std::unique_ptr<Session> RandomSession(uint32_t seed) {
  auto session = ToySession(ToyGeneratePlan({.vocabulary = 97}));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const char* key : {kToyEmbedKey, kToyHeadKey}) {
    std::vector<float> values(ReadTensor<float>(*session, session->State(key)).size());
    for (float& value : values) value = normal(random);
    WriteTensor(*session, session->State(key), values);
  }
  return session;
}

// The texts that ranks wrote. Ranks have other parameters, as if each had logits of its own. Rank 0 calls `written`.
std::vector<std::string> Texts(
    const std::vector<std::unique_ptr<Session>>& sessions, const std::vector<std::unique_ptr<std::atomic<bool>>>& stops,
    int64_t tokens, const std::function<void(size_t)>& written = [](size_t) {}) {
  std::vector<std::string> texts(kRanks);
  World world(kRanks);
  world.RunOk([&](int rank) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank)));
    BOWLINE_ASSIGN_OR_RETURN(Generator generator, Generator::Create(sessions[static_cast<size_t>(rank)].get()));
    std::string& text = texts[static_cast<size_t>(rank)];
    const auto write = [&](absl::string_view bytes) {
      text.append(bytes.data(), bytes.size());
      written(text.size());
      return absl::OkStatus();
    };
    return generator.Generate("A", {.max_new_tokens = tokens, .seed = 11}, write, *stops[static_cast<size_t>(rank)],
                              &agreement);
  });
  return texts;
}

struct Fixture {
  Fixture() {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      sessions.push_back(RandomSession(rank));
      stops.push_back(std::make_unique<std::atomic<bool>>(false));
    }
  }
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<std::atomic<bool>>> stops;
};

TEST(RankGeneratorTest, AllFollowTheChoicesOfRankZeroWhichAloneWrites) {
  Fixture ranks;
  const auto alone = RandomSession(0);
  auto generator = Generator::Create(alone.get());
  ASSERT_TRUE(generator.ok());
  std::string expected;
  const auto write = [&](absl::string_view bytes) {
    expected.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  };
  ASSERT_EQ(generator->Generate("A", {.max_new_tokens = 30, .seed = 11}, write, *ranks.stops[0]), absl::OkStatus());
  EXPECT_THAT(Texts(ranks.sessions, ranks.stops, 30), ::testing::ElementsAre(expected, "", ""));
  // The last tokens that every rank saw.
  for (const auto& session : ranks.sessions) {
    const auto tokens_of = [](Session& of) { return ReadTensor<int32_t>(of, of.Input("run.Generate", "tokens")); };
    EXPECT_EQ(tokens_of(*session), tokens_of(*ranks.sessions[0]));
  }
}

TEST(RankGeneratorTest, AStopOfAnyRankIsOneOfAll) {
  for (size_t stopper : {0, 2}) {
    Fixture ranks;
    const auto stop_after_5 = [&](size_t written) {
      if (written == 5) *ranks.stops[stopper] = true;
    };
    const std::vector<std::string> texts = Texts(ranks.sessions, ranks.stops, 1'000'000, stop_after_5);
    // Another rank may be one exchange ahead of the stop.
    EXPECT_GE(texts[0].size(), 5u);
    EXPECT_LE(texts[0].size(), 7u);
  }
}

}  // namespace
}  // namespace bowline
