// Rules of entries: their ports, several runs in flight, and those that prepare values that depend on weights.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

const Rule kEntryRules[] = {
    {"EntryName", [](P& p) { p.entries[1]->name = ""; }, "entry 1 '': the entry name is empty"},
    {"EntryTwice", [](P& p) { p.entries[1]->name = "init"; }, "entry 1 'init': the entry name 'init' is used twice"},
    {"UnknownKind", [](P& p) { p.entries[1]->kind = static_cast<fbs::EntryKind>(8); },
     "entry 1 'step': unknown kind 8"},
    {"KindTwice", [](P& p) { p.entries[1]->kind = fbs::EntryKind::Init; },
     "entry 1 'step': is of kind Init, as another entry is; there may be one entry of a kind and bucket"},
    {"NoBucket", [](P& p) { p.entries[1]->kind = fbs::EntryKind::Step; },
     "entry 1 'step': is of kind Step, which needs a bucket of 1 or more tokens"},
    {"BucketOfNone", [](P& p) { p.entries[0]->bucket = 4; },
     "entry 0 'init': has bucket 4, which entries of kind Init do not have"},
    {"EntryProgram", [](P& p) { p.entries[1]->program = 2; }, "entry 1 'step': program 2 does not exist; there are 2"},
    {"PortName", [](P& p) { p.entries[1]->inputs[0]->name = ""; }, "input 0 '': the input name is empty"},
    {"PortTwice", [](P& p) { p.entries[1]->outputs[1]->name = "result"; }, "the output name 'result' is used twice"},
    {"PortBuffer", [](P& p) { p.entries[1]->inputs[0]->buffer = 10; },
     "entry 1 'step': input 0 'tokens': buffer 10 does not exist"},
    {"InputKind", [](P& p) { p.entries[1]->inputs[0]->buffer = kRows; },
     "'rows' is of kind Temporary; the port needs Input"},
    {"OutputKind", [](P& p) { p.entries[1]->outputs[0]->buffer = kRows; }, "the port needs Output, State or Parameter"},
    {"NegativeLimit", [](P& p) { p.entries[1]->inputs[0]->limit = -1; }, "limit -1 is negative"},
    {"LimitOnOutput", [](P& p) { p.entries[1]->outputs[0]->limit = 3; },
     "limit 3 on a port that is no input of integers or F32"},
};

