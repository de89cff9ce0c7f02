// Which changes to a plan change the values that it computes, and which do not.

#include "runtime/plan/meaning/plan_meaning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::CollectiveKind;
using testing::BytesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::LaunchAt;
using testing::MakePipeline;
using testing::MakePlan;
using testing::PlanIn;
using testing::RankPlan;

using Change = std::function<void(fbs::PlanT&)>;

// "step, role 1: output 'gradient'", for each result whose digest differs, or that one plan alone has.
std::vector<std::string> Differences(fbs::PlanT before, fbs::PlanT after) {
  const auto digests = [](fbs::PlanT& plan) {
    const auto bytes = BytesOf(plan);
    const absl::Status valid = VerifyPlan(PlanIn(bytes));
    EXPECT_TRUE(valid.ok()) << valid;
    const auto meaning = ComputeMeaning(PlanIn(bytes));
    EXPECT_TRUE(meaning.ok()) << meaning.status();
    std::map<std::string, Digest> result;
    for (const EntryMeaning& entry : meaning->entries) {
      for (size_t role = 0; role < entry.roles.size(); ++role) {
        for (const ValueMeaning& value : entry.roles[role].values) {
          result[entry.entry + ", role " + std::to_string(role) + ": " + value.what] = value.digest;
        }
      }
    }
    return result;
  };
  const auto a = digests(before), b = digests(after);
  std::vector<std::string> differ;
  for (const auto& [what, digest] : a) {
    const auto other = b.find(what);
    if (other == b.end() || other->second != digest) differ.push_back(what);
  }
  for (const auto& [what, digest] : b) {
    if (a.count(what) == 0) differ.push_back(what);
  }
  return differ;
}

std::vector<std::string> DifferencesFrom(const std::function<fbs::PlanT()>& make, const Change& change) {
  fbs::PlanT changed = make();
  change(changed);
  return Differences(make(), std::move(changed));
}

fbs::PlanT Fixture() { return MakePlan(); }

// Places of every buffer, as far apart as the alignment asks for, in the opposite order.
void Repack(fbs::PlanT& plan) {
  std::vector<uint64_t> end(std::max<size_t>(plan.roles.size(), 1));
  for (auto buffer = plan.buffers.rbegin(); buffer != plan.buffers.rend(); ++buffer) {
    uint64_t& at = end[(*buffer)->role];
    (*buffer)->offset = (at + 63) / 64 * 64;
    if ((*buffer)->slots > 1) (*buffer)->slot_stride += 64;
    at = (*buffer)->offset + ((*buffer)->slots - 1) * (*buffer)->slot_stride + (*buffer)->bytes;
  }
  for (size_t role = 0; role < plan.roles.size(); ++role) plan.roles[role]->arena_bytes = end[role];
  plan.arena_bytes = *std::max_element(end.begin(), end.end());
}

TEST(PlanMeaning, NamesWhatAnEntryLeavesBehind) {
  fbs::PlanT plan = Fixture();
  const auto bytes = BytesOf(plan);
  const auto meaning = ComputeMeaning(PlanIn(bytes));
  ASSERT_TRUE(meaning.ok()) << meaning.status();
  const auto names = [&](size_t entry) {
    std::vector<std::string> result;
    for (const ValueMeaning& value : meaning->entries[entry].roles[0].values) result.push_back(value.what);
    return result;
  };
  ASSERT_EQ(meaning->entries.size(), 2u);
  EXPECT_EQ(meaning->entries[1].entry, "step");
  EXPECT_THAT(names(0), ElementsAre("interface", "state 'steps'", "state 'model.embed.weight'"));
  EXPECT_THAT(names(1), ElementsAre("interface", "output 'result'", "output 'steps'", "state 'steps'"));
}

// Certificates of plans on disk hold these numbers: whoever changes them makes all of those plans be refused.
TEST(PlanMeaning, IsTheSameEverywhere) {
  fbs::PlanT plan = Fixture();
  const auto bytes = BytesOf(plan);
  const auto meaning = ComputeMeaning(PlanIn(bytes));
  ASSERT_TRUE(meaning.ok());
  const Digest digest = meaning->entries[1].roles[0].values[1].digest;
  EXPECT_EQ(digest, (Digest{0xa5947e7798615583, 0x7509e6fd0e63cabe})) << std::hex << digest.low << " " << digest.high;
}

