// Memory spaces and alignments: each rule is broken once, alone, in an otherwise sound plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

fbs::ArenaT& AddArena(fbs::PlanT& p, fbs::MemorySpace space, uint64_t bytes) {
  p.arenas.push_back(std::make_unique<fbs::ArenaT>());
  p.arenas.back()->space = space;
  p.arenas.back()->bytes = bytes;
  return *p.arenas.back();
}

// To another space, with an arena in which there is room for it where it is.
void Move(fbs::PlanT& p, uint32_t buffer, fbs::MemorySpace space) {
  p.buffers[buffer]->space = space;
  AddArena(p, space, p.arena_bytes);
}

TEST(MemorySpacesGood, AreAccepted) {
  fbs::PlanT plan = MakePlan();
  // The result goes to the host, and the table, which nobody writes then, lies in a file.
  Move(plan, kResult, fbs::MemorySpace::PinnedHost);
  CopyAt(plan, 1, 2, 0).engine = fbs::CopyEngine::ToHost;
  Move(plan, kTable, fbs::MemorySpace::External);
  plan.programs[0]->segments[0]->commands.erase(plan.programs[0]->segments[0]->commands.begin());
  plan.buffers[kTable]->alignment = 4;
  plan.buffers[kTable]->offset = 12;
  plan.buffers[kRows]->alignment = 128;
  plan.kernels[kGather]->arguments[2]->alignment = 128;
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(DescribeRange(RangeOf(*PlanIn(bytes).buffers()->Get(kTable), 0)), "[12, 2060) in External");
  EXPECT_EQ(DescribeRange(RangeOf(*PlanIn(bytes).buffers()->Get(kSteps), 0)), "[2048, 2052)");
}

TEST(MemorySpacesOfRuns, WhatRunsShareIsWhereTheyLookForIt) {
  const auto refused = [](P& plan) {
    const auto bytes = BytesOf(plan);
    return std::string(VerifyPlan(PlanIn(bytes)).message());
  };
  P second = MakePlanWithTwoRuns();
  Move(second, kSecondTokens, fbs::MemorySpace::PinnedHost);
  EXPECT_THAT(refused(second),
              HasSubstr("its buffers 'tokens' and 'tokens.second' differ in kind, role, memory space"));
  P fed = MakePlanWithTwoRuns();
  for (const uint32_t result : {uint32_t{kResult}, uint32_t{kSecondResult}}) {
    fed.buffers[result]->space = fbs::MemorySpace::PinnedHost;
  }
  AddArena(fed, fbs::MemorySpace::PinnedHost, fed.arena_bytes);
  CopyAt(fed, 1, 2, 0).engine = fbs::CopyEngine::ToHost;
  for (const uint32_t tokens : {uint32_t{kTokens}, uint32_t{kSecondTokens}})
    *fed.buffers[tokens] = *fed.buffers[kResult];
  for (const uint32_t tokens : {uint32_t{kTokens}, uint32_t{kSecondTokens}}) {
    fed.buffers[tokens]->kind = fbs::BufferKind::Input;
    fed.buffers[tokens]->space = fbs::MemorySpace::Device;
  }
  fed.entries[1]->inputs[0]->limit = 0;
  fed.entries[1]->feeds.emplace_back(0, 0);
  fed.programs[1]->segments[1]->commands.clear();  // nobody takes tokens any more
  fed.programs[1]->timeline = {fbs::SegmentCall(0, 0), fbs::SegmentCall(2, 0)};
  EXPECT_THAT(refused(fed), HasSubstr("feed 0: buffer 'result' is in memory space PinnedHost"));
  P fault = MakePlan();
  Move(fault, kSteps, fbs::MemorySpace::PinnedHost);
  fault.buffers[kSteps]->kind = fbs::BufferKind::Fault;
  fault.buffers[kSteps]->dtype = fbs::DType::I32;
  EXPECT_THAT(refused(fault), HasSubstr("buffer 1 'steps': is of kind Fault, which holds words of i32 in one slot in"));
}

