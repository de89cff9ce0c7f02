// Rules of buffers, states and constants.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

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
    {"KeyOfSafetensors", [](P& p) { p.states[0]->key = "__metadata__"; }, "safetensors files reserve this key"},
    {"KeyTwice", [](P& p) { p.states[1]->key = p.states[0]->key; }, "the key 'model.embed.weight' is used twice"},
    {"RoleAxisOfNoRoles", [](P& p) { p.role_axis = 1; }, "role_axis 1 tells roles apart, but there are not several"},
    {"UnknownFlags", [](P& p) { p.states[0]->flags = static_cast<fbs::StateFlag>(0xc3); },
     "state 0 'model.embed.weight': unknown flags 80"},
    {"NotSaved", [](P& p) { p.states[1]->flags = fbs::StateFlag::NONE; },
     "state 1 'steps': is none, but must be one of Saved|Mirror|PerRequest|Cache: the flag says how a "
     "resumed run gets the value"},
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
     "of kind Fault, as buffer 10 of the same role is; a role has one buffer of this kind"},
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

class VerifyMemory : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyMemory, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyMemory, ::testing::ValuesIn(kMemoryRules), NameOfRule);

}  // namespace
}  // namespace bowline