TEST(PlanMeaning, DoesNotDependOnMemory) {
  EXPECT_THAT(DifferencesFrom(Fixture, Repack), ElementsAre());
  EXPECT_THAT(DifferencesFrom([] { return MakePipeline(3, 2, 5); }, Repack), ElementsAre());
  EXPECT_THAT(DifferencesFrom([] { return testing::MakeShardedLoop(2, 2, 4); }, Repack), ElementsAre());
}

TEST(PlanMeaning, DoesNotDependOnNamesOfPartsAndTheirNumbers) {
  EXPECT_THAT(DifferencesFrom(Fixture,
                              [](fbs::PlanT& p) {
                                for (auto& buffer : p.buffers) buffer->name += ".renamed";
                                for (auto& program : p.programs) {
                                  for (auto& segment : program->segments) segment->name += ".renamed";
                                }
                                p.compiler = "another";
                                p.sources[0]->location = "elsewhere";
                                std::swap(p.kernels[testing::kZeroSteps], p.kernels[testing::kAdd]);
                                for (auto& program : p.programs) {
                                  for (auto& segment : program->segments) {
                                    for (auto& command : segment->commands) {
                                      fbs::LaunchT* launch = command->body.AsLaunch();
                                      if (launch == nullptr) continue;
                                      if (launch->kernel == testing::kZeroSteps) {
                                        launch->kernel = testing::kAdd;
                                      } else if (launch->kernel == testing::kAdd) {
                                        launch->kernel = testing::kZeroSteps;
                                      }
                                    }
                                  }
                                }
                                p.kernels[testing::kMatmul]->flops = 3;
                                std::swap(p.kernels[testing::kRandom]->attributes[0],
                                          p.kernels[testing::kRandom]->attributes[1]);
                              }),
              ElementsAre());
}

TEST(PlanMeaning, DependsOnTheSizeOfWorkspace) {
  EXPECT_THAT(DifferencesFrom(Fixture,
                              [](fbs::PlanT& p) {
                                p.kernels[testing::kMatmul]->arguments[3]->shape = {1024};
                                p.buffers[testing::kWorkspace]->shape = {1024};
                                p.buffers[testing::kWorkspace]->bytes = 1024;
                              }),
              ElementsAre("step, role 0: output 'result'"));
}

TEST(PlanMeaning, DoesNotDependOnTheOrderOfWhatIsIndependent) {
  EXPECT_THAT(DifferencesFrom(Fixture,
                              [](fbs::PlanT& p) {
                                auto& finish = p.programs[1]->segments[2]->commands;
                                std::swap(finish[0], finish[1]);
                              }),
              ElementsAre());
  // Unrolled: the loop's segment once for each slot.
  EXPECT_THAT(DifferencesFrom(Fixture,
                              [](fbs::PlanT& p) {
                                fbs::ProgramT& step = *p.programs[1];
                                step.segments.push_back(std::make_unique<fbs::SegmentT>(*step.segments[1]));
                                step.timeline[2] = fbs::SegmentCall(3, 1);
                              }),
              ElementsAre());
}

TEST(PlanMeaning, DependsOnWhatIsComputed) {
  const char* kResult = "step, role 0: output 'result'";
  const auto differences = [](const Change& change) { return DifferencesFrom(Fixture, change); };
  const auto operands = [](fbs::PlanT& p, size_t segment, size_t command) -> std::vector<fbs::Operand>& {
    return LaunchAt(p, 1, segment, command).operands;
  };
  // Operands in another order, though a sum has the same bits.
  EXPECT_THAT(differences([&](fbs::PlanT& p) { std::swap(operands(p, 1, 3)[0], operands(p, 1, 3)[1]); }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([&](fbs::PlanT& p) { operands(p, 1, 2)[0] = fbs::Operand(testing::kSum, 0); }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) {
                p.programs[1]->segments[1]->commands.erase(p.programs[1]->segments[1]->commands.begin() + 2);
              }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.programs[1]->timeline[2] = fbs::SegmentCall(1, 0); }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.programs[1]->timeline.erase(p.programs[1]->timeline.begin()); }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.constants[0]->data[5] ^= 1; }), ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.kernels[testing::kZeroSum]->attributes[0]->floats = {-0.0}; }),
              ElementsAre(kResult));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.kernels[testing::kRandom]->attributes[1]->ints = {2}; }),
              ElementsAre("init, role 0: state 'model.embed.weight'"));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.programs[1]->segments[2]->commands.pop_back(); }),
              ElementsAre("step, role 0: output 'steps'", "step, role 0: state 'steps'"));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.images[0]->codes[0]->data.back() ^= 1; }).size(), 4u);
  EXPECT_THAT(differences([](fbs::PlanT& p) { std::swap(p.states[0]->key, p.states[1]->key); }).size(), 8u);
}

