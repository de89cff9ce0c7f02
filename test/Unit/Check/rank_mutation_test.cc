// Random damage to certified plans of several ranks and streams: each mutant is refused, or gives bit for bit the
// values of the good plan in every order that a machine may take, without anyone waiting for ever.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Check/rank_runs.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using testing::Issue;
using Random = std::mt19937;
using Commands = std::vector<std::unique_ptr<fbs::CommandT>>;

template <typename T>
auto& Any(std::vector<T>& items, Random& random) {
  return items[random() % items.size()];
}

Commands& AnyCommands(fbs::PlanT& plan, Random& random) {
  while (true) {
    Commands& commands = Any(Any(plan.programs, random)->segments, random)->commands;
    if (!commands.empty()) return commands;
  }
}

// A command of any segment for which `get` gives something.
template <typename F>
auto AnyBody(fbs::PlanT& plan, Random& random, F get) {
  while (true) {
    if (auto* body = get(*Any(AnyCommands(plan, random), random))) return body;
  }
}

uint32_t* EventOf(fbs::CommandT& command) {
  if (auto* signal = command.body.AsSignal()) return &signal->event;
  if (auto* wait = command.body.AsWait()) return &wait->event;
  return nullptr;
}

uint32_t* SlotsOf(fbs::CommandT& command) {
  if (auto* signal = command.body.AsSignal()) return &signal->slots;
  if (auto* wait = command.body.AsWait()) return &wait->slots;
  return nullptr;
}

uint32_t* CommunicatorIn(fbs::CommandT& command) {
  if (auto* collective = command.body.AsCollective()) return &collective->communicator;
  if (auto* send = command.body.AsSend()) return &send->communicator;
  if (auto* receive = command.body.AsReceive()) return &receive->communicator;
  return nullptr;
}

bool HasOperands(const fbs::CommandT& command) {
  return command.body.type != fbs::CommandBody::Signal && command.body.type != fbs::CommandBody::Wait;
}

// Structs of the format are rebuilt: they cannot be written to.
void ChangeOperand(fbs::CommandT& command, Random& random, const std::function<void(uint32_t&, uint64_t&)>& change) {
  const auto changed = [&](const fbs::Operand& operand) {
    uint32_t buffer = operand.buffer();
    uint64_t offset = operand.offset();
    change(buffer, offset);
    return fbs::Operand(buffer, offset);
  };
  if (auto* launch = command.body.AsLaunch()) {
    fbs::Operand& operand = Any(launch->operands, random);
    operand = changed(operand);
  } else if (auto* send = command.body.AsSend()) {
    send->ranges[0] = fbs::Range(changed(send->ranges[0].operand()), send->ranges[0].count());
  } else if (auto* receive = command.body.AsReceive()) {
    receive->ranges[0] = fbs::Range(changed(receive->ranges[0].operand()), receive->ranges[0].count());
  } else if (auto* collective = command.body.AsCollective()) {
    const fbs::Piece& piece = collective->pieces[0];
    collective->pieces[0] = random() % 2 ? fbs::Piece(changed(piece.source()), piece.destination(), piece.count())
                                         : fbs::Piece(piece.source(), changed(piece.destination()), piece.count());
  }
}

void ChangeCount(fbs::CommandT& command, uint64_t count) {
  if (auto* send = command.body.AsSend()) send->ranges[0] = fbs::Range(send->ranges[0].operand(), count);
  if (auto* receive = command.body.AsReceive()) receive->ranges[0] = fbs::Range(receive->ranges[0].operand(), count);
  if (auto* collective = command.body.AsCollective()) {
    const fbs::Piece& piece = collective->pieces[0];
    collective->pieces[0] = fbs::Piece(piece.source(), piece.destination(), count);
  }
}

struct Mutation {
  const char* name;
  std::function<void(fbs::PlanT&, Random&)> apply;
};