const Rule kOverlapRules[] = {
    {"NoRunInFlight", [](P& p) { p.entries[1]->in_flight = 0; }, "entry 1 'step': 0 runs in flight; it must be 1 or 2"},
    {"ThreeRunsInFlight", [](P& p) { p.entries[1]->in_flight = 3; }, "3 runs in flight; it must be 1 or 2"},
    {"SecondOfOneRun", [](P& p) { p.entries[1]->in_flight = 1; },
     "input 0 'tokens': it has a second buffer, but the entry has one run in flight"},
    {"SecondBuffer", [](P& p) { p.entries[1]->inputs[0]->second = 12; }, "second buffer 12 does not exist"},
    {"SecondIsTheFirst", [](P& p) { p.entries[1]->inputs[0]->second = kTokens; },
     "buffer 'tokens' is that of entry 1 'step': input 0 'tokens' too; with two runs in flight each port has its own"},
    {"SecondOfTwoEntries",
     [](P& p) {
       // Another entry of two runs, of the same program, whose second buffers are those of this one.
       p.entries.push_back(std::make_unique<fbs::EntryT>(*p.entries[1]));
       p.entries[2]->name = "other";
       p.entries[2]->kind = fbs::EntryKind::Custom;
       p.buffers.push_back(std::make_unique<fbs::BufferT>(*p.buffers[kTokens]));
       p.entries[2]->inputs[0]->buffer = static_cast<uint32_t>(p.buffers.size()) - 1;
     },
     "entry 2 'other': input 0 'tokens': buffer 'tokens.second' is that of entry 1 'step': input 0 'tokens' too"},
    {"PortOfAnEntryWithOneRun",
     [](P& p) {
       p.entries[0]->inputs.push_back(std::make_unique<fbs::PortT>(*p.entries[1]->inputs[0]));
       p.entries[0]->inputs[0]->second = 0;
     },
     "entry 0 'init': port 'tokens': buffer 'tokens' is that of entry 1 'step': input 0 'tokens' too, of which two "
     "runs "
     "are in flight"},
    {"SecondIsTheFirstOfAnEntryWithOneRun",
     [](P& p) {
       p.entries[0]->inputs.push_back(std::make_unique<fbs::PortT>(*p.entries[1]->inputs[0]));
       p.entries[0]->inputs[0]->buffer = kSecondTokens;
       p.entries[0]->inputs[0]->second = 0;
     },
     "entry 0 'init': port 'tokens': buffer 'tokens.second' is that of entry 1 'step'"},
    {"SecondKind", [](P& p) { p.entries[1]->outputs[0]->second = kSum; },
     "its buffers 'result' and 'sum' differ in kind, role, memory space, alignment, type or slots"},
    {"SecondType", [](P& p) { p.buffers[kSecondTokens]->dtype = fbs::DType::F32; },
     "its buffers 'tokens' and 'tokens.second' differ in kind"},
    {"StateOfTwoRuns", [](P& p) { p.entries[1]->outputs[0]->buffer = kSteps; },
     "buffer 'steps' is of kind State, which the next run changes"},
    {"FeedOutput", [](P& p) { p.entries[1]->feeds.emplace_back(1, 0); },
     "feed 0: output 1 does not exist; there are 1"},
    {"FeedInput", [](P& p) { p.entries[1]->feeds.emplace_back(0, 1); }, "feed 0: input 1 does not exist"},
    {"FeedOfAnotherType", [](P& p) { p.entries[1]->feeds.emplace_back(0, 0); },
     "feed 0: output 'result' is f32[5, 8] in 1 slots, input 'tokens' i32[5] in 2"},
    {"FeedWithALimit",
     [](P& p) {
       for (uint32_t i : {uint32_t{kResult}, uint32_t{kSecondResult}}) *p.buffers[i] = *p.buffers[kTokens];
       for (uint32_t i : {uint32_t{kResult}, uint32_t{kSecondResult}}) p.buffers[i]->kind = fbs::BufferKind::Output;
       p.buffers[kResult]->name = "result";
       CopyAt(p, 1, 2, 0).bytes = 20;
       p.entries[1]->feeds.emplace_back(0, 0);
     },
     "has the limit 32, which nobody checks in the output of a run"},
};

const Rule kPreparationRules[] = {
    {"PrepareTakesInputs",
     [](P& p) { p.entries[2]->inputs.push_back(std::make_unique<fbs::PortT>(*p.entries[1]->inputs[0])); },
     "entry 2 'pack': it has inputs or outputs"},
    {"PrepareGivesOutputs",
     [](P& p) { p.entries[2]->outputs.push_back(std::make_unique<fbs::PortT>(*p.entries[1]->outputs[0])); },
     "entry 2 'pack': it has inputs or outputs"},
    {"PrepareWritesParameters", [](P& p) { std::swap(CopyAt(p, 2, 0, 0).source, CopyAt(p, 2, 0, 0).destination); },
     "entry 2 'pack': writes buffer 'table' of kind Parameter, which its repetition would change"},
    {"PrepareWritesStates",
     [](P& p) {
       CopyAt(p, 2, 0, 0).bytes = 4;
       *CopyAt(p, 2, 0, 0).destination = fbs::Operand(kSteps, 0);
     },
     "entry 2 'pack': writes buffer 'steps' of kind State"},
    {"PrepareCommunicates",
     [](P& p) {
       auto communicator = std::make_unique<fbs::CommunicatorT>();
       communicator->name = "dp";
       communicator->axes = {0};
       p.communicators.push_back(std::move(communicator));
       fbs::CollectiveT collective;
       collective.dtype = fbs::DType::F32;
       collective.pieces.emplace_back(fbs::Operand(kCopied, 0), fbs::Operand(kCopied, 0), 8);
       auto command = std::make_unique<fbs::CommandT>();
       command->body.Set(std::move(collective));
       p.programs[2]->segments[0]->commands.push_back(std::move(command));
     },
     "entry 2 'pack': command 1 of segment 'prepare', all_reduce on 'dp': it may not communicate"},
    {"AnotherEntryWritesResults", [](P& p) { *CopyAt(p, 1, 2, 0).destination = fbs::Operand(kCopied, 0); },
     "entry 1 'step': writes buffer 'copied', which is of kind State and not in Plan.states; only an entry of kind "
     "Prepare may write such buffers"},
};

