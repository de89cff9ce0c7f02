// The checker looks at one rank of each role. Random plans, sound and not, are expanded to all ranks: both must agree
// on who waits for ever, on which machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checker/PlanChecker.h"
#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Check/rank_runs.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using testing::Issue;
using testing::RankPlan;
using Random = std::mt19937;

// An operation, as all roles see it.
struct Operation {
  enum Kind { kTransfer, kWorld, kWithinRole } kind;
  uint32_t communicator;
  uint32_t from, to;  // roles; of kWithinRole: from
  uint32_t number;

  bool Has(uint32_t role) const { return kind == kWorld || role == from || (kind == kTransfer && role == to); }
};

struct RandomPlan {
  fbs::PlanT plan;
  std::vector<std::vector<Operation>> order;  // by role, as issued
};

RandomPlan MakeRandomPlan(Random& random) {
  const uint32_t roles = 2 + random() % 3;
  std::vector<std::pair<std::string, uint32_t>> mesh = {{"dp", 1 + random() % 2}, {"tp", 1 + random() % 2}};
  const auto role_axis = static_cast<uint8_t>(random() % 3);
  mesh.insert(mesh.begin() + role_axis, {"pp", roles});
  RankPlan plan(mesh, role_axis);
  const uint32_t streams = 1 + random() % 4, events = 4;
  std::vector<std::string> names;
  for (uint32_t s = 0; s < streams; ++s) names.push_back(absl::StrCat("stream", s));
  plan.Streams(names);
  plan.Events(events);
  const uint32_t transfers[] = {plan.Communicator("pp.a", {role_axis}), plan.Communicator("pp.b", {role_axis})};
  const uint32_t world = plan.Communicator("world", {0, 1, 2});
  const uint32_t within = plan.Communicator("within", {static_cast<uint8_t>((role_axis + 1) % 3)});
  std::vector<uint16_t> stream_of;                              // by communicator
  const uint32_t lowest = streams > 1 && random() % 2 ? 1 : 0;  // or none on the stream that a CPU waits for
  for (int i = 0; i < 4; ++i) stream_of.push_back(static_cast<uint16_t>(lowest + random() % (streams - lowest)));

  // A common order, in which each role then swaps a few neighbours.
  RandomPlan result;
  result.order.resize(roles);
  const uint32_t operations = 2 + random() % 8;
  for (uint32_t i = 0; i < operations; ++i) {
    Operation operation{static_cast<Operation::Kind>(std::min<uint32_t>(random() % 6 / 2, 2)), 0, 0, 0, i};
    if (random() % 2) operation.kind = Operation::kTransfer;
    operation.from = random() % roles;
    operation.to = (operation.from + 1 + random() % (roles - 1)) % roles;
    operation.communicator = operation.kind == Operation::kTransfer ? transfers[random() % 2]
                             : operation.kind == Operation::kWorld  ? world
                                                                    : within;
    for (uint32_t role = 0; role < roles; ++role) {
      if (operation.Has(role)) result.order[role].push_back(operation);
    }
  }
  for (uint32_t swaps = random() % 4; swaps > 0; --swaps) {
    auto& order = result.order[random() % roles];
    if (order.size() < 2) continue;
    const size_t at = random() % (order.size() - 1);
    std::swap(order[at], order[at + 1]);
  }
  if (random() % 16 == 0) {
    auto& order = result.order[random() % roles];
    if (!order.empty()) order.pop_back();
  }
  for (uint32_t role = 0; role < roles; ++role) {
    const uint32_t x = plan.Buffer(role, "x", fbs::BufferKind::Input, 16);
    std::vector<bool> signalled(events);
    plan.Segment(role, "all");
    for (const Operation& operation : result.order[role]) {
      const uint32_t y = plan.Buffer(role, absl::StrCat("y", operation.number), fbs::BufferKind::Output, 16);
      const uint16_t stream = stream_of[operation.communicator];
      // Events between streams, as they come.
      const auto event = static_cast<uint32_t>(random() % events);
      if (random() % 3 == 0) {
        plan.Signal(role, static_cast<uint16_t>(random() % streams), event);
        signalled[event] = true;
      } else if (signalled[event] && random() % 2) {
        plan.Wait(role, static_cast<uint16_t>(random() % streams), event);
      }
      if (operation.kind != Operation::kTransfer) {
        plan.Collective(role, stream, fbs::CollectiveKind::AllReduce, operation.communicator, x, y, 16);
      } else if (operation.from == role) {
        plan.Send(role, stream, operation.communicator, operation.to, x);
        plan.Copy(role, stream, x, y);
      } else {
        plan.Receive(role, stream, operation.communicator, operation.from, y);
      }
      if (random() % 4 == 0) {  // the first stream uses the result
        plan.Signal(role, stream, event);
        plan.Wait(role, 0, event);
        signalled[event] = true;
      }
    }
    plan.Copy(role, 0, x, plan.Buffer(role, "end", fbs::BufferKind::Output, 16));
  }
  result.plan = plan.Finish();
  return result;
}

