// Each rule is broken once, alone, in an otherwise sound plan.

#include "runtime/plan/semantic_verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>

#include "runtime/base/sha256.h"
#include "runtime/plan/plan_view.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // the fixture: bowline::testing

struct Rule {
  const char* name;
  std::function<void(fbs::PlanT&)> breaks;
  const char* message;
};

class SemanticVerifier : public ::testing::TestWithParam<Rule> {};

TEST(SemanticVerifierGood, AcceptsTheFixture) {
  fbs::PlanT plan = MakePlan();
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
}

// A kernel that is launched by a grid instead.
fbs::GridT& GridOf(fbs::PlanT& plan, std::vector<uint32_t> blocks, std::vector<uint32_t> threads) {
  fbs::KernelT& kernel = *plan.kernels[kAdd];
  fbs::GridT grid;
  grid.blocks = std::move(blocks);
  grid.threads = std::move(threads);
  kernel.geometry.Set(std::move(grid));
  return *kernel.geometry.AsGrid();
}

// What each piece of kAdd, an index of its range, touches of its first argument.
fbs::AccessMapT& MapOf(fbs::PlanT& plan) {
  auto& maps = plan.kernels[kAdd]->access_maps;
  maps.push_back(std::make_unique<fbs::AccessMapT>());
  maps.back()->strides = {1};
  maps.back()->count = 1;
  return *maps.back();
}

TEST(SemanticVerifierGood, AcceptsFactsAboutCode) {
  fbs::PlanT plan = MakePlan();
  MapOf(plan).argument = 2;
  fbs::CodeT& code = *plan.images[0]->codes[0];
  const Sha256Digest digest = Sha256Of({code.data.data(), code.data.size()});
  code.hash = std::make_unique<fbs::Hash256>(flatbuffers::span<const uint8_t, 32>(digest.data(), 32));
  plan.images[0]->codes.push_back(std::make_unique<fbs::CodeT>(code));
  code.target = "x86-64-v4";
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
}

TEST(SemanticVerifierGood, AcceptsGrids) {
  const std::pair<std::vector<uint32_t>, std::vector<uint32_t>> grids[] = {
      {{}, {}}, {{1}, {1}}, {{7, 5, 3}, {32, 4, 2}}, {{2147483647}, {1024}}, {{1, 2147483647, 1}, {1, 1, 1024}}};
  for (const auto& [blocks, threads] : grids) {
    fbs::PlanT plan = MakePlan();
    fbs::GridT& grid = GridOf(plan, blocks, threads);
    grid.shared_bytes = 49152;
    grid.constants = {1, ~uint64_t{0}};
    const auto bytes = BytesOf(plan);
    EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  }
}

