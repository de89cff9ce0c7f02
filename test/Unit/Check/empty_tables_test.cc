// Plans whose tables are empty, alone and together, in every combination: each is refused, or all that reads plans
// bears it. An index that nobody set is 0, which does not exist in a table without entries. Reading it is seen where
// FlatBuffers asserts: in builds with assertions.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checker/CommunicationReport.h"
#include "checker/MemoryTimeline.h"
#include "checker/PlanChecker.h"
#include "checker/PlanPicture.h"
#include "checker/PredictedTimeline.h"
#include "runtime/executor/session.h"
#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using Empty = std::function<void(fbs::PlanT&)>;

const std::vector<Empty> kTables = {
    [](fbs::PlanT& p) { p.buffers.clear(); },
    [](fbs::PlanT& p) { p.states.clear(); },
    [](fbs::PlanT& p) { p.constants.clear(); },
    [](fbs::PlanT& p) { p.images.clear(); },
    [](fbs::PlanT& p) { p.kernels.clear(); },
    [](fbs::PlanT& p) { p.programs.clear(); },
    [](fbs::PlanT& p) { p.entries.clear(); },
    [](fbs::PlanT& p) { p.sources.clear(); },
    [](fbs::PlanT& p) { p.coordinates.clear(); },
    [](fbs::PlanT& p) { p.communicators.clear(); },
    [](fbs::PlanT& p) { p.mesh.clear(); },
    [](fbs::PlanT& p) { p.certificates.clear(); },
    [](fbs::PlanT& p) {
      p.roles.clear();
      p.role_axis = 0;
    },
};

// Those of all programs, segments, kernels and entries.
const std::vector<Empty> kInnerTables = {
    [](fbs::PlanT& p) {
      for (auto& program : p.programs) program->streams.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& program : p.programs) program->segments.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& program : p.programs) program->timeline.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& program : p.programs) {
        for (auto& segment : program->segments) segment->commands.clear();
      }
    },
    [](fbs::PlanT& p) {
      for (auto& kernel : p.kernels) kernel->arguments.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& kernel : p.kernels) kernel->in_place.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& entry : p.entries) entry->inputs.clear();
    },
    [](fbs::PlanT& p) {
      for (auto& entry : p.entries) entry->outputs.clear();
    },
};

// Reads all of a plan that VerifyPlan accepted, and runs it where one rank can.
void Use(fbs::PlanT& owned) {
  const std::vector<uint8_t> bytes = testing::BytesOf(owned);
  auto loaded = LoadedPlan::FromBytes(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const fbs::Plan& plan = loaded->plan();
  ComputeMeaning(plan).status().IgnoreError();
  PlanChecker checker(plan);
  checker.check().IgnoreError();
  formatReport(checker.report());
  const Timeline timeline(plan);
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    plotMemory(computeMemoryTimeline(timeline, i), 40, 4);
    reportCommunication(plan, i, {});
    drawPlan(timeline, TextOf(plan.entries()->Get(i)->name()), *costModelOf(plan)).status().IgnoreError();
  }
  SessionOptions options;
  options.driver = "null";
  options.prove = false;
  auto session = Session::Create(*std::move(loaded), options);
  if (!session.ok()) return;
  for (uint32_t i = 0; i < (*session)->plan().entries()->size(); ++i) {
    (*session)->Run(static_cast<int>(i)).IgnoreError();
  }
}

class EmptyTables : public ::testing::Test {
 protected:
  // Counts the accepted ones among the plan with each of the sets of tables, which are bits, emptied.
  void Try(const fbs::PlanT& plan, const std::vector<Empty>& tables, const Empty& first) {
    for (uint32_t set = 0; set < uint32_t{1} << tables.size(); ++set) {
      SCOPED_TRACE("tables " + std::to_string(set));
      fbs::PlanT changed = plan;
      first(changed);
      for (size_t i = 0; i < tables.size(); ++i) {
        if ((set >> i & 1) != 0) tables[i](changed);
      }
      testing::SealCodes(changed);
      flatbuffers::FlatBufferBuilder builder;
      builder.Finish(fbs::Plan::Pack(builder, &changed));
      if (!VerifyPlan(*fbs::GetPlan(builder.GetBufferPointer())).ok()) continue;
      ++accepted_;
      Use(changed);
    }
  }

  int accepted_ = 0;
};

TEST_F(EmptyTables, AreRefusedOrBorne) {
  fbs::PlanT certified = testing::MakePipeline(2, 2, 3);
  ASSERT_TRUE(CertifyPlan(certified).ok());
  for (fbs::PlanT plan : {testing::MakePlanWithPrepare(), testing::MakePlanWithSequences(),
                          testing::MakeShardedLoop(2, 2, 2), certified}) {
    // BytesOf sets the fields that Pack needs.
    testing::BytesOf(plan);
    Try(plan, kTables, [](fbs::PlanT&) {});
    Try(plan, kInnerTables, [](fbs::PlanT&) {});
    for (const Empty& empty : kTables) Try(plan, kInnerTables, empty);
  }
  EXPECT_GT(accepted_, 100);
}

}  // namespace
}  // namespace bowline