const Rule kRules[] = {
    {"NoArenaInItsSpace", [](P& p) { p.buffers[kRows]->space = fbs::MemorySpace::PinnedHost; },
     "buffer 5 'rows': 1 slot(s) of 320 bytes at offset 2944, 0 bytes apart, end beyond the arena of 0 bytes in "
     "PinnedHost"},
    {"ArenaOfDevice", [](P& p) { AddArena(p, fbs::MemorySpace::Device, 64); },
     "arena 0: an arena cannot be in memory space 0"},
    {"ArenaOfUnknownSpace", [](P& p) { AddArena(p, static_cast<fbs::MemorySpace>(3), 64); },
     "arena 0: an arena cannot be in memory space 3"},
    {"ArenaOfNoRole", [](P& p) { AddArena(p, fbs::MemorySpace::PinnedHost, 64).role = 1; },
     "arena 0: role 1 does not exist; there are 1"},
    {"EmptyArena", [](P& p) { AddArena(p, fbs::MemorySpace::PinnedHost, 0); }, "arena 0: 0 bytes; it must be 1 to"},
    {"HugeArena", [](P& p) { AddArena(p, fbs::MemorySpace::PinnedHost, ~uint64_t{0}); },
     "18446744073709551615 bytes; it must be 1 to 2^62"},
    {"ArenaTwice",
     [](P& p) {
       AddArena(p, fbs::MemorySpace::External, 64);
       AddArena(p, fbs::MemorySpace::External, 64);
     },
     "arena 1: arenas must be in the order of roles, then spaces, and none twice"},
    {"ExternalTemporary", [](P& p) { Move(p, kRows, fbs::MemorySpace::External); },
     "buffer 5 'rows': is in memory space External, which only parameters may be, but is of kind Temporary"},
    {"ExternalSlots",
     [](P& p) {
       Move(p, kTokens, fbs::MemorySpace::External);
       p.buffers[kTokens]->kind = fbs::BufferKind::Parameter;
     },
     "buffer 3 'tokens': is in memory space External, but has 2 slots"},
    {"ExternalWithoutKey",
     [](P& p) {
       Move(p, kTable, fbs::MemorySpace::External);
       p.states.erase(p.states.begin());
     },
     "buffer 0 'table': is in memory space External, but no state names the key of its tensor"},
    {"NoAlignment", [](P& p) { p.buffers[kRows]->alignment = 0; },
     "buffer 5 'rows': alignment 0 is no power of two up to 4096"},
    {"OddAlignment", [](P& p) { p.buffers[kRows]->alignment = 96; }, "alignment 96 is no power of two"},
    {"LargeAlignment", [](P& p) { p.buffers[kRows]->alignment = 8192; }, "alignment 8192 is no power of two"},
    {"BeyondItsAlignment", [](P& p) { p.buffers[kRows]->alignment = 1024; },
     "buffer 5 'rows': offset 2944 is no multiple of its alignment 1024"},
    {"OddArgumentAlignment", [](P& p) { p.kernels[kAdd]->arguments[1]->alignment = 24; },
     "argument 1: alignment 24 is no power of two up to 4096"},
    {"ArgumentAlignmentOfHalfAnElement", [](P& p) { p.kernels[kAdd]->arguments[1]->alignment = 2; },
     "argument 1: alignment 2 is less than the 4 bytes of an element"},
    {"OperandLessAligned",
     [](P& p) {
       p.buffers[kRows]->alignment = 32;
       p.kernels[kGather]->arguments[2]->alignment = 64;
     },
     "launch of 'gather_rows': operand 2: buffer 'rows' lies at a multiple of 32 bytes, but the kernel takes multiples "
     "of 64"},
    {"OperandInsideLessAligned",
     [](P& p) {
       p.kernels[kAdd]->arguments[0]->alignment = 64;
       LaunchAt(p, 1, 1, 2).operands[0] = fbs::Operand(kRows, 32);
     },
     "operand 0: offset 32 into buffer 'rows' is no multiple of 64, which the kernel takes"},
    {"KernelOnPinnedHost", [](P& p) { Move(p, kRows, fbs::MemorySpace::PinnedHost); },
     "launch of 'gather_rows': operand 2: buffer 'rows' is in memory space PinnedHost, which kernels do not reach; "
     "copy "
     "it to space Device first"},
    {"WritesExternal", [](P& p) { Move(p, kTable, fbs::MemorySpace::External); },
     "launch of 'random_normal': operand 0: writes buffer 'table' in memory space External, which commands may only "
     "read"},
    {"CopyIntoExternal",
     [](P& p) {
       p.programs[0]->segments[0]->commands.erase(p.programs[0]->segments[0]->commands.begin());
       Move(p, kTable, fbs::MemorySpace::External);
       *CopyAt(p, 1, 2, 0).destination = fbs::Operand(kTable, 0);
     },
     "copy: destination: writes buffer 'table' in memory space External"},
    {"WrongEngine", [](P& p) { CopyAt(p, 1, 2, 0).engine = fbs::CopyEngine::ToHost; },
     "copy: names the engine ToHost, but from Device to Device it is WithinDevice"},
    {"UnknownEngine", [](P& p) { CopyAt(p, 1, 2, 0).engine = static_cast<fbs::CopyEngine>(3); },
     "copy: names the engine 3, but"},
    {"WrongEngineToHost", [](P& p) { Move(p, kResult, fbs::MemorySpace::PinnedHost); },
     "copy: names the engine WithinDevice, but from Device to PinnedHost it is ToHost"},
    {"CopyWithinTheHost",
     [](P& p) {
       Move(p, kSteps, fbs::MemorySpace::PinnedHost);
       p.buffers[kResult]->space = fbs::MemorySpace::PinnedHost;
       p.programs[0]->segments[0]->commands.pop_back();
       CopyAt(p, 1, 2, 0).bytes = 4;
       *CopyAt(p, 1, 2, 0).source = fbs::Operand(kSteps, 0);
     },
     "copy: no engine of the device copies from PinnedHost to PinnedHost"},
};

class MemorySpaces : public ::testing::TestWithParam<Rule> {};
TEST_P(MemorySpaces, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, MemorySpaces, ::testing::ValuesIn(kRules), NameOfRule);

}  // namespace
}  // namespace bowline