TEST_P(SemanticVerifier, Refuses) {
  fbs::PlanT plan = MakePlan();
  GetParam().breaks(plan);
  const auto bytes = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

using P = fbs::PlanT;

const Rule kHeaderRules[] = {
    {"ArenaTooLarge", [](P& p) { p.arena_bytes = ~uint64_t{0}; }, "arena_bytes 18446744073709551615 is more than 2^62"},
    {"EmptyDevice", [](P& p) { p.target->device = ""; }, "target: the device is empty"},
    {"EmptyArch", [](P& p) { p.target->arch = ""; }, "target: the arch is empty"},
    {"EmptyCpu", [](P& p) { p.target->cpu = ""; }, "target: the cpu is empty"},
    {"NoThreads", [](P& p) { p.target->threads = 0; }, "target: 0 threads"},
    {"TooManyThreads", [](P& p) { p.target->threads = 4097; }, "target: 4097 threads"},
    {"EmptyAxisName", [](P& p) { p.mesh[0]->name = ""; }, "mesh axis 0: the axis name is empty"},
    {"EmptyAxis", [](P& p) { p.mesh[0]->size = 0; }, "mesh axis 0 'dp': size 0"},
    {"AxisTwice", [](P& p) { p.mesh.push_back(std::make_unique<fbs::AxisT>(*p.mesh[0])); },
     "mesh axis 1: the axis name 'dp' is used twice"},
    {"TooManyRanks",
     [](P& p) {
       p.mesh.push_back(std::make_unique<fbs::AxisT>());
       p.mesh[1]->name = "tp";
       p.mesh[0]->size = p.mesh[1]->size = 1 << 16;
     },
     "more than 2^31 ranks"},
    {"AttachmentTwice", [](P& p) { p.attachments.push_back(std::make_unique<fbs::AttachmentT>(*p.attachments[0])); },
     "attachment 1: the name 'config.json' is used twice"},
};

const Rule kMemoryRules[] = {
    {"EmptyName", [](P& p) { p.buffers[kRows]->name = ""; }, "buffer 5 '': the name is empty"},
    {"UnknownKind", [](P& p) { p.buffers[kRows]->kind = static_cast<fbs::BufferKind>(8); },
     "buffer 5 'rows': unknown buffer kind 8"},
    {"UnknownSpace", [](P& p) { p.buffers[kRows]->space = static_cast<fbs::MemorySpace>(3); },
     "buffer 5 'rows': unknown memory space 3"},
    {"UnknownDType", [](P& p) { p.buffers[kRows]->dtype = static_cast<fbs::DType>(10); },
     "buffer 5 'rows': unknown dtype 10"},
    {"NegativeExtent", [](P& p) { p.buffers[kRows]->shape[1] = -16; },
     "buffer 5 'rows': extent -16 of dimension 1 is negative"},
    {"RankTooLarge", [](P& p) { p.buffers[kRows]->shape.resize(33, 1); }, "rank 33 is more than 32"},
    {"ProductOverflows", [](P& p) { p.buffers[kRows]->shape = {int64_t{1} << 32, int64_t{1} << 32}; },
     "buffer 5 'rows': f32[4294967296, 4294967296] has more than 2^62 bytes"},
    {"OverflowHiddenByZero", [](P& p) { p.buffers[kRows]->shape = {int64_t{1} << 62, int64_t{1} << 62, 0}; },
     "has more than 2^62 bytes"},
    {"BytesDisagree", [](P& p) { p.buffers[kRows]->bytes += 4; }, "states 324 bytes, but f32[5, 16] has 320"},
    {"Misaligned", [](P& p) { p.buffers[kRows]->offset += 4; }, "is no multiple of its alignment 64"},
    {"NoSlots", [](P& p) { p.buffers[kRows]->slots = 0; }, "buffer 5 'rows': 0 slots"},
    {"TooManySlots", [](P& p) { p.buffers[kRows]->slots = kMaxSlots + 1; }, "slots; it must be 1 to"},
    {"StrideWithoutSlots", [](P& p) { p.buffers[kRows]->slot_stride = 320; }, "slot_stride 320 must be 0"},
    {"StrideTooSmall", [](P& p) { p.buffers[kTokens]->slot_stride = 0; }, "buffer 3 'tokens': slot_stride 0 must be"},
    {"StrideMisaligned", [](P& p) { p.buffers[kTokens]->slot_stride = 68; }, "slot_stride 68 must be a multiple of 64"},
    {"BeyondTheArena", [](P& p) { p.arena_bytes -= 1; }, "buffer 9 'workspace': 1 slot(s) of 65536 bytes"},
    {"OffsetWraps", [](P& p) { p.buffers[kRows]->offset = ~uint64_t{63}; }, "end beyond the arena"},
    {"SlotsBeyondTheArena", [](P& p) { p.buffers[kTokens]->slots = 10000; }, "10000 slot(s) of 20 bytes"},
    {"StrideWraps", [](P& p) { p.buffers[kTokens]->slot_stride = ~uint64_t{63}; }, "end beyond the arena"},
    {"BufferSource", [](P& p) { p.buffers[kRows]->source = 3; },
     "buffer 5 'rows': source 3 does not exist; there are 3"},
    {"EmptyKey", [](P& p) { p.states[0]->key = ""; }, "state 0 '': the key is empty"},
    {"KeyTwice", [](P& p) { p.states[1]->key = p.states[0]->key; }, "the key 'model.embed.weight' is used twice"},
    {"RoleAxisOfNoRoles", [](P& p) { p.role_axis = 1; }, "role_axis 1 tells roles apart, but there are not several"},
    {"UnknownFlags", [](P& p) { p.states[0]->flags = static_cast<fbs::StateFlag>(0xc3); },
     "state 0 'model.embed.weight': unknown flags c0"},
    {"NotSaved", [](P& p) { p.states[1]->flags = fbs::StateFlag::NONE; },
     "state 1 'steps': is none, but must be one of Saved|Mirror|PerRequest, which says where its value comes from when "
     "a run goes "
     "on"},
    {"SavedMirror", [](P& p) { p.states[0]->flags |= fbs::StateFlag::Mirror; },
     "state 0 'model.embed.weight': is Trained|Saved|Weight|Mirror, but must be one of Saved|Mirror|PerRequest"},
    {"MirrorOfNothing", [](P& p) { p.states[0]->flags = fbs::StateFlag::Weight | fbs::StateFlag::Mirror; },
     "state 0 'model.embed.weight': is a Mirror, but no state of its key is Saved"},
    {"TrainedState", [](P& p) { p.states[1]->flags |= fbs::StateFlag::Trained; },
     "state 1 'steps': is Trained|Saved, but only a Weight is Trained"},
    {"SavedPerRequest", [](P& p) { p.states[1]->flags |= fbs::StateFlag::PerRequest; },
     "state 1 'steps': is Saved|PerRequest, but must be one of Saved|Mirror|PerRequest"},
    {"WeightPerRequest", [](P& p) { p.states[0]->flags = fbs::StateFlag::Weight | fbs::StateFlag::PerRequest; },
     "state 0 'model.embed.weight': is Weight|PerRequest, but a Weight serves all requests"},
    {"StepsPerRequest", [](P& p) { p.states[1]->flags = fbs::StateFlag::Step | fbs::StateFlag::PerRequest; },
     "is Step|PerRequest, but steps are counted by one i32 that is Saved and no Weight"},
    {"StepsInF32", [](P& p) { p.states[1]->flags |= fbs::StateFlag::Step; },
     "state 1 'steps': is Saved|Step, but steps are counted by one i32 that is Saved and no Weight, not by f32[1]"},
    {"WeightThatCountsSteps", [](P& p) { p.states[0]->flags |= fbs::StateFlag::Step; },
     "is Trained|Saved|Weight|Step, but steps are counted by one i32 that is Saved and no Weight"},
    {"StateBuffer", [](P& p) { p.states[0]->buffer = 10; }, "buffer 10 does not exist; there are 10"},
    {"StateKind", [](P& p) { p.states[0]->buffer = kRows; },
     "is Trained|Saved|Weight, which needs a buffer of kind Parameter, but buffer 5 'rows' is of kind Temporary"},
    {"StateSlots",
     [](P& p) {
       p.buffers[kSteps]->slots = 2;
       p.buffers[kSteps]->slot_stride = 64;
     },
     "buffer 1 'steps' has more than one slot"},
    {"StateTwice",
     [](P& p) {
       p.states.push_back(std::make_unique<fbs::StateT>(*p.states[0]));
       p.states[2]->key = "other";
     },
     "state 2 'other': buffer 0 'table' has two states"},
    {"FaultOfFloats", [](P& p) { p.buffers[kSum]->kind = fbs::BufferKind::Fault; },
     "buffer 8 'sum': is of kind Fault, which holds words of i32 in one slot"},
    {"FaultOfSlots", [](P& p) { p.buffers[kTokens]->kind = fbs::BufferKind::Fault; },
     "buffer 3 'tokens': is of kind Fault"},
    {"TwoFaults",
     [](P& p) {
       for (int i = 0; i < 2; ++i) {
         p.buffers.push_back(std::make_unique<fbs::BufferT>(*p.buffers[kTokens]));
         fbs::BufferT& fault = *p.buffers.back();
         fault.kind = fbs::BufferKind::Fault;
         fault.slots = 1;
         fault.slot_stride = 0;
       }
     },
     "of kind Fault, as buffer 10 of the same role is; all faults of a role are in one"},
    {"ConstantBuffer", [](P& p) { p.constants[0]->buffer = 10; }, "constant 0: buffer 10 does not exist"},
    {"ConstantKind", [](P& p) { p.constants[0]->buffer = kRows; },
     "constant 0: buffer 5 'rows' is of kind Temporary, not Constant"},
    {"ConstantSize", [](P& p) { p.constants[0]->data.pop_back(); },
     "constant 0: 511 bytes for buffer 2 'weight' of 512"},
    {"ConstantSlots",
     [](P& p) {
       p.buffers[kWeight]->slots = 2;
       p.buffers[kWeight]->slot_stride = 512;
     },
     "buffer 2 'weight' has more than one slot"},
    {"ConstantTwice", [](P& p) { p.constants.push_back(std::make_unique<fbs::ConstantDataT>(*p.constants[0])); },
     "constant 1: buffer 2 'weight' is filled twice"},
    {"ConstantAbsent", [](P& p) { p.constants.clear(); }, "buffer 2 'weight': is of kind Constant, but no constant"},
};

const Rule kKernelRules[] = {
    {"EmptyFormat", [](P& p) { p.images[0]->codes[0]->format = ""; }, "image 0: code 0: the format is empty"},
    {"EmptyImage", [](P& p) { p.images[0]->codes[0]->data.clear(); }, "image 0: code 0: there is no data"},
    {"CodeThatIsNone", [](P& p) { p.images[0]->codes[0]->format = "none"; },
     "image 0: code 0: it has data, but its format says that"},
    {"EmptyKernelName", [](P& p) { p.kernels[kAdd]->name = ""; }, "kernel 5 '': the name is empty"},
    {"UnknownOrigin", [](P& p) { p.kernels[kAdd]->origin = static_cast<fbs::KernelOrigin>(2); },
     "kernel 5 'fixture_add': unknown origin 2"},
    {"Image", [](P& p) { p.kernels[kAdd]->image = 1; }, "kernel 5 'fixture_add': image 1 does not exist; there are 1"},
    {"NoCode", [](P& p) { p.images[0]->codes.clear(); }, "image 0: there is no code"},
    {"CodeTwice", [](P& p) { p.images[0]->codes.push_back(std::make_unique<fbs::CodeT>(*p.images[0]->codes[0])); },
     "image 0: code 1: format 'elf' for the plan's target is there twice"},
    {"CodeBesideNone",
     [](P& p) {
       p.images[0]->codes.push_back(std::make_unique<fbs::CodeT>());
       p.images[0]->codes[1]->format = "none";
     },
     "image 0: code 1: its format says that there is no code, but the image has others"},
    {"HashOfOtherCode", [](P& p) { p.images[0]->codes[0]->hash = std::make_unique<fbs::Hash256>(); },
     "image 0: code 0: the hash is not that of the data"},
    {"NoExtent", [](P& p) { SetExtent(*p.kernels[kAdd], 0); }, "the extent of its launches 0 must be 1 to"},
    {"ExtentTooLarge", [](P& p) { SetExtent(*p.kernels[kAdd], uint64_t{1} << 63); }, "must be 1 to 2^63 - 1"},
    {"NoGeometry", [](P& p) { p.kernels[kAdd]->geometry.Reset(); },
     "kernel 5 'fixture_add': the geometry of its launches is absent"},
    {"MapOfARegisteredKernel",
     [](P& p) { MapOf(p).argument = 0, p.kernels[kMatmul]->access_maps.swap(p.kernels[kAdd]->access_maps); },
     "kernel 4 'matmul': it has access maps, but only a generated kernel may"},
    {"MapOfNoArgument", [](P& p) { MapOf(p).argument = 3; }, "access map 0: argument 3 does not exist; there are 3"},
    {"MapTwice", [](P& p) { MapOf(p), MapOf(p); }, "access map 1: argument 0 has another one"},
    {"MapOfNoDimension", [](P& p) { MapOf(p).strides.clear(); },
     "access map 0: 0 strides for launches of 1 dimensions"},
    {"MapOfNothing", [](P& p) { MapOf(p).count = 0; },
     "access map 0: 0 elements from 0 on of argument 0, which has 40"},
    {"MapBeyondTheEnd", [](P& p) { MapOf(p).offset = 1; }, "the last piece leaves the argument"},
    {"MapThatOverflows", [](P& p) { MapOf(p).strides = {uint64_t{1} << 60}; }, "the last piece leaves the argument"},
    {"GridOfARegisteredKernel",
     [](P& p) { GridOf(p, {1}, {32}), p.kernels[kAdd]->origin = fbs::KernelOrigin::Registered; },
     "kernel 5 'fixture_add': it says how it is launched, but a registered kernel knows that itself"},
    {"GridOfFourExtents", [](P& p) { GridOf(p, {1, 1, 1, 1}, {32}); },
     "its grid has more than three extents of blocks"},
    {"BlocksOfFourExtents", [](P& p) { GridOf(p, {1}, {1, 1, 1, 1}); },
     "its grid has more than three extents of threads"},
    {"GridWithoutBlocks", [](P& p) { GridOf(p, {4, 0}, {32}); },
     "kernel 5 'fixture_add': its grid has 0 blocks along an axis; it must be 1 to 2147483647"},
    {"GridWithoutThreads", [](P& p) { GridOf(p, {4}, {0}); },
     "its grid has 0 threads along an axis; it must be 1 to 1024"},
    {"TooManyBlocks", [](P& p) { GridOf(p, {2147483648}, {32}); }, "its grid has 2147483648 blocks along an axis"},
    {"TooManyBlocksTogether", [](P& p) { GridOf(p, {65536, 32768}, {32}); },
     "its grid has more than 2147483647 blocks"},
    {"BlocksThatOverflow", [](P& p) { GridOf(p, {2147483647, 2147483647, 2147483647}, {32}); },
     "its grid has more than 2147483647 blocks"},
    {"TooManyThreads", [](P& p) { GridOf(p, {1}, {1025}); }, "its grid has 1025 threads along an axis"},
    {"TooManyThreadsTogether", [](P& p) { GridOf(p, {1}, {64, 17}); }, "its grid has more than 1024 threads"},
    {"SymbolWithNul", [](P& p) { p.kernels[kAdd]->name = std::string("a\0b", 3); }, "the symbol contains a NUL"},
    {"Flops", [](P& p) { p.kernels[kAdd]->flops = -1; }, "cost -1 must be finite and not negative"},
    {"BytesMoved", [](P& p) { p.kernels[kAdd]->bytes_moved = std::nan(""); }, "cost nan must be finite"},
    {"EmptyAttribute", [](P& p) { p.kernels[kMatmul]->attributes[0]->name = ""; },
     "kernel 4 'matmul': the attribute name is empty"},
    {"AttributeTwice", [](P& p) { p.kernels[kMatmul]->attributes[1]->name = "batch"; },
     "kernel 4 'matmul': the attribute name 'batch' is used twice"},
    {"AttributeOfTwoTypes", [](P& p) { p.kernels[kMatmul]->attributes[0]->text = "x"; },
     "attribute 'batch' has more than one of ints, floats and text"},
    {"UnknownAccess", [](P& p) { p.kernels[kAdd]->arguments[1]->access = static_cast<fbs::Access>(4); },
     "kernel 5 'fixture_add': argument 1: unknown access 4"},
    {"NoAccess", [](P& p) { p.kernels[kAdd]->arguments[1]->access = static_cast<fbs::Access>(0); },
     "argument 1: unknown access 0"},
    {"ArgumentDType", [](P& p) { p.kernels[kAdd]->arguments[1]->dtype = static_cast<fbs::DType>(99); },
     "argument 1: unknown dtype 99"},
    {"ArgumentShape", [](P& p) { p.kernels[kAdd]->arguments[1]->shape[0] = -1; },
     "argument 1: extent -1 of dimension 0"},
    {"InPlaceOutput", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(3, 1); },
     "in_place pair 0: output argument 3 does not exist; there are 3"},
    {"InPlaceInput", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(2, 3); },
     "in_place pair 0: input argument 3 does not exist"},
    {"InPlaceOutputRead", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(0, 1); },
     "argument 0 is not written only"},
    {"InPlaceInputWritten", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(2, 2); },
     "argument 2 is not read only"},
    {"InPlaceSize", [](P& p) { p.kernels[kAdd]->arguments[1]->shape[0] = 1; }, "arguments 2 and 1 differ in size"},
};

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