TEST(PlanMeaning, DependsOnHowCodeIsLaunched) {
  // Which kernel has a pair of operands that may share bytes is part of the interface.
  const auto changes = ElementsAre("step, role 0: interface", "step, role 0: output 'result'");
  const auto with = [](const std::function<void(fbs::GridT&)>& change) {
    fbs::PlanT plan = Fixture();
    fbs::KernelT& add = *plan.kernels[testing::kAdd];
    fbs::GridT grid;
    grid.blocks = {3};
    grid.threads = {32};
    grid.shared_bytes = 64;
    grid.constants = {5};
    change(grid);
    add.geometry.Set(std::move(grid));
    return plan;
  };
  const fbs::PlanT same = with([](fbs::GridT&) {});
  EXPECT_THAT(Differences(same, same), ElementsAre());
  EXPECT_THAT(Differences(Fixture(), same), changes);
  EXPECT_THAT(DifferencesFrom(Fixture, [](fbs::PlanT& p) { testing::SetExtent(*p.kernels[testing::kAdd], 1); }),
              changes);
  for (const auto& change : std::initializer_list<std::function<void(fbs::GridT&)>>{
           [](fbs::GridT& grid) { grid.blocks = {4}; }, [](fbs::GridT& grid) { grid.blocks = {1, 3}; },
           [](fbs::GridT& grid) { grid.threads = {64}; }, [](fbs::GridT& grid) { grid.shared_bytes = 0; },
           [](fbs::GridT& grid) { grid.constants = {6}; }, [](fbs::GridT& grid) { grid.constants = {}; },
           [](fbs::GridT& grid) { std::swap(grid.blocks, grid.threads); }}) {
    EXPECT_THAT(Differences(same, with(change)), changes);
  }
}

TEST(PlanMeaning, DependsOnWhatIsTakenForGranted) {
  const auto differences = [](const Change& change) { return DifferencesFrom(Fixture, change); };
  const std::vector<std::string> both = {"init, role 0: interface", "step, role 0: interface"};
  EXPECT_EQ(differences([](fbs::PlanT& p) { p.seed = 8; }), both);
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.states[0]->flags &= ~fbs::StateFlag::Trained; }), IsSupersetOf(both));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.entries[1]->kind = fbs::EntryKind::EvalStep; }),
              ElementsAre("step, role 0: interface"));
  const auto serving = [](uint32_t bucket) {
    fbs::PlanT plan = Fixture();
    plan.entries[1]->kind = fbs::EntryKind::Step;
    plan.entries[1]->bucket = bucket;
    return plan;
  };
  EXPECT_THAT(Differences(serving(8), serving(9)), ElementsAre("step, role 0: interface"));
  EXPECT_EQ(differences([](fbs::PlanT& p) { p.mesh[0]->name = "tp"; }), both);
  EXPECT_EQ(differences([](fbs::PlanT& p) { p.target->threads = 3; }), both);
  EXPECT_EQ(differences([](fbs::PlanT& p) { p.target->cpu = "x86-64-v2"; }), both);
  EXPECT_EQ(differences([](fbs::PlanT& p) {
              p.attachments.push_back(std::make_unique<fbs::AttachmentT>());
              p.attachments.back()->name = "note";
            }),
            both);
  EXPECT_EQ(differences([](fbs::PlanT& p) {
              p.buffers[testing::kTable]->layout = std::make_unique<fbs::LayoutT>();
              p.buffers[testing::kTable]->layout->global_shape = p.buffers[testing::kTable]->shape;
            }),
            both);
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.entries[1]->inputs[0]->limit = 0; }),
              ElementsAre("step, role 0: interface"));
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.kernels[testing::kIncrement]->in_place.clear(); }), ElementsAre());
  EXPECT_THAT(differences([](fbs::PlanT& p) { p.kernels[testing::kAdd]->in_place.emplace_back(2, 0); }),
              ElementsAre("step, role 0: interface"));
}

