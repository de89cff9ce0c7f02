// For each proof, sound plans that it accepts and unsound ones that it refuses for the right reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

absl::Status Check(P& plan) {
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  return PlanChecker(PlanIn(bytes)).check();
}

struct Unsound {
  const char* name;
  std::function<void(P&)> breaks;
  std::vector<const char*> message;
};

class Checker : public ::testing::TestWithParam<Unsound> {};

TEST_P(Checker, Refuses) {
  P plan = MakePlan();
  GetParam().breaks(plan);
  const absl::Status status = Check(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  for (const char* part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

std::vector<std::unique_ptr<fbs::CommandT>>& Micro(P& p) { return p.programs[1]->segments[1]->commands; }

// All commands of the second program on two streams, alternately.
void TwoStreams(P& p) { p.programs[1]->streams.push_back("other"); }

const Unsound kUnsound[] = {
    {"StateOverlapsTemporary",
     [](P& p) { p.buffers[kProduct]->offset = p.buffers[kSteps]->offset; },
     {"the proof of persistence fails: buffer 1 'steps' (State, bytes [2048, 2052), from model.head (by emit)) and "
      "buffer 6 'product' (Temporary"}},
    {"ParameterCoversState",
     [](P& p) { p.buffers[kSteps]->offset = 64; },
     {"the proof of persistence fails: buffer 0 'table'", "buffer 1 'steps'"}},
    {"InputSlotOverlapsOutput",
     [](P& p) { p.buffers[kResult]->offset = p.buffers[kTokens]->offset + 64; },
     {"the proof of persistence fails: buffer 3 'tokens'", "buffer 4 'result'"}},
    {"TemporaryBetweenBeginsEarlier",
     [](P& p) { p.buffers[kRows]->offset = p.buffers[kTokens]->offset - 256; },
     {"the proof of persistence fails"}},
    {"ReadBeforeWrite",
     [](P& p) { std::swap(Micro(p)[0], Micro(p)[1]); },
     {"the proof of initialisation fails: entry 'step', segment 'micro' (call 1, slot 0), command 0, launch of "
      "'matmul', "
      "from model.head (by emit) reads bytes",
      "of buffer 5 'rows', which nothing wrote before"}},
    {"NeverZeroed",
     [](P& p) { p.programs[1]->timeline.erase(p.programs[1]->timeline.begin()); },
     {"the proof of initialisation fails", "launch of 'fixture_add'", "buffer 8 'sum', which nothing wrote before"}},
    {"InputOfAnotherEntry",
     [](P& p) { p.entries[1]->inputs.clear(); },
     {"the proof of initialisation fails", "buffer 3 'tokens' slot 0, which nothing wrote before"}},
    {"SlotsAreTheirOwn",
     [](P& p) {
       // A temporary with two slots, of which the reader takes the one that was not written.
       p.buffers[kProduct]->slots = 2;
       p.buffers[kProduct]->slot_stride = 192;
       p.buffers[kProduct]->offset = (p.arena_bytes + 63) / 64 * 64;
       p.arena_bytes = p.buffers[kProduct]->offset + 192 + 160;
       auto segment = std::make_unique<fbs::SegmentT>();
       segment->name = "late";
       segment->commands.push_back(std::move(Micro(p)[2]));
       Micro(p).erase(Micro(p).begin() + 2, Micro(p).end());
       p.programs[1]->segments.push_back(std::move(segment));
       p.programs[1]->timeline = {fbs::SegmentCall(0, 0), fbs::SegmentCall(1, 0), fbs::SegmentCall(3, 1)};
     },
     {"the proof of initialisation fails", "buffer 6 'product' slot 1"}},
    {"ScratchIsNoStorage",
     [](P& p) { p.buffers[kDoubled]->kind = fbs::BufferKind::Scratch; },
     {"the proof of initialisation fails", "of buffer 7 'doubled', which hold no value of any buffer"}},
    {"Clobbered",
     [](P& p) { p.buffers[kProduct]->offset = p.buffers[kSum]->offset; },
     {"the proof of no clobber fails: entry 'step', segment 'micro' (call 1, slot 0), command 3, launch of "
      "'fixture_add'",
      "of buffer 8 'sum', but they hold buffer 6 'product', written by entry 'step', segment 'micro' (call 1, slot 0), "
      "command 1",
      "the buffer was last written by entry 'step', segment 'zero' (call 0, slot 0), command 0"}},
    {"PartlyClobbered",
     [](P& p) {
       // Writes the last 64 bytes of `sum`, between its write and its read.
       auto small = std::make_unique<fbs::BufferT>(*p.buffers[kSteps]);
       small->name = "small";
       small->kind = fbs::BufferKind::Temporary;
       small->offset = p.buffers[kSum]->offset + 128;
       p.buffers.push_back(std::move(small));
       auto command = std::make_unique<fbs::CommandT>(*p.programs[0]->segments[0]->commands[1]);
       command->body.AsLaunch()->operands[0] = fbs::Operand(10, 0);
       p.programs[1]->segments[0]->commands.push_back(std::move(command));
     },
     {"the proof of no clobber fails", "of buffer 8 'sum', but they hold buffer 10 'small'"}},
    {"WriteOverlapsRead",
     [](P& p) {
       LaunchAt(p, 1, 1, 2).operands[2] = fbs::Operand(kProduct, 0);
       p.kernels[kAdd]->in_place.clear();
     },
     {"the proof of aliasing fails", "command 2, launch of 'fixture_add'", "operand 0 (buffer 6 'product', bytes"}},
    {"InPlaceNeedsEqualBytes",
     [](P& p) {
       LaunchAt(p, 1, 1, 3).operands[0] = fbs::Operand(kRows, 64);
       LaunchAt(p, 1, 1, 3).operands[2] = fbs::Operand(kDoubled, 0);
     },
     {"the proof of aliasing fails", "without a declared in-place pair on equal bytes"}},
    {"InPlaceWithAnotherArgument",  // of an addition whose result may be its second operand
     [](P& p) { p.buffers[kDoubled]->offset = p.buffers[kProduct]->offset; },
     {"the proof of aliasing fails", "command 2, launch of 'fixture_add'", "operand 0 (buffer 6 'product', bytes"}},
    {"TwoWritesOverlap",
     [](P& p) {
       p.buffers[kWorkspace]->offset = p.buffers[kProduct]->offset;
       p.arena_bytes = p.buffers[kWorkspace]->offset + p.buffers[kWorkspace]->bytes;
     },
     {"the proof of aliasing fails", "launch of 'matmul'", "buffer 6 'product'", "buffer 9 'workspace'"}},
    {"CopyOntoItself",
     [](P& p) { *CopyAt(p, 1, 2, 0).destination = fbs::Operand(kSum, 0); },
     {"the proof of aliasing fails", "command 0, copy"}},
    {"OutputUnwritten",
     [](P& p) { p.programs[1]->segments[2]->commands.erase(p.programs[1]->segments[2]->commands.begin()); },
     {"the proof of initialisation fails: entry 'step' returns as output 'result' bytes",
      "of buffer 4 'result', which nothing wrote before"}},
    {"OutputPartlyWritten",
     [](P& p) { CopyAt(p, 1, 2, 0).bytes -= 4; },
     {"entry 'step' returns as output 'result' bytes [2908, 2912)"}},
    {"OutputClobbered",
     [](P& p) {
       p.buffers[kRows]->offset = p.buffers[kResult]->offset;
       std::swap(p.programs[1]->timeline[2], p.programs[1]->timeline[3]);
     },
     {"the proof of no clobber fails: entry 'step' returns as output 'result'", "buffer 5 'rows'"}},
    {"InitLeavesAStateOut",
     [](P& p) { p.programs[0]->segments[0]->commands.pop_back(); },
     {"the proof of initial values fails: entry 'init' leaves bytes [", "an entry of kind Init sets all states"}},
    {"InitReadsAState",
     [](P& p) {
       auto& commands = p.programs[0]->segments[0]->commands;
       commands.insert(commands.begin(), std::make_unique<fbs::CommandT>(*commands.back()));
       fbs::CopyT copy;
       copy.source = std::make_unique<fbs::Operand>(kTable, 0);
       copy.destination = std::make_unique<fbs::Operand>(kSum, 0);
       copy.bytes = 4;
       commands.front()->body.Set(std::move(copy));
     },
     {"the proof of initialisation fails: entry 'init'", "which nothing wrote before"}},
    {"WriteRace",
     [](P& p) {
       TwoStreams(p);
       Micro(p)[1]->stream = 1;
     },
     {"the proof of no race fails", "on stream 'compute'", "on stream 'other'",
      "nothing orders the two: signal an event"}},
    {"ReadWriteRaceAcrossSegments",
     [](P& p) {
       TwoStreams(p);
       p.programs[1]->segments[2]->commands[0]->stream = 1;
     },
     {"the proof of no race fails", "buffer 8 'sum'"}},
};

INSTANTIATE_TEST_SUITE_P(Proofs, Checker, ::testing::ValuesIn(kUnsound),
                         [](const auto& info) { return info.param.name; });

TEST(CheckerGood, ProvesTheFixture) {
  P plan = MakePlan();
  const auto bytes = BytesOf(plan);
  PlanChecker checker(PlanIn(bytes));
  ASSERT_TRUE(checker.check().ok()) << checker.check();
  const CheckReport& report = checker.report();
  ASSERT_EQ(report.roles.size(), 1u);
  EXPECT_EQ(report.roles[0].in(fbs::MemorySpace::Device).highestByte, plan.arena_bytes);
  ASSERT_EQ(report.entries.size(), 2u);
  EXPECT_EQ(report.entries[0].statesWritten, 2u);
  EXPECT_EQ(report.entries[1].launches, 10u);
  EXPECT_EQ(report.entries[1].copies, 1u);
  EXPECT_EQ(report.registeredKernels, 5u);
  EXPECT_EQ(report.generatedKernels, 2u);
  EXPECT_EQ(report.proofs.size(), 17u);
  const std::string text = formatReport(report);
  for (const char* part : {"entry step", "4 calls, 10 launches, 1 copies", "Scratch 65536", "proven  no clobber"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(CheckerGood, ResultsOfPrepareAreSetForOtherEntries) {
  P plan = MakePlanWithPrepare();
  const auto bytes = BytesOf(plan);
  PlanChecker checker(PlanIn(bytes));
  ASSERT_TRUE(checker.check().ok()) << checker.check();
  const CheckReport& report = checker.report();
  EXPECT_EQ(report.roles[0].in(fbs::MemorySpace::Device).preparedBytes, plan.buffers[kCopied]->bytes);
  EXPECT_EQ(report.roles[0].in(fbs::MemorySpace::Device).bytesByKind[static_cast<size_t>(fbs::BufferKind::State)], 4u);
  ASSERT_EQ(report.entries.size(), 3u);
  EXPECT_EQ(report.entries[2].copies, 1u);
  EXPECT_EQ(report.entries[2].statesWritten, 0u);
  EXPECT_THAT(formatReport(report), HasSubstr(" Prepared 2048\n"));
}

// Buffers that no state lists count neither as states nor, with several slots, as several of them.
TEST(CheckerGood, CountsStatesAndNotSlots) {
  P plan = MakePlan();
  auto ring = std::make_unique<fbs::BufferT>(*plan.buffers[kSteps]);
  ring->name = "ring";
  ring->kind = fbs::BufferKind::Parameter;
  ring->offset = (plan.arena_bytes + 63) / 64 * 64;
  ring->slots = 2;
  ring->slot_stride = 64;
  plan.arena_bytes = ring->offset + ring->slot_stride + ring->bytes;
  const auto buffer = static_cast<uint32_t>(plan.buffers.size());
  plan.buffers.push_back(std::move(ring));
  auto command = std::make_unique<fbs::CommandT>(*plan.programs[0]->segments[0]->commands[1]);
  command->body.AsLaunch()->operands[0] = fbs::Operand(buffer, 0);
  plan.programs[0]->segments[0]->commands.push_back(std::move(command));
  plan.programs[0]->timeline.emplace_back(0, 1);
  const auto bytes = BytesOf(plan);
  ASSERT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  PlanChecker checker(PlanIn(bytes));
  ASSERT_TRUE(checker.check().ok()) << checker.check();
  EXPECT_EQ(checker.report().entries[0].statesWritten, 2u);
  EXPECT_EQ(checker.report().entries[1].statesWritten, 1u);
  EXPECT_THAT(formatReport(checker.report()), HasSubstr("writes 2 of 2 states"));
}

class PreparationChecker : public ::testing::TestWithParam<Unsound> {};

TEST_P(PreparationChecker, Refuses) {
  P plan = MakePlanWithPrepare();
  GetParam().breaks(plan);
  const absl::Status status = Check(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  for (const char* part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

const char* const kNeverPrepared = "launch of 'gather_rows', from model.embed (by emit) reads bytes [";

const Unsound kUnsoundPreparations[] = {
    {"NothingIsComputed",
     [](P& p) { p.programs[2]->segments[0]->commands.clear(); },
     {"the proof of initialisation fails: entry 'step'", kNeverPrepared, "'copied', which nothing wrote before"}},
    {"NoEntryComputesIt",
     [](P& p) { p.entries.pop_back(); },
     {"the proof of initialisation fails: entry 'step'", "'copied', which nothing wrote before"}},
    {"PartIsComputed",
     [](P& p) { CopyAt(p, 2, 0, 0).bytes -= 64; },
     {"the proof of initialisation fails: entry 'step'", "'copied', which nothing wrote before"}},
    {"ItReadsItsOwnResultFirst",
     [](P& p) {
       auto& commands = p.programs[2]->segments[0]->commands;
       auto early = std::make_unique<fbs::CommandT>(*commands[0]);
       early->body.AsCopy()->bytes = 4;
       *early->body.AsCopy()->source = fbs::Operand(kCopied, 4);
       commands.insert(commands.begin(), std::move(early));
     },
     {"the proof of initialisation fails: entry 'pack'", "'copied', which nothing wrote before"}},
    {"ItReadsInputs",
     [](P& p) {
       auto& copy = CopyAt(p, 2, 0, 0);
       copy.bytes = 4;
       *copy.source = fbs::Operand(kTokens, 0);
     },
     {"the proof of initialisation fails: entry 'pack'", "'tokens' slot 0, which nothing wrote before"}},
    {"ItsResultsShareMemory",
     [](P& p) {
       p.arena_bytes -= p.buffers[kCopied]->bytes;
       p.buffers[kCopied]->offset = p.buffers[kWorkspace]->offset;
     },
     {"the proof of persistence fails", "'copied' (State"}},
};
INSTANTIATE_TEST_SUITE_P(Proofs, PreparationChecker, ::testing::ValuesIn(kUnsoundPreparations),
                         [](const auto& info) { return info.param.name; });

// The sum goes to the host by a second stream, and back into `doubled`, whose values are not needed any more.
P Staged() {
  P plan = MakePlan();
  TwoStreams(plan);
  plan.programs[1]->events = 2;
  auto host = std::make_unique<fbs::BufferT>(*plan.buffers[kSum]);
  host->name = "staged";
  host->space = fbs::MemorySpace::PinnedHost;
  host->offset = 64;
  plan.arenas.push_back(std::make_unique<fbs::ArenaT>());
  plan.arenas[0]->space = fbs::MemorySpace::PinnedHost;
  plan.arenas[0]->bytes = host->offset + host->bytes;
  const auto number = static_cast<uint32_t>(plan.buffers.size());
  plan.buffers.push_back(std::move(host));
  auto& commands = plan.programs[1]->segments[2]->commands;
  const auto add = [&](auto body, uint16_t stream) {
    auto command = std::make_unique<fbs::CommandT>();
    command->body.Set(std::move(body));
    command->stream = stream;
    commands.insert(commands.end() - 2, std::move(command));
  };
  const auto copy = [&](uint32_t from, uint32_t to, fbs::CopyEngine engine) {
    fbs::CopyT copy;
    copy.source = std::make_unique<fbs::Operand>(from, 0);
    copy.destination = std::make_unique<fbs::Operand>(to, 0);
    copy.bytes = plan.buffers[kSum]->bytes;
    copy.engine = engine;
    add(std::move(copy), 1);
  };
  const auto event = [&](auto body, uint32_t event, uint16_t stream) {
    body.event = event;
    add(std::move(body), stream);
  };
  event(fbs::SignalT(), 0, 0);
  event(fbs::WaitT(), 0, 1);
  copy(kSum, number, fbs::CopyEngine::ToHost);
  copy(number, kDoubled, fbs::CopyEngine::ToDevice);
  event(fbs::SignalT(), 1, 1);
  event(fbs::WaitT(), 1, 0);
  *CopyAt(plan, 1, 2, commands.size() - 2).source = fbs::Operand(kDoubled, 0);
  return plan;
}

TEST(CheckerGood, AcceptsWhatIsStagedThroughTheHost) {
  P plan = Staged();
  const auto bytes = BytesOf(plan);
  ASSERT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  PlanChecker checker(PlanIn(bytes));
  ASSERT_TRUE(checker.check().ok()) << checker.check();
  const auto& arena = checker.report().roles[0].in(fbs::MemorySpace::PinnedHost);
  EXPECT_EQ(arena.bytes, 224u);
  EXPECT_EQ(arena.highestByte, 224u);
  EXPECT_THAT(formatReport(checker.report()),
              HasSubstr("\narena   224 bytes in PinnedHost in 1 buffers: Temporary 160\n"));
}

class StagingChecker : public ::testing::TestWithParam<Unsound> {};

TEST_P(StagingChecker, Refuses) {
  P plan = Staged();
  GetParam().breaks(plan);
  const absl::Status status = Check(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  for (const char* part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

void Delete(P& p, size_t command) {
  auto& commands = p.programs[1]->segments[2]->commands;
  commands.erase(commands.begin() + static_cast<int64_t>(command));
}

const Unsound kUnsoundStaging[] = {
    {"NothingWaitsForTheSum",
     [](P& p) { Delete(p, 1); },
     {"the proof of no race fails", "writes buffer 8 'sum'", "copy to the host", "reads buffer 8 'sum'"}},
    {"NothingWaitsForTheCopyBack",
     [](P& p) { Delete(p, 5); },
     {"the proof of no race fails", "copy to the device", "writes buffer 7 'doubled'", "reads buffer 7 'doubled'"}},
    {"ReadFromTheHostBeforeItIsThere",
     [](P& p) {
       auto& commands = p.programs[1]->segments[2]->commands;
       std::swap(commands[2], commands[3]);
     },
     {"the proof of initialisation fails", "copy to the device",
      "reads bytes [64, 224) in PinnedHost of buffer 10 'staged', which nothing wrote before"}},
    {"OverAConstantOnTheHost",
     [](P& p) {
       p.buffers[kWeight]->space = fbs::MemorySpace::PinnedHost;
       p.buffers[kWeight]->offset = 0;
       p.arenas[0]->bytes = 512;
       Micro(p).erase(Micro(p).begin() + 1);
       p.kernels[kMatmul]->arguments.pop_back();  // no launch says that it is workspace
     },
     {"the proof of persistence fails: buffer 2 'weight' (Constant, bytes [0, 512) in PinnedHost"}},
};
INSTANTIATE_TEST_SUITE_P(Proofs, StagingChecker, ::testing::ValuesIn(kUnsoundStaging),
                         [](const auto& info) { return info.param.name; });

TEST(CheckerGood, AcceptsStreamsThatShareNothingButReads) {
  P plan = MakePlan();
  TwoStreams(plan);
  plan.programs[1]->segments[2]->commands[1]->stream = 1;  // increments the step counter, alone
  EXPECT_TRUE(Check(plan).ok()) << Check(plan);
}

TEST(CheckerGood, AcceptsInPlaceAcrossBuffers) {
  P plan = MakePlan();
  // `doubled` written over `product`, as the declared pair allows for argument 1; argument 0 must be elsewhere.
  LaunchAt(plan, 1, 1, 2).operands[0] = fbs::Operand(kSum, 0);
  plan.buffers[kDoubled]->offset = plan.buffers[kProduct]->offset;
  EXPECT_TRUE(Check(plan).ok()) << Check(plan);
}

TEST(CheckerGood, AcceptsOperandsInsideOfABuffer) {
  P plan = MakePlan();
  LaunchAt(plan, 1, 1, 2).operands[0] = fbs::Operand(kRows, 160);
  LaunchAt(plan, 1, 1, 2).operands[1] = fbs::Operand(kRows, 100);
  plan.buffers[kDoubled]->offset = plan.buffers[kProduct]->offset;
  EXPECT_TRUE(Check(plan).ok()) << Check(plan);
}

TEST(CheckerContracts, AreThere) {
  P plan = MakePlan();
  plan.images[0]->codes[0]->contracts.clear();
  plan.images[0]->codes[0]->hash = nullptr;
  const auto bytes = BytesAsTheyAre(plan);
  EXPECT_EQ(VerifyPlan(PlanIn(bytes)), absl::OkStatus());
  EXPECT_THAT(std::string(PlanChecker(PlanIn(bytes)).check().message()),
              HasSubstr("the proof of contracts fails: the code that kernel 5 'fixture_add' calls says of no kernel"));
}

// The fixture's product writes whole cache lines, and takes no result for an operand.
TEST(CheckerSignatures, HoldArgumentsToWhatKernelsNeed) {
  P plan = MakePlan();
  plan.kernels[kMatmul]->arguments[0]->alignment = 4;
  EXPECT_EQ(Check(plan), absl::OkStatus());
  plan.kernels[kMatmul]->arguments[2]->alignment = 4;
  EXPECT_THAT(
      std::string(Check(plan).message()),
      HasSubstr("the proof of signatures fails: kernel 4: 'matmul' takes argument 2 at any multiple of 4 bytes, "
                "but on target 'cpu' it needs a multiple of 64"));
  plan.kernels[kMatmul]->arguments[2]->alignment = 128;
  plan.buffers[kProduct]->alignment = 128;
  plan.buffers[kProduct]->offset = (plan.arena_bytes + 127) / 128 * 128;
  plan.arena_bytes = plan.buffers[kProduct]->offset + plan.buffers[kProduct]->bytes;
  EXPECT_EQ(Check(plan), absl::OkStatus());
}

TEST(CheckerSignatures, HaveNoPairsInPlaceThatPlansAloneClaim) {
  P plan = MakePlan();
  plan.kernels[kGather]->arguments[0]->shape = plan.kernels[kGather]->arguments[2]->shape;  // a table of as many rows
  plan.kernels[kGather]->in_place.emplace_back(/*output=*/2, /*input=*/0);
  EXPECT_THAT(
      std::string(Check(plan).message()),
      HasSubstr("the proof of signatures fails: kernel 3: 'gather_rows' claims that argument 2 may be the bytes of "
                "argument 0, which the kernel does not allow"));
  // Code was made with its pairs: its contract has them (code_contract.h).
  plan = MakePlan();
  EXPECT_FALSE(plan.kernels[kAdd]->in_place.empty());
  EXPECT_EQ(Check(plan), absl::OkStatus());
}

TEST(CheckerGood, ReportsSpareBytesAtTheEndOfAnArena) {
  P plan = MakePlan();
  plan.arena_bytes += 128;
  const auto bytes = BytesOf(plan);
  PlanChecker checker(PlanIn(bytes));
  ASSERT_EQ(checker.check(), absl::OkStatus());
  EXPECT_THAT(formatReport(checker.report()),
              AllOf(HasSubstr("; the last 128 are unused\n"), Not(HasSubstr("exact memory"))));
}

// Two runs in flight.

TEST(CheckerOfTwoRuns, AcceptsThem) {
  P plan = MakePlanWithTwoRuns();
  EXPECT_EQ(Check(plan), absl::OkStatus());
  const auto bytes = BytesOf(plan);
  PlanChecker checker(PlanIn(bytes));
  ASSERT_EQ(checker.check(), absl::OkStatus());
  uint64_t facts = 0;
  for (const auto& proof : checker.report().proofs) facts += proof.name == "two runs" ? proof.facts : 0;
  EXPECT_EQ(facts, 4u);
}

const Unsound kUnsoundRuns[] = {
    {"OutputSharesBytes",
     [](P& p) {
       p.buffers[kSum]->offset = p.buffers[kResult]->offset;
       p.programs[1]->segments[2]->commands.erase(p.programs[1]->segments[2]->commands.begin());
     },
     {"the proof of persistence fails", "'result'", "'sum'"}},
    {"SecondSharesBytes",
     [](P& p) { p.buffers[kSecondResult]->offset = p.buffers[kRows]->offset; },
     {"the proof of persistence fails", "'result.second'"}},
    {"CommandOnASecond",
     [](P& p) {
       *p.programs[1]->segments[2]->commands[0]->body.AsCopy()->destination = fbs::Operand(kSecondResult, 0);
     },
     {"the proof of two runs fails: program 'step', segment 'finish', command 0, copy, touches buffer 11"}},
    {"AnotherEntryWritesAnOutput",
     [](P& p) {
       auto& commands = p.programs[0]->segments[0]->commands;
       commands.push_back(std::make_unique<fbs::CommandT>(*p.programs[1]->segments[2]->commands[0]));
     },
     {"the proof of two runs fails: program 'init'", "touches buffer 4 'result'"}},
    {"ProgramOfTwoEntries",
     [](P& p) {
       p.entries.push_back(std::make_unique<fbs::EntryT>());
       p.entries.back()->name = "other";
       p.entries.back()->program = 1;
     },
     {"the proof of two runs fails: entries 'step' and 'other' run one program"}},
    {"FedOutputOfTwoEntries",
     [](P& p) {
       fbs::EntryT& step = *p.entries[1];
       step.in_flight = 1;
       for (auto* ports : {&step.inputs, &step.outputs}) {
         for (auto& port : *ports) port->second = 0;
       }
       p.buffers[kSecondResult]->kind = fbs::BufferKind::Input;
       step.inputs.push_back(std::make_unique<fbs::PortT>(*step.outputs[0]));
       step.inputs.back()->name = "fed";
       step.inputs.back()->buffer = kSecondResult;
       step.feeds.emplace_back(0, static_cast<uint32_t>(step.inputs.size()) - 1);
       p.entries[0]->outputs.push_back(std::make_unique<fbs::PortT>(*step.outputs[0]));
     },
     {"the proof of two runs fails: buffer 4 'result' is a port of entries 'init' and 'step'"}},
};

class CheckerOfTwoRunsThat : public ::testing::TestWithParam<Unsound> {};

TEST_P(CheckerOfTwoRunsThat, Refuses) {
  P plan = MakePlanWithTwoRuns();
  GetParam().breaks(plan);
  const absl::Status status = Check(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  for (const char* part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(Runs, CheckerOfTwoRunsThat, ::testing::ValuesIn(kUnsoundRuns),
                         [](const ::testing::TestParamInfo<Unsound>& info) { return info.param.name; });

}  // namespace
}  // namespace bowline