const Rule kEntryRules[] = {
    {"EntryName", [](P& p) { p.entries[1]->name = ""; }, "entry 1 '': the entry name is empty"},
    {"EntryTwice", [](P& p) { p.entries[1]->name = "init"; }, "entry 1 'init': the entry name 'init' is used twice"},
    {"UnknownKind", [](P& p) { p.entries[1]->kind = static_cast<fbs::EntryKind>(8); },
     "entry 1 'step': unknown kind 8"},
    {"KindTwice", [](P& p) { p.entries[1]->kind = fbs::EntryKind::Init; },
     "entry 1 'step': is of kind Init, as another entry is; there may be one of a kind and bucket"},
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
    {"LimitOnFloats", [](P& p) { p.entries[1]->outputs[0]->limit = 3; }, "limit 3 on a port that is no integer input"},
};

// Each begins with MakePlanWithTwoRuns().
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
     "has the limit 32, which nobody checks in what a run computed"},
};

class OverlapVerifier : public ::testing::TestWithParam<Rule> {};

TEST_P(OverlapVerifier, Refuses) {
  fbs::PlanT plan = MakePlanWithTwoRuns();
  const auto good = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(good)).ok()) << VerifyPlan(PlanIn(good));
  GetParam().breaks(plan);
  const auto bytes = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