const std::vector<Mutation>& Mutations() {
  static const std::vector<Mutation> mutations = {
      {"swap commands",
       [](fbs::PlanT& p, Random& r) {
         Commands& commands = AnyCommands(p, r);
         std::swap(Any(commands, r), Any(commands, r));
       }},
      {"drop a command",
       [](fbs::PlanT& p, Random& r) {
         Commands& commands = AnyCommands(p, r);
         commands.erase(commands.begin() + static_cast<int64_t>(r() % commands.size()));
       }},
      {"move a command",
       [](fbs::PlanT& p, Random& r) {
         Commands& commands = AnyCommands(p, r);
         const auto from = static_cast<int64_t>(r() % commands.size()),
                    to = static_cast<int64_t>(r() % commands.size());
         auto command = std::move(commands[static_cast<size_t>(from)]);
         commands.erase(commands.begin() + from);
         commands.insert(commands.begin() + to, std::move(command));
       }},
      {"repeat a command",
       [](fbs::PlanT& p, Random& r) {
         Commands& commands = AnyCommands(p, r);
         const auto at = static_cast<int64_t>(r() % commands.size());
         auto copy = std::make_unique<fbs::CommandT>(*commands[static_cast<size_t>(at)]);
         commands.insert(commands.begin() + at, std::move(copy));
       }},
      {"retag a stream",
       [](fbs::PlanT& p, Random& r) {
         const auto streams = static_cast<uint32_t>(p.programs[0]->streams.size());
         Any(AnyCommands(p, r), r)->stream = static_cast<uint16_t>(r() % streams);
       }},
      {"retag a communicator",
       [](fbs::PlanT& p, Random& r) {
         *AnyBody(p, r, CommunicatorIn) = static_cast<uint32_t>(r() % p.communicators.size());
       }},
      {"retag a peer, or max",
       [](fbs::PlanT& p, Random& r) {
         if (p.roles.empty()) {  // no transfers: another reduction instead
           auto* collective = AnyBody(p, r, [](fbs::CommandT& c) { return c.body.AsCollective(); });
           collective->reduction = fbs::Reduction::Max;
           return;
         }
         *AnyBody(p, r, [](fbs::CommandT& c) -> uint32_t* {
           if (auto* send = c.body.AsSend()) return &send->peer;
           if (auto* receive = c.body.AsReceive()) return &receive->peer;
           return nullptr;
         }) = static_cast<uint32_t>(r() % p.roles.size());
       }},
      {"move an event",
       [](fbs::PlanT& p, Random& r) { *AnyBody(p, r, EventOf) = static_cast<uint32_t>(r() % p.programs[0]->events); }},
      {"change event slots",
       [](fbs::PlanT& p, Random& r) { *AnyBody(p, r, SlotsOf) = 1 + static_cast<uint32_t>(r() % 3); }},
      {"resize a count",
       [](fbs::PlanT& p, Random& r) {
         ChangeCount(*AnyBody(p, r, [](fbs::CommandT& c) { return CommunicatorIn(c) ? &c : nullptr; }), 1 + r() % 20);
       }},
      {"shift an operand",
       [](fbs::PlanT& p, Random& r) {
         ChangeOperand(*AnyBody(p, r, [](fbs::CommandT& c) { return HasOperands(c) ? &c : nullptr; }), r,
                       [&](uint32_t&, uint64_t& offset) { offset += 4 * (r() % 4); });
       }},
      {"retarget an operand",
       [](fbs::PlanT& p, Random& r) {
         ChangeOperand(*AnyBody(p, r, [](fbs::CommandT& c) { return HasOperands(c) ? &c : nullptr; }), r,
                       [&](uint32_t& buffer, uint64_t&) { buffer = static_cast<uint32_t>(r() % p.buffers.size()); });
       }},
      {"shift a buffer",
       [](fbs::PlanT& p, Random& r) { Any(p.buffers, r)->offset += (static_cast<int64_t>(r() % 9) - 4) * 64; }},
      {"swap calls",
       [](fbs::PlanT& p, Random& r) {
         auto& timeline = Any(p.programs, r)->timeline;
         std::swap(Any(timeline, r), Any(timeline, r));
       }},
      {"drop a call",
       [](fbs::PlanT& p, Random& r) {
         auto& timeline = Any(p.programs, r)->timeline;
         timeline.erase(timeline.begin() + static_cast<int64_t>(r() % timeline.size()));
       }},
  };
  return mutations;
}

struct Tally {
  int same_plan = 0;  // the mutation changed nothing
  int verifier = 0;   // refused as malformed
  // Refused by the checker.
  int harmful = 0;  // some order hangs, or gives something else than the commands mean
  int unseen = 0;   // no order that was tried shows why
  // Sound, but refused by the certificate: operations come in another order; something else is computed.
  int order = 0;
  int meaning = 0;
  int refused_other = 0;  // of these two: gives something else, activations of another microbatch, say
  // Accepted.
  int same = 0;   // gives what the good plan gives
  int other = 0;  // gives something else: must not be
};