// A value written over an input of the same command is no value, and not that of the good plan.
TEST(PlanMeaning, DependsOnOverlaps) {
  EXPECT_THAT(DifferencesFrom(Fixture, [](fbs::PlanT& p) { p.kernels[testing::kAdd]->in_place.clear(); }),
              ElementsAre("step, role 0: interface", "step, role 0: output 'result'"));
  // Workspace over an operand; a product over its factor.
  for (const uint32_t moved : {testing::kWorkspace, testing::kProduct}) {
    EXPECT_THAT(
        DifferencesFrom(Fixture, [&](fbs::PlanT& p) { p.buffers[moved]->offset = p.buffers[testing::kRows]->offset; }),
        ElementsAre("step, role 0: output 'result'"));
  }
  // A constant that is written over by another entry.
  EXPECT_THAT(
      DifferencesFrom(Fixture,
                      [](fbs::PlanT& p) { p.buffers[testing::kSum]->offset = p.buffers[testing::kWeight]->offset; }),
      ElementsAre("step, role 0: output 'result'", "step, role 0: buffer 'weight'"));
}

// Two sums over tp as one operation, as two, and as three of which one is a part of a value.
fbs::PlanT MakeSums(int commands, CollectiveKind kind = CollectiveKind::AllReduce) {
  RankPlan plan({{"dp", 2}, {"tp", 2}}, -1);
  plan.Streams({"compute"});
  const uint32_t tp = plan.Communicator("tp", {1}), again = plan.Communicator("tp.again", {1});
  const uint32_t a = plan.Buffer(0, "a", BufferKind::Input, 64), b = plan.Buffer(0, "b", BufferKind::Input, 64);
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Output, 64), y = plan.Buffer(0, "y", BufferKind::Output, 64);
  const uint64_t count = kind == CollectiveKind::AllReduce ? 64 : 32;
  plan.Collective(0, 0, kind, tp, a, x, count);
  if (commands > 1) plan.Collective(0, 0, kind, again, b, y, count);
  fbs::PlanT result = plan.Finish();
  auto& stored = result.programs[0]->segments[0]->commands;
  const auto piece = [&](uint32_t from, uint32_t to, uint64_t offset, uint64_t elements) {
    return fbs::Piece(fbs::Operand(from, offset), fbs::Operand(to, offset), elements);
  };
  if (commands == 1) stored[0]->body.AsCollective()->pieces.push_back(piece(b, y, 0, count));
  if (commands == 3) {
    stored.push_back(std::make_unique<fbs::CommandT>(*stored[1]));
    stored[1]->body.AsCollective()->pieces = {piece(b, y, 0, 24)};
    stored[2]->body.AsCollective()->pieces = {piece(b, y, 96, 40)};
  }
  return result;
}

TEST(PlanMeaning, DoesNotDependOnBuckets) {
  EXPECT_THAT(Differences(MakeSums(1), MakeSums(2)), ElementsAre());
  EXPECT_THAT(Differences(MakeSums(1), MakeSums(3)), ElementsAre());
  EXPECT_THAT(Differences(MakeSums(1, CollectiveKind::AllToAll), MakeSums(2, CollectiveKind::AllToAll)), ElementsAre());
  const auto changed = [](const std::function<void(fbs::CollectiveT&)>& change) {
    return DifferencesFrom(
        [] { return MakeSums(2); },
        [&](fbs::PlanT& p) { change(*p.programs[0]->segments[0]->commands[1]->body.AsCollective()); });
  };
  const char* kY = "step, role 0: output 'y'";
  EXPECT_THAT(changed([](fbs::CollectiveT& c) { c.communicator = 0; }), ElementsAre());  // the same ranks
  EXPECT_THAT(changed([](fbs::CollectiveT& c) { c.reduction = fbs::Reduction::Max; }), ElementsAre(kY));
  EXPECT_THAT(
      changed([](fbs::CollectiveT& c) { c.pieces = {fbs::Piece(fbs::Operand(0, 0), c.pieces[0].destination(), 64)}; }),
      ElementsAre(kY));
  EXPECT_THAT(DifferencesFrom([] { return MakeSums(2); }, [](fbs::PlanT& p) { p.communicators[1]->axes = {0}; }),
              ElementsAre(kY));
}