fbs::SequencesT& SequencesOf(P& p) { return *p.entries[1]->sequences; }
fbs::BufferT& InputAt(P& p, size_t input) { return *p.buffers[p.entries[1]->inputs[input]->buffer]; }

const Rule kSequenceRules[] = {
    {"NoTokens", [](P& p) { SequencesOf(p).tokens = 0; },
     "entry 1 'step': sequences: tokens is 0; it must be 1 to 2147483647"},
    {"TooManyTokens", [](P& p) { SequencesOf(p).tokens = UINT32_MAX; }, "sequences: tokens is 4294967295"},
    {"NoTokensInABlock", [](P& p) { SequencesOf(p).block_tokens = 0; }, "sequences: block_tokens is 0"},
    {"TooManyTokensInABlock", [](P& p) { SequencesOf(p).block_tokens = 1U << 31; },
     "sequences: block_tokens is 2147483648"},
    {"NoBlocks", [](P& p) { SequencesOf(p).block_count = 0; }, "sequences: block_count is 0"},
    {"TooManyBlocks", [](P& p) { SequencesOf(p).block_count = 1U << 31; }, "sequences: block_count is 2147483648"},
    {"Rows", [](P& p) { SequencesOf(p).rows = 4; }, "entry 1 'step': sequences: input 4 does not exist; there are 4"},
    {"Lengths", [](P& p) { SequencesOf(p).lengths = UINT32_MAX; }, "sequences: input 4294967295 does not exist"},
    {"Blocks", [](P& p) { SequencesOf(p).blocks = 7; }, "sequences: input 7 does not exist"},
    {"TypeOfBlocks", [](P& p) { InputAt(p, 3).dtype = fbs::DType::F32; },
     "sequences: input 'blocks' is f32[3, 2] in 1 slots; it must be i32 with 2 dimensions in one"},
    {"RankOfLengths", [](P& p) { InputAt(p, 2).shape = {3, 1}; },
     "sequences: input 'lengths' is i32[3, 1] in 1 slots; it must be i32 with 1 dimensions in one"},
    {"RankOfBlocks", [](P& p) { InputAt(p, 3).shape = {6}; },
     "sequences: input 'blocks' is i32[6] in 1 slots; it must be i32 with 2 dimensions in one"},
    {"Slots", [](P& p) { SequencesOf(p).lengths = 0; },
     "sequences: input 'tokens' is i32[5] in 2 slots; it must be i32 with 1 dimensions in one"},
    {"DividedAmongRanks",
     [](P& p) {
       InputAt(p, 2).layout = std::make_unique<fbs::LayoutT>();
       InputAt(p, 2).layout->global_shape = {3};
     },
     "sequences: input 'lengths' is divided among ranks; each needs all of it"},
    {"Fed", [](P& p) { p.entries[1]->feeds.emplace_back(0, 3); },
     "sequences: feed 0 gives input 3 the output of a run, which nobody checks"},
    {"OneInputTwice", [](P& p) { SequencesOf(p).rows = 2; },
     "sequences: inputs have 3 rows, 3 lengths and 3 tables; it must be one more row, and as many tables as lengths"},
    {"FewerTables", [](P& p) { InputAt(p, 3).shape = {2, 3}; },
     "sequences: inputs have 4 rows, 3 lengths and 2 tables"},
};

class VerifyEntries : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyEntries, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyEntries, ::testing::ValuesIn(kEntryRules), NameOfRule);

class VerifyOverlap : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyOverlap, Refuses) { ExpectRefused(MakePlanWithTwoRuns(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyOverlap, ::testing::ValuesIn(kOverlapRules), NameOfRule);

class VerifyPreparation : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyPreparation, Refuses) { ExpectRefused(MakePlanWithPrepare(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyPreparation, ::testing::ValuesIn(kPreparationRules), NameOfRule);

class VerifySequences : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifySequences, Refuses) { ExpectRefused(MakePlanWithSequences(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifySequences, ::testing::ValuesIn(kSequenceRules), NameOfRule);

}  // namespace
}  // namespace bowline