// The fewest steps of a circle in the order of issue: each from an operation to a later one of the same role.
size_t ShortestCircle(const RandomPlan& plan) {
  // As the runtime counts: by communicator and direction.
  using Key = std::tuple<uint32_t, int64_t, int64_t, uint32_t>;
  std::map<Key, uint32_t> ids;
  std::vector<std::vector<uint32_t>> by_role(plan.order.size());
  for (size_t role = 0; role < plan.order.size(); ++role) {
    std::map<std::tuple<uint32_t, int64_t, int64_t>, uint32_t> counts;
    for (const Operation& o : plan.order[role]) {
      if (o.kind == Operation::kWithinRole) continue;
      const int64_t from = o.kind == Operation::kWorld ? -1 : o.from, to = o.kind == Operation::kWorld ? -1 : o.to;
      const uint32_t number = counts[{o.communicator, from, to}]++;
      by_role[role].push_back(ids.emplace(Key{o.communicator, from, to, number}, ids.size()).first->second);
    }
  }
  size_t best = ~size_t{0};
  for (uint32_t start = 0; start < ids.size(); ++start) {
    std::vector<size_t> distance(ids.size(), ~size_t{0});
    std::vector<uint32_t> queue = {start};
    for (size_t q = 0; q < queue.size(); ++q) {
      const size_t steps = (q == 0 ? 0 : distance[queue[q]]) + 1;
      for (const auto& order : by_role) {
        const auto at = std::find(order.begin(), order.end(), queue[q]);
        for (auto later = at; later != order.end(); ++later) {
          if (later == at || distance[*later] != ~size_t{0}) continue;
          distance[*later] = steps;
          queue.push_back(*later);
        }
      }
    }
    best = std::min(best, distance[start]);
  }
  return best;
}

TEST(RankSymmetry, OneRankOfEachRoleSpeaksForAll) {
  const uint32_t seed = TestSeed();
  std::printf("seed %u\n", seed);
  Random random(seed);
  int sound = 0, unmatched = 0, other = 0;
  std::map<std::string, int> hangs;
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", round ", round));
    RandomPlan made = MakeRandomPlan(random);
    const auto bytes = testing::BytesOf(made.plan);
    const fbs::Plan& plan = testing::PlanIn(bytes);
    ASSERT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan);
    const absl::Status checked = PlanChecker(plan).check();
    ComputeMeaning(plan).status().IgnoreError();  // ends, also where nobody would ever compute it
    const bool async = testing::Simulate(plan, Issue::kAsynchronous, 0, random).hangs;
    const bool inline_first = testing::Simulate(plan, Issue::kInlineFirstStream, 0, random).hangs;
    const bool in_order = testing::Simulate(plan, Issue::kCommunicationInOrder, 0, random).hangs;
    if (checked.ok()) {
      ++sound;
      ASSERT_FALSE(async || inline_first || in_order);
      ASSERT_TRUE(CertifyPlan(made.plan).ok());
      const auto certified = testing::BytesOf(made.plan);
      ASSERT_TRUE(VerifyPlan(testing::PlanIn(certified)).ok()) << VerifyPlan(testing::PlanIn(certified));
      continue;
    }
    if (absl::StrContains(checked.message(), "the proof of matching")) {
      ++unmatched;
      ASSERT_TRUE(async) << checked;
      continue;
    }
    if (!absl::StrContains(checked.message(), "the proof of no deadlock")) {
      ++other;
      continue;
    }
    if (absl::StrContains(checked.message(), "on every machine")) {
      ++hangs["on every machine"];
      ASSERT_TRUE(async && inline_first && in_order) << checked;
    } else if (absl::StrContains(checked.message(), "as on CPUs")) {
      ++hangs["on CPUs"];
      ASSERT_TRUE(!async && inline_first && in_order) << checked;
    } else {
      ++hangs["in order of issue"];
      ASSERT_TRUE(!async && !inline_first && in_order) << checked;
      const std::string expected = absl::StrCat("fails: ", ShortestCircle(made), " ranks wait for each other");
      ASSERT_TRUE(absl::StrContains(checked.message(), expected)) << expected << "\n" << checked;
    }
  }
  std::printf("%d sound, %d unmatched, %d refused for another reason", sound, unmatched, other);
  for (const auto& [machine, count] : hangs) std::printf(", %d hang %s", count, machine.c_str());
  std::printf("\n");
  EXPECT_GT(sound, 100);
  EXPECT_GT(unmatched, 20);
  EXPECT_EQ(hangs.size(), 3u);
}

}  // namespace
}  // namespace bowline
