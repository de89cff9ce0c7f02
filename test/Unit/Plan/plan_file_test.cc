#include "runtime/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "runtime/plan/plan_writer.h"
#include "runtime/plan/schema_hash.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using testing::BytesOf;
using testing::FixContentHash;
using ::testing::HasSubstr;
using testing::MakePlan;
using testing::PlanIn;

std::string MessageOf(absl::Span<const uint8_t> bytes) {
  const auto loaded = LoadedPlan::FromBytes(bytes, "x.plan");
  return std::string(loaded.status().message());
}

TEST(PlanFile, LoadsWhatWasWritten) {
  fbs::PlanT plan = MakePlan();
  const std::vector<uint8_t> bytes = BytesOf(plan);
  const auto loaded = LoadedPlan::FromBytes(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->name()->str(), "fixture");
  EXPECT_EQ((*loaded)->buffers()->size(), plan.buffers.size());
  EXPECT_EQ(loaded->bytes(), absl::MakeConstSpan(bytes));
}

TEST(PlanFile, LoadsBytesAtAnyAlignment) {
  fbs::PlanT plan = MakePlan();
  std::vector<uint8_t> bytes = BytesOf(plan);
  bytes.insert(bytes.begin(), 0xee);
  EXPECT_TRUE(LoadedPlan::FromBytes(absl::MakeConstSpan(bytes).subspan(1)).ok());
}

TEST(PlanFile, EqualPlansGiveEqualBytes) {
  fbs::PlanT a = MakePlan(), b = MakePlan();
  EXPECT_EQ(BytesOf(a), BytesOf(b));
  EXPECT_EQ(BytesOf(a), BytesOf(a));
  b.seed = 8;
  EXPECT_NE(BytesOf(a), BytesOf(b));
}

TEST(PlanFile, ReadBackAndWrittenAgainIsTheSame) {
  fbs::PlanT plan = MakePlan();
  const std::vector<uint8_t> bytes = BytesOf(plan);
  fbs::PlanT again;
  PlanIn(bytes).UnPackTo(&again);
  EXPECT_EQ(BytesOf(again), bytes);
}

TEST(PlanFile, WritesAndMapsFiles) {
  const TempDirectory directory;
  const std::string path = directory / "a.plan";
  fbs::PlanT plan = MakePlan();
  ASSERT_TRUE(WritePlanFile(plan, path).ok());
  const auto loaded = LoadedPlan::FromFile(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->name(), path);
  EXPECT_EQ(absl::MakeConstSpan(testing::BytesAsTheyAre(plan)), loaded->bytes());
}

TEST(PlanFile, NeverWritesAPlanThatItWouldNotRead) {
  const TempDirectory directory;
  const std::string path = directory / "a.plan";
  fbs::PlanT plan = MakePlan();
  plan.entries[1]->program = 9;
  EXPECT_THAT(std::string(WritePlanFile(plan, path).message()), HasSubstr("program 9 does not exist"));
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(PlanFile, WriterNamesWhatIsMissing) {
  const auto message = [](auto damage) {
    fbs::PlanT plan = MakePlan();
    damage(plan);
    const auto bytes = WritePlan(plan);
    return std::string(bytes.status().message());
  };
  EXPECT_THAT(message([](fbs::PlanT& p) { p.target.reset(); }), HasSubstr("target is missing"));
  EXPECT_THAT(message([](fbs::PlanT& p) { p.buffers[3].reset(); }), HasSubstr("buffer 3 is missing"));
  EXPECT_THAT(message([](fbs::PlanT& p) { p.kernels[1]->arguments[0].reset(); }), HasSubstr("'fill': argument 0"));
  EXPECT_THAT(message([](fbs::PlanT& p) { p.programs[1]->segments[1]->commands[2]->body.Reset(); }),
              HasSubstr("body of program 'step': segment 'micro': command 2"));
  EXPECT_THAT(message([](fbs::PlanT& p) { testing::CopyAt(p, 1, 2, 0).source.reset(); }), HasSubstr("an operand of"));
  EXPECT_THAT(message([](fbs::PlanT& p) { p.entries[1]->outputs[0].reset(); }), HasSubstr("'step': output 0"));
}

TEST(PlanFile, EveryTruncationIsAnError) {
  fbs::PlanT plan = MakePlan();
  const std::vector<uint8_t> bytes = BytesOf(plan);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(LoadedPlan::FromBytes(absl::MakeConstSpan(bytes).first(size)).ok()) << size;
  }
}