// The plan without its certificates, so that the checker alone decides on it.
std::vector<uint8_t> WithoutCertificates(const std::vector<uint8_t>& bytes) {
  fbs::PlanT plan;
  testing::PlanIn(bytes).UnPackTo(&plan);
  plan.certificates.clear();
  return testing::BytesOf(plan);
}

// The same commands with every buffer in bytes of its own: the plan's meaning, whatever its packing.
std::vector<uint8_t> Unpack(const std::vector<uint8_t>& bytes) {
  fbs::PlanT plan;
  testing::PlanIn(bytes).UnPackTo(&plan);
  std::vector<uint64_t> end(std::max<size_t>(plan.roles.size(), 1));
  for (auto& buffer : plan.buffers) {
    uint64_t& at = end[buffer->role];
    buffer->offset = (at + 63) / 64 * 64;
    at = buffer->offset + (buffer->slots - 1) * buffer->slot_stride + buffer->bytes;
  }
  for (size_t role = 0; role < plan.roles.size(); ++role) plan.roles[role]->arena_bytes = end[role];
  plan.arena_bytes = *std::max_element(end.begin(), end.end());
  return testing::BytesOf(plan);
}

constexpr Issue kMachines[] = {Issue::kAsynchronous, Issue::kInlineFirstStream, Issue::kCommunicationInOrder};

class RankMutation {
 public:
  // `good` is certified.
  RankMutation(fbs::PlanT good, uint32_t seed) : random_(seed), bytes_(testing::BytesOf(good)) {
    EXPECT_TRUE(VerifyPlan(testing::PlanIn(bytes_)).ok()) << VerifyPlan(testing::PlanIn(bytes_));
    EXPECT_TRUE(RequireCertificates(testing::PlanIn(bytes_)).ok());
    expected_ = testing::Simulate(testing::PlanIn(bytes_), Issue::kAsynchronous, 0, random_).outputs;
  }

  // Returns how many mutants it tried: 0 if the mutation changed nothing.
  int Round() {
    fbs::PlanT mutant;
    testing::PlanIn(bytes_).UnPackTo(&mutant);
    const Mutation& mutation = Any(const_cast<std::vector<Mutation>&>(Mutations()), random_);
    mutation.apply(mutant, random_);
    Tally& tally = tallies[mutation.name];
    const std::vector<uint8_t> bytes = testing::BytesOf(mutant);
    if (bytes == bytes_) {
      ++tally.same_plan;
      return 0;
    }
    const absl::Status loads = VerifyPlan(testing::PlanIn(bytes));
    EXPECT_TRUE(loads.ok() || loads.code() == absl::StatusCode::kInvalidArgument) << loads;
    const std::vector<uint8_t> bare = WithoutCertificates(bytes);
    if (!VerifyPlan(testing::PlanIn(bare)).ok()) {
      EXPECT_FALSE(loads.ok());
      ++tally.verifier;
      return 1;
    }
    // The checker is asked whatever the certificate says.
    const absl::Status checked = PlanChecker(testing::PlanIn(bare)).check();
    if (!checked.ok()) {
      EXPECT_EQ(checked.code(), absl::StatusCode::kAborted) << checked;
      ++(ShowsWhy(bare, checked) ? tally.harmful : tally.unseen);
      return 1;
    }
    const bool same = IsSound(bare, mutation.name);
    if (loads.ok()) {
      EXPECT_TRUE(same) << mutation.name << " was accepted, but gives something else than the good plan";
      ++(same ? tally.same : tally.other);
      return 1;
    }
    ++(absl::StrContains(loads.message(), "computes something else") ? tally.meaning : tally.order);
    tally.refused_other += !same;
    return 1;
  }

  std::map<std::string, Tally> tallies;
  int thread_runs = 0;

 private:
  // Whether some order that a machine may take hangs, brings operations together that do not match, or gives other
  // values than the commands mean.
  bool ShowsWhy(const std::vector<uint8_t>& bytes, const absl::Status& checked) {
    const fbs::Plan& plan = testing::PlanIn(bytes);
    const std::vector<uint8_t> unpacked = Unpack(bytes);
    const auto meaning = testing::Simulate(testing::PlanIn(unpacked), Issue::kCommunicationInOrder, 0, random_);
    bool harmful = false, hangs = false;
    for (const Issue machine : kMachines) {
      const auto outcome = testing::Simulate(plan, machine, 0x3f, random_);
      hangs |= outcome.hangs || outcome.mismatch;
      harmful |= outcome.outputs != meaning.outputs;
    }
    // These verdicts are exact: nothing is refused for a deadlock that no machine has.
    if (absl::StrContains(checked.message(), "the proof of no deadlock") ||
        absl::StrContains(checked.message(), "the proof of matching")) {
      EXPECT_TRUE(hangs) << checked;
    }
    return harmful || hangs;
  }

