// Rules of a plan's purpose: its target, mesh, names and attachments; and rules that only a file breaks which no
// compiler wrote. verify_*_test.cc have the rules of one part of plans each.

#include "runtime/plan/verify/semantic_verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

TEST(VerifyHeaderGood, AcceptsTheFixture) { ExpectAccepted(MakePlan()); }

std::function<void(P&)> Attached(const char* name, const std::string& text) {
  return [=](P& p) {
    p.attachments[0]->name = name;
    p.attachments[0]->text = text;
  };
}

TEST(VerifyHeaderGood, AcceptsTextsOfUsers) {
  fbs::PlanT plan = MakePlan();
  Attached("notes.txt", "{")(plan);
  ExpectAccepted(plan);
}

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
    {"ConfigIsNoJson", [](P& p) { p.attachments[0]->text = "{"; }, "the plan's config.json: not valid JSON: "},
    {"ConfigIsEmpty", [](P& p) { p.attachments[0]->text = ""; }, "the plan's config.json: not valid JSON: "},
    {"ConfigIsAnArray", [](P& p) { p.attachments[0]->text = "[]"; },
     "the plan's config.json is an array, and not an object"},
    {"FunctionKeysAreNested", Attached("function_keys.json", std::string(100, '[')),
     "the plan's function_keys.json: not valid JSON: arrays and objects are nested more than 32 deep"},
    {"FunctionKeyIsAText", Attached("function_keys.json", R"({"hidden_size": "x"})"),
     "the plan's function_keys.json: \"hidden_size\" is a string, and not an object"},
    {"FunctionKeyOfANumber", Attached("function_keys.json", R"({"hidden_size": {"null": 1}})"),
     "the plan's function_keys.json: \"hidden_size\" has an integer for \"null\", and not a boolean"},
    {"IgnoredTensorIsAnObject", Attached("ignored_tensors.json", R"({"lm_head": {}})"),
     "the plan's ignored_tensors.json: \"lm_head\" is an object, and not a parameter's name"},
};

class VerifyHeader : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyHeader, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyHeader, ::testing::ValuesIn(kHeaderRules), NameOfRule);

// Mistakes that the writer cannot express: these tests change the bytes.

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