// A buffer that is copied in pieces of several values equals one that is copied whole, and depends on each piece.
TEST(PlanMeaning, FollowsPartsOfValues) {
  const auto make = [](int copies) {
    RankPlan plan({{"dp", 1}}, -1);
    plan.Streams({"compute"});
    const uint32_t a = plan.Buffer(0, "a", BufferKind::Input, 32), b = plan.Buffer(0, "b", BufferKind::Input, 32);
    const uint32_t joined = plan.Buffer(0, "joined", BufferKind::Temporary, 64);
    const uint32_t through = plan.Buffer(0, "through", BufferKind::Temporary, 64);
    const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 64);
    const uint32_t whole = plan.Buffer(0, "whole", BufferKind::Output, 32);
    plan.Copy(0, 0, a, joined);
    plan.Copy(0, 0, b, joined);
    plan.Add(0, 0, joined, joined, y);
    plan.Copy(0, 0, a, whole);
    fbs::PlanT result = plan.Finish();
    auto& commands = result.programs[0]->segments[0]->commands;
    const auto copy = [&](size_t at, uint32_t from, uint64_t source, uint32_t to, uint64_t destination,
                          uint64_t bytes) {
      fbs::CopyT body;
      body.source = std::make_unique<fbs::Operand>(from, source);
      body.destination = std::make_unique<fbs::Operand>(to, destination);
      body.bytes = bytes;
      auto command = std::make_unique<fbs::CommandT>();
      command->body.Set(std::move(body));
      commands.insert(commands.begin() + static_cast<int64_t>(at), std::move(command));
    };
    commands.erase(commands.begin(), commands.begin() + 2);
    if (copies == 2) {
      copy(0, a, 0, joined, 0, 128);
      copy(0, b, 0, joined, 128, 128);
    } else {  // through another buffer, in other parts
      copy(0, a, 0, through, 128, 128);
      copy(0, b, 0, through, 0, 128);
      copy(2, through, 128, joined, 0, 36);
      copy(2, through, 164, joined, 36, 92);
      copy(2, through, 0, joined, 128, 128);
    }
    if (copies == 4) std::swap(commands[0], commands[1]);
    if (copies == 5) commands[2]->body.AsCopy()->source = std::make_unique<fbs::Operand>(through, 4);
    return result;
  };
  EXPECT_THAT(Differences(make(2), make(3)), ElementsAre());
  EXPECT_THAT(Differences(make(2), make(4)), ElementsAre());
  EXPECT_THAT(Differences(make(2), make(5)), ElementsAre("step, role 0: output 'y'"));
}

TEST(PlanMeaning, FollowsValuesFromRoleToRole) {
  const auto make = [] { return MakePipeline(3, 2, 4); };
  // Slots of the timeline of the first stage.
  const auto differences = DifferencesFrom(make, [](fbs::PlanT& p) {
    auto& timeline = p.programs[0]->timeline;
    const auto second =
        std::find_if(timeline.begin(), timeline.end(), [](const auto& call) { return call.slot() == 1; });
    *second = fbs::SegmentCall(second->segment(), 2);
  });
  // Later stages see the change in activations from earlier ones; no gradient of the first stage depends on it.
  EXPECT_THAT(differences, ElementsAre("step, role 1: output 'gradient'", "step, role 2: output 'gradient'"));
  // Two sends of equal sizes in the other order: the receiver has activations of another microbatch.
  const auto transfers = [](bool swapped) {
    RankPlan plan({{"pp", 2}}, 0);
    plan.Streams({"compute"});
    const uint32_t pp = plan.Communicator("pp", {0});
    const uint32_t a = plan.Buffer(0, "a", BufferKind::Input, 16), b = plan.Buffer(0, "b", BufferKind::Input, 16);
    const uint32_t x = plan.Buffer(1, "x", BufferKind::Output, 16), y = plan.Buffer(1, "y", BufferKind::Output, 16);
    plan.Send(0, 0, pp, 1, swapped ? b : a);
    plan.Send(0, 0, pp, 1, swapped ? a : b);
    plan.Receive(1, 0, pp, 0, x);
    plan.Receive(1, 0, pp, 0, y);
    return plan.Finish();
  };
  EXPECT_THAT(Differences(transfers(false), transfers(true)),
              ElementsAre("step, role 1: output 'x'", "step, role 1: output 'y'"));
}

