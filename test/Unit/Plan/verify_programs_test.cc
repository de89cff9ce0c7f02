// Rules of programs: streams, events, segments, their commands, and the timelines that call them.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

fbs::CommandT& CommandAt(P& p, size_t segment, size_t command) {
  return *p.programs[1]->segments[segment]->commands[command];
}

const Rule kProgramRules[] = {
    {"TooManyStreams",
     [](P& p) {
       for (int i = 0; i < 64; ++i) p.programs[1]->streams.push_back("s" + std::to_string(i));
     },
     "65 streams; 64 is the most"},
    {"SignalOfNoSlots",
     [](P& p) {
       p.programs[1]->events = 4;
       fbs::SignalT signal;
       signal.slots = 0;
       p.programs[1]->segments[1]->commands[0]->body.Set(std::move(signal));
     },
     "signal: 0 slots; it must be at least 1"},
    {"WaitBeyondEvents",
     [](P& p) {
       p.programs[1]->events = 4;
       fbs::WaitT wait;
       wait.event = 2;
       wait.slots = 3;
       p.programs[1]->segments[1]->commands[0]->body.Set(std::move(wait));
     },
     "wait: 3 slots from event 2 on; there are 4 events"},
    {"NoSuchEvent",
     [](P& p) {
       p.programs[1]->events = 4;
       fbs::WaitT wait;
       wait.event = 4;
       p.programs[1]->segments[1]->commands[0]->body.Set(std::move(wait));
     },
     "wait: event 4 does not exist; there are 4"},
    {"EmptyProgram", [](P& p) { p.programs[1]->name = ""; }, "program 1 '': the name is empty"},
    {"StreamTwice", [](P& p) { p.programs[1]->streams.push_back("compute"); },
     "program 1 'step': the stream name 'compute' is used twice"},
    {"Stream", [](P& p) { CommandAt(p, 1, 2).stream = 1; },
     "program 1 'step': segment 1 'micro': command 2: command: stream 1 does not exist; there are 1"},
    {"CommandSource", [](P& p) { CommandAt(p, 1, 2).source = 9; }, "command 2: command: source 9 does not exist"},
    {"Kernel", [](P& p) { LaunchAt(p, 1, 1, 0).kernel = 7; },
     "command 0: launch: kernel 7 does not exist; there are 7"},
    {"OperandCount", [](P& p) { LaunchAt(p, 1, 1, 0).operands.pop_back(); },
     "launch of 'gather_rows': 2 operands, but the kernel has 3 arguments"},
    {"OperandBuffer", [](P& p) { LaunchAt(p, 1, 1, 0).operands[2] = fbs::Operand(10, 0); },
     "launch of 'gather_rows': operand 2: buffer 10 does not exist"},
    {"OperandRange", [](P& p) { LaunchAt(p, 1, 1, 0).operands[2] = fbs::Operand(kRows, 4); },
     "operand 2: 320 bytes at offset 4 reach beyond buffer 'rows' of 320 bytes"},
    {"OperandOffset", [](P& p) { LaunchAt(p, 1, 1, 0).operands[2] = fbs::Operand(kRows, ~uint64_t{0}); },
     "reach beyond buffer 'rows'"},
    {"OperandSize", [](P& p) { LaunchAt(p, 1, 1, 0).operands[2] = fbs::Operand(kProduct, 0); },
     "operand 2: 320 bytes at offset 0 reach beyond buffer 'product' of 160 bytes"},
    {"OperandDType", [](P& p) { p.kernels[kGather]->arguments[1]->dtype = fbs::DType::F32; },
     "operand 1: buffer 'tokens' is i32[5], but the kernel takes f32[5]"},
    {"OperandMisaligned", [](P& p) { LaunchAt(p, 1, 1, 2).operands[0] = fbs::Operand(kRows, 2); },
     "offset 2 into buffer 'rows' is no multiple of 4, which the kernel takes"},
    {"WritesConstant", [](P& p) { LaunchAt(p, 1, 1, 2).operands[2] = fbs::Operand(kWeight, 0); },
     "launch of 'fixture_add': operand 2: writes buffer 'weight' of kind Constant"},
    {"WritesInput",
     [](P& p) {
       p.buffers[kTokens]->dtype = fbs::DType::F32;
       p.kernels[kGather]->arguments[1]->dtype = fbs::DType::F32;
       p.kernels[kGather]->arguments[1]->access = fbs::Access::ReadWrite;
     },
     "operand 1: writes buffer 'tokens' of kind Input"},
    {"ScratchNotLast",
     [](P& p) {
       std::swap(p.kernels[kMatmul]->arguments[2], p.kernels[kMatmul]->arguments[3]);
       std::swap(LaunchAt(p, 1, 1, 1).operands[2], LaunchAt(p, 1, 1, 1).operands[3]);
     },
     "operand 2: scratch buffer 'workspace' may only be the last operand"},
    {"ScratchRead", [](P& p) { p.kernels[kMatmul]->arguments[3]->access = fbs::Access::ReadWrite; },
     "scratch buffer 'workspace' may only be the last operand of a registered kernel, for a written argument"},
    {"ScratchSometimes",
     [](P& p) {
       auto other = std::make_unique<fbs::BufferT>(*p.buffers[kWorkspace]);
       other->kind = fbs::BufferKind::Temporary;
       p.buffers.push_back(std::move(other));
       auto& commands = p.programs[1]->segments[1]->commands;
       commands.push_back(std::make_unique<fbs::CommandT>(*commands[1]));
       commands.back()->body.AsLaunch()->operands[3] = fbs::Operand(10, 0);
     },
     "other launches of this kernel have a scratch buffer as their last operand"},
    {"FaultThatIsRead",
     [](P& p) {
       auto fault = std::make_unique<fbs::BufferT>(*p.buffers[kTokens]);
       fault->kind = fbs::BufferKind::Fault;
       fault->slots = 1;
       fault->slot_stride = 0;
       p.buffers.push_back(std::move(fault));
       LaunchAt(p, 1, 1, 0).operands[1] = fbs::Operand(10, 0);
     },
     "operand 1: buffer 'tokens' of kind Fault may only be read and written at once"},
    {"CopyIntoAFault",
     [](P& p) {
       auto fault = std::make_unique<fbs::BufferT>(*p.buffers[kTokens]);
       fault->kind = fbs::BufferKind::Fault;
       fault->slots = 1;
       fault->slot_stride = 0;
       p.buffers.push_back(std::move(fault));
       CopyAt(p, 1, 2, 0).bytes = 4;
       *CopyAt(p, 1, 2, 0).destination = fbs::Operand(10, 0);
     },
     "copy: destination: writes buffer 'tokens' of kind Fault, which only kernels write"},
    {"CopyBuffer", [](P& p) { *CopyAt(p, 1, 2, 0).source = fbs::Operand(11, 0); }, "copy: source: buffer 11 does not"},
    {"CopyTooLong", [](P& p) { CopyAt(p, 1, 2, 0).bytes = 161; }, "copy: source: 161 bytes at offset 0 reach beyond"},
    {"CopyIntoConstant", [](P& p) { *CopyAt(p, 1, 2, 0).destination = fbs::Operand(kWeight, 0); },
     "copy: destination: writes buffer 'weight' of kind Constant"},
    {"CallSegment", [](P& p) { p.programs[1]->timeline[1] = fbs::SegmentCall(3, 0); },
     "program 1 'step': call 1: segment 3 does not exist; there are 3"},
    {"CallSlot", [](P& p) { p.programs[1]->timeline[2] = fbs::SegmentCall(1, 2); },
     "call 2: slot 2 of segment 'micro' does not exist in buffer 'tokens', which has 2 slots"},
    {"CallSlotLimit", [](P& p) { p.programs[1]->timeline[0] = fbs::SegmentCall(0, kMaxSlots); }, "is not below"},
};

class VerifyPrograms : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyPrograms, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyPrograms, ::testing::ValuesIn(kProgramRules), NameOfRule);

}  // namespace
}  // namespace bowline