// Each begins with MakePlanWithPrepare().
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

class PreparationVerifier : public ::testing::TestWithParam<Rule> {};

TEST_P(PreparationVerifier, Refuses) {
  fbs::PlanT plan = MakePlanWithPrepare();
  const auto good = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(good)).ok()) << VerifyPlan(PlanIn(good));
  GetParam().breaks(plan);
  const auto bytes = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

std::string RuleName(const ::testing::TestParamInfo<Rule>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Header, SemanticVerifier, ::testing::ValuesIn(kHeaderRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Memory, SemanticVerifier, ::testing::ValuesIn(kMemoryRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Kernels, SemanticVerifier, ::testing::ValuesIn(kKernelRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Programs, SemanticVerifier, ::testing::ValuesIn(kProgramRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Entries, SemanticVerifier, ::testing::ValuesIn(kEntryRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Overlap, OverlapVerifier, ::testing::ValuesIn(kOverlapRules), RuleName);
INSTANTIATE_TEST_SUITE_P(Preparation, PreparationVerifier, ::testing::ValuesIn(kPreparationRules), RuleName);

// What the writer cannot express is broken in the bytes.

flatbuffers::Table* MutableCommand(const std::vector<uint8_t>& bytes, uint32_t segment, uint32_t command) {
  const auto* table = PlanIn(bytes).programs()->Get(1)->segments()->Get(segment)->commands()->Get(command);
  return const_cast<flatbuffers::Table*>(reinterpret_cast<const flatbuffers::Table*>(table));
}

TEST(SemanticVerifierBytes, RefusesUnknownUnionTags) {
  fbs::PlanT plan = MakePlan();
  for (uint8_t tag : {0, 8, 255}) {
    const std::vector<uint8_t> bytes = BytesOf(plan);
    ASSERT_TRUE(MutableCommand(bytes, 1, 2)->SetField<uint8_t>(fbs::Command::VT_BODY_TYPE, tag, 9));
    const absl::Status status = VerifyPlan(PlanIn(bytes));
    EXPECT_THAT(std::string(status.message()), HasSubstr("program 1 'step': segment 1 'micro': command 2: command: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(tag == 0 ? "the body is absent" : "unknown kind"));
  }
}

// Drops a field from the table's vtable.
void DropField(const flatbuffers::Table* table, flatbuffers::voffset_t field) {
  auto* base = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(table));
  flatbuffers::WriteScalar<flatbuffers::voffset_t>(const_cast<uint8_t*>(table->GetVTable()) + field, 0);
  ASSERT_EQ(reinterpret_cast<const flatbuffers::Table*>(base)->GetOptionalFieldOffset(field), 0);
}

TEST(SemanticVerifierBytes, RefusesUnknownGeometries) {
  fbs::PlanT plan = MakePlan();
  for (uint8_t tag : {3, 255}) {
    const std::vector<uint8_t> bytes = BytesOf(plan);
    const auto* kernel = reinterpret_cast<const flatbuffers::Table*>(PlanIn(bytes).kernels()->Get(kAdd));
    ASSERT_TRUE(const_cast<flatbuffers::Table*>(kernel)->SetField<uint8_t>(fbs::Kernel::VT_GEOMETRY_TYPE, tag, 0));
    EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()),
                HasSubstr("kernel 5 'fixture_add': unknown geometry " + std::to_string(tag)));
  }
}

TEST(SemanticVerifierBytes, RefusesAnAbsentUnionValue) {
  fbs::PlanT plan = MakePlan();
  const std::vector<uint8_t> bytes = BytesOf(plan);
  DropField(MutableCommand(bytes, 1, 2), fbs::Command::VT_BODY);
  EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()), HasSubstr("the body is absent"));
}

TEST(SemanticVerifierBytes, RefusesAnAbsentOperandOfACopy) {
  fbs::PlanT plan = MakePlan();
  for (auto [field, message] : {std::pair(fbs::Copy::VT_SOURCE, "copy: the source is absent"),
                                std::pair(fbs::Copy::VT_DESTINATION, "copy: the destination is absent")}) {
    const std::vector<uint8_t> bytes = BytesOf(plan);
    const auto* copy = PlanIn(bytes).programs()->Get(1)->segments()->Get(2)->commands()->Get(0)->body_as_Copy();
    DropField(reinterpret_cast<const flatbuffers::Table*>(copy), field);
    EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()), HasSubstr(message));
  }
}