TEST(PlanFile, EveryFlippedBitIsAnError) {
  fbs::PlanT plan = MakePlan();
  std::vector<uint8_t> bytes = BytesOf(plan);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 1 << (i % 8);
    const auto loaded = LoadedPlan::FromBytes(bytes);
    ASSERT_FALSE(loaded.ok()) << i;
    ASSERT_NE(loaded.status().code(), absl::StatusCode::kInternal) << loaded.status();
    bytes[i] ^= 1 << (i % 8);
  }
}

TEST(PlanFile, AnAppendedByteIsAnError) {
  fbs::PlanT plan = MakePlan();
  std::vector<uint8_t> bytes = BytesOf(plan);
  bytes.push_back(0);
  EXPECT_THAT(MessageOf(bytes), AllOf(HasSubstr("'x.plan'"), HasSubstr("content hash")));
}

TEST(PlanFile, SaysThatAFileIsNoPlan) {
  const std::string text = "{\"model_type\": \"llama\"}";
  const auto loaded =
      LoadedPlan::FromBytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "config.json");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loaded.status().message()),
              AllOf(HasSubstr("'config.json'"), HasSubstr("not a Bowline plan")));
}

TEST(PlanFile, AMissingFileIsNotFound) {
  const auto loaded = LoadedPlan::FromFile("/nonexistent/a.plan");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
}

void SetVersion(std::vector<uint8_t>& bytes, uint16_t major, uint16_t minor) {
  const auto* version = reinterpret_cast<const flatbuffers::Table*>(PlanIn(bytes).version());
  auto* table = const_cast<flatbuffers::Table*>(version);
  ASSERT_TRUE(table->SetField<uint16_t>(fbs::Version::VT_MAJOR, major, 0));
  ASSERT_TRUE(table->SetField<uint16_t>(fbs::Version::VT_MINOR, minor, 0));
  FixContentHash(bytes);
}

TEST(PlanFile, RefusesOtherMajorVersions) {
  for (const uint16_t major : {0, 1, 2, 4, 65535}) {
    fbs::PlanT plan = MakePlan();
    std::vector<uint8_t> bytes = BytesOf(plan);
    SetVersion(bytes, major, 0);
    const auto loaded = LoadedPlan::FromBytes(bytes, "x.plan");
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(loaded.status().message()),
                AllOf(HasSubstr("written by 'bowline test' in plan format " + std::to_string(major) + ".0"),
                      HasSubstr("this build reads format 3.2"), HasSubstr("compile the model again")));
  }
}

TEST(PlanFile, ReadsOlderMinorVersions) {
  fbs::PlanT plan = MakePlan();
  std::vector<uint8_t> bytes = BytesOf(plan);
  // A file of an older schema, without the fields that were appended since.
  const_cast<uint8_t*>(PlanIn(bytes).schema_hash()->bytes()->data())[0] ^= 0xff;
  SetVersion(bytes, 3, 0);
  EXPECT_TRUE(LoadedPlan::FromBytes(bytes).ok()) << LoadedPlan::FromBytes(bytes).status();
}

TEST(PlanFile, ReportsBothSchemasWhenTheyDiffer) {
  fbs::PlanT plan = MakePlan();
  std::vector<uint8_t> bytes = BytesOf(plan);
  const_cast<uint8_t*>(PlanIn(bytes).schema_hash()->bytes()->data())[0] ^= 0xff;
  FixContentHash(bytes);
  const std::string other = ToHex({PlanIn(bytes).schema_hash()->bytes()->data(), 32});
  EXPECT_THAT(MessageOf(bytes), AllOf(HasSubstr(other), HasSubstr(kPlanSchemaHash), HasSubstr("'bowline test'")));
}

TEST(PlanFile, RefusesStructuralDamageBehindARightHash) {
  fbs::PlanT plan = MakePlan();
  const std::vector<uint8_t> good = BytesOf(plan);
  std::mt19937 random(TestSeed());
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> bytes = good;
    bytes[8 + random() % (bytes.size() - 8)] = static_cast<uint8_t>(random());
    // The header must stay readable for the hash to be fixed.
    if (LoadedPlan::FromBytes(bytes).status().message().find("header") != absl::string_view::npos) continue;
    FixContentHash(bytes);
    refused += !LoadedPlan::FromBytes(bytes).ok();  // and above all, does not crash
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace bowline