  // A plan that the checker accepts computes the values that its commands mean, under adversarial delays too. Returns
  // whether they equal the values of the good plan.
  bool IsSound(const std::vector<uint8_t>& bytes, const char* name) {
    const fbs::Plan& plan = testing::PlanIn(bytes);
    const std::vector<uint8_t> unpacked = Unpack(bytes);
    const auto meaning = testing::Simulate(testing::PlanIn(unpacked), Issue::kCommunicationInOrder, 0, random_);
    EXPECT_FALSE(meaning.hangs || meaning.mismatch) << name;
    for (const Issue machine : kMachines) {
      const auto outcome = testing::Simulate(plan, machine, 0x3f, random_);
      EXPECT_FALSE(outcome.hangs || outcome.mismatch) << name << " was found sound, but hangs";
      EXPECT_EQ(outcome.outputs, meaning.outputs) << name << " was found sound, but depends on the order of streams";
    }
    ++thread_runs;
    const auto threads = testing::RunOnThreads(bytes, static_cast<uint8_t>(0x41), static_cast<uint32_t>(random_()),
                                               std::chrono::seconds(60));
    EXPECT_TRUE(threads.status.ok()) << name << " was found sound, but fails: " << threads.status;
    EXPECT_EQ(threads.outputs, meaning.outputs) << name << " was found sound, but gives something else on threads";
    return meaning.outputs == expected_;
  }

  Random random_;
  const std::vector<uint8_t> bytes_;
  std::vector<std::vector<uint8_t>> expected_;
};

TEST(RankMutation, EachMutantIsRefusedOrHarmless) {
  const uint32_t seed = TestSeed();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::unique_ptr<RankMutation>> plans;
  const auto add = [&](fbs::PlanT plan) {
    const absl::Status certified = CertifyPlan(plan);
    ASSERT_TRUE(certified.ok()) << certified;
    plans.push_back(std::make_unique<RankMutation>(std::move(plan), seed + plans.size()));
  };
  for (const uint16_t first_stream : {uint16_t{0}, uint16_t{1}}) {
    add(testing::MakePipeline(3, 1, 5, first_stream));
    add(testing::MakePipeline(2, 2, 3, first_stream));
    add(testing::MakeShardedLoop(2, 2, 4, first_stream));
  }
  ASSERT_FALSE(HasFailure());
  constexpr int kMutants = 2000;
  int mutants = 0;
  for (size_t round = 0; mutants < kMutants && !HasFailure(); ++round) mutants += plans[round % plans.size()]->Round();

  std::map<std::string, Tally> tallies;
  Tally all;
  int thread_runs = 0;
  for (const auto& plan : plans) {
    thread_runs += plan->thread_runs;
    for (const auto& [name, tally] : plan->tallies) {
      for (Tally* sum : {&tallies[name], &all}) {
        sum->same_plan += tally.same_plan;
        sum->verifier += tally.verifier;
        sum->harmful += tally.harmful;
        sum->unseen += tally.unseen;
        sum->order += tally.order;
        sum->meaning += tally.meaning;
        sum->refused_other += tally.refused_other;
        sum->same += tally.same;
        sum->other += tally.other;
      }
    }
  }
  tallies["all"] = all;
  std::printf("%-22s|%20s|%16s|%31s|%15s\n", "", "", "refused: checker", "sound, refused: certificate", "accepted");
  std::printf("%-22s|%10s%10s|%8s%8s|%8s%9s%14s|%8s%7s\n", "mutation", "unchanged", "malformed", "harmful", "unseen",
              "order", "meaning", "(these other)", "same", "other");
  for (const auto& [name, t] : tallies) {
    std::printf("%-22s|%10d%10d|%8d%8d|%8d%9d%14d|%8d%7d\n", name.c_str(), t.same_plan, t.verifier, t.harmful, t.unseen,
                t.order, t.meaning, t.refused_other, t.same, t.other);
  }
  std::printf("%d mutants; the %d that are sound ran on threads\n", mutants, thread_runs);
  EXPECT_GT(all.harmful, 300) << "the mutations test nothing";
  EXPECT_GT(all.refused_other, 20) << "no mutation soundly computes something else";
  EXPECT_GT(all.same, 100) << "everything is refused";
  EXPECT_EQ(all.other, 0);
}

}  // namespace
}  // namespace bowline