// Points a vector field of `table` at a length of 1 whose one element of 8 bytes is not aligned to them.
bool Misalign(std::vector<uint8_t>& bytes, const void* table, flatbuffers::voffset_t field) {
  const auto offset = static_cast<const flatbuffers::Table*>(table)->GetOptionalFieldOffset(field);
  const size_t at = static_cast<size_t>(static_cast<const uint8_t*>(table) - bytes.data()) + offset;
  for (size_t length = (at + 8) / 8 * 8; length + 12 <= bytes.size(); length += 8) {
    if (flatbuffers::ReadScalar<uint32_t>(&bytes[length]) != 1) continue;
    flatbuffers::WriteScalar<uint32_t>(&bytes[at], static_cast<uint32_t>(length - at));
    return true;
  }
  return false;
}

// Found by plan_fuzz: the structural verifier accepts these.
TEST(SemanticVerifierBytes, RefusesMisalignedVectors) {
  fbs::PlanT plan = MakePlan();
  GridOf(plan, {1}, {32}).constants = {7};
  const std::vector<uint8_t> good = BytesOf(plan);
  const fbs::Kernel* matmul = PlanIn(good).kernels()->Get(kMatmul);
  const fbs::Kernel* fill = PlanIn(good).kernels()->Get(kZeroSum);
  const fbs::Kernel* add = PlanIn(good).kernels()->Get(kAdd);
  const std::tuple<const void*, flatbuffers::voffset_t, const char*> fields[] = {
      {PlanIn(good).buffers()->Get(kRows), fbs::Buffer::VT_SHAPE, "buffer 5 'rows': the extents are not aligned"},
      {matmul->arguments()->Get(1), fbs::Argument::VT_SHAPE, "argument 1: the extents are not aligned"},
      {matmul->attributes()->Get(0), fbs::Attribute::VT_INTS, "the integers of an attribute are not aligned"},
      {fill->attributes()->Get(0), fbs::Attribute::VT_FLOATS, "the numbers of an attribute are not aligned"},
      {add->geometry_as_Grid(), fbs::Grid::VT_CONSTANTS, "the constants are not aligned"},
      {PlanIn(good).programs()->Get(1)->segments()->Get(1)->commands()->Get(0)->body_as_Launch(),
       fbs::Launch::VT_OPERANDS, "the operands are not aligned"}};
  for (const auto& [table, field, message] : fields) {
    std::vector<uint8_t> bytes = good;
    const auto* moved = bytes.data() + (static_cast<const uint8_t*>(table) - good.data());
    ASSERT_TRUE(Misalign(bytes, moved, field)) << message;
    flatbuffers::Verifier verifier(bytes.data(), bytes.size());
    EXPECT_TRUE(fbs::VerifyPlanBuffer(verifier)) << "then this rule is no longer needed: " << message;
    EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()), HasSubstr(message));
  }
}

TEST(SemanticVerifierLimits, RefusesTimelinesThatNeverEnd) {
  fbs::PlanT plan = MakePlan();
  auto& commands = plan.programs[1]->segments[0]->commands;
  while (commands.size() < 20000) commands.push_back(std::make_unique<fbs::CommandT>(*commands[0]));
  plan.programs[1]->timeline.assign(20000, fbs::SegmentCall(0, 0));
  const auto bytes = BytesOf(plan);
  EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()), HasSubstr("the timeline runs more than"));
}

TEST(PlanView, DenseBytes) {
  EXPECT_EQ(ElementSize(fbs::DType::BF16), 2u);
  EXPECT_EQ(ElementSize(static_cast<fbs::DType>(77)), 0u);
  EXPECT_EQ(DenseBytes(fbs::DType::F64, nullptr), 8u);
}

}  // namespace
}  // namespace bowline