// Inputs of one name are other values on other roles.
TEST(PlanMeaning, TellsRolesApart) {
  const auto make = [](bool received) {
    RankPlan plan({{"pp", 2}}, 0);
    plan.Streams({"compute"});
    const uint32_t pp = plan.Communicator("pp", {0});
    const uint32_t a = plan.Buffer(0, "x", BufferKind::Input, 16);
    const uint32_t b = plan.Buffer(1, "x", BufferKind::Input, 16);
    const uint32_t other = plan.Buffer(1, "other", BufferKind::Temporary, 16);
    const uint32_t y = plan.Buffer(1, "y", BufferKind::Output, 16);
    plan.Send(0, 0, pp, 1, a);
    plan.Receive(1, 0, pp, 0, other);
    plan.Copy(1, 0, received ? other : b, y);
    return plan.Finish();
  };
  EXPECT_THAT(Differences(make(false), make(true)), ElementsAre("step, role 1: output 'y'"));
}

TEST(PlanMeaning, CollectivesOfRolesDependOnAllMembers) {
  const auto make = [](CollectiveKind kind, uint32_t odd_role) {
    RankPlan plan({{"pp", 3}}, 0);
    plan.Streams({"compute"});
    const uint32_t pp = plan.Communicator("pp", {0});
    for (uint32_t role = 0; role < 3; ++role) {
      const uint32_t a = plan.Buffer(role, "a", BufferKind::Input, 48);
      const uint32_t b = plan.Buffer(role, "b", BufferKind::Input, 48);
      const uint32_t y = plan.Buffer(role, "y", BufferKind::Output, 48);
      plan.Collective(role, 0, kind, pp, role == odd_role ? b : a, y, kind == CollectiveKind::AllReduce ? 48 : 16);
      if (kind == CollectiveKind::ReduceScatter) plan.Collective(role, 0, CollectiveKind::AllReduce, pp, a, y, 48);
    }
    return plan.Finish();
  };
  const auto turned = [&](uint32_t shift) {
    fbs::PlanT plan = make(CollectiveKind::Permute, 9);
    for (const auto& program : plan.programs) program->segments[0]->commands[0]->body.AsCollective()->shift = shift;
    return plan;
  };
  EXPECT_THAT(Differences(turned(1), turned(1)), ElementsAre());
  EXPECT_EQ(Differences(turned(1), turned(2)).size(), 3u);
  for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllToAll}) {
    for (uint32_t role = 0; role < 3; ++role) EXPECT_EQ(Differences(make(kind, 9), make(kind, role)).size(), 3u);
  }
}

TEST(PlanMeaning, SaysWhoWaitsForEver) {
  RankPlan plan({{"pp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t pp = plan.Communicator("pp", {0});
  plan.Buffer(0, "a", BufferKind::Input, 16);
  const uint32_t y = plan.Buffer(1, "y", BufferKind::Output, 16);
  plan.Segment(0, "nothing");
  plan.Receive(1, 0, pp, 0, y);
  fbs::PlanT made = plan.Finish();
  const auto bytes = BytesOf(made);
  const auto meaning = ComputeMeaning(PlanIn(bytes));
  EXPECT_EQ(meaning.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(meaning.status().message()),
              HasSubstr("entry 'step': role 1: call 0: segment 'all': receive from place 0 of 'pp' waits"));
}

// A small file with much meaning: every call reads the values that the call before cut into pieces.
TEST(PlanMeaning, BoundsItsWork) {
  RankPlan plan({{"dp", 1}}, -1);
  plan.Streams({"compute"});
  constexpr int64_t kElements = 1 << 16;
  const uint32_t a = plan.Buffer(0, "a", BufferKind::Input, kElements);
  const uint32_t b = plan.Buffer(0, "b", BufferKind::Temporary, kElements);
  const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, kElements);
  plan.Segment(0, "cut");
  for (int i = 0; i < 2000; ++i) plan.Copy(0, 0, a, b);
  const uint32_t read = plan.Segment(0, "read");
  for (int i = 0; i < 2000; ++i) plan.Copy(0, 0, b, y);
  plan.Call(0, 0);
  for (int i = 0; i < 1000; ++i) plan.Call(0, read);
  fbs::PlanT made = plan.Finish();
  auto& commands = made.programs[0]->segments[0]->commands;
  for (uint64_t i = 0; i < commands.size(); ++i) {
    fbs::CopyT& copy = *commands[i]->body.AsCopy();
    copy.destination = std::make_unique<fbs::Operand>(b, 8 * i);
    copy.bytes = 4;
  }
  const auto bytes = BytesOf(made);
  ASSERT_TRUE(VerifyPlan(PlanIn(bytes)).ok());
  const absl::Status status = ComputeMeaning(PlanIn(bytes)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace bowline
