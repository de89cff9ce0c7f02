// Data that ranks send, and why: counts and bytes of plans made by hand, against numbers from the definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "checker/CommunicationReport.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::CollectiveKind;
using testing::BytesOf;
using testing::PlanIn;
using testing::RankPlan;

uint32_t AddSource(fbs::PlanT& plan, const std::string& location, const std::string& reason) {
  auto source = std::make_unique<fbs::SourceT>();
  source->location = location;
  source->pass = "test";
  source->reason = reason;
  plan.sources.push_back(std::move(source));
  return static_cast<uint32_t>(plan.sources.size() - 1);
}

// Two ranks of three: a sum over tp twice per call, of two layers, called three times; one collective of each other
// kind.
class CommunicationReportTest : public ::testing::Test {
 protected:
  CommunicationReportTest() {
    RankPlan ranks({{"dp", 2}, {"tp", 3}}, -1);
    const uint32_t tp = ranks.Communicator("tp", {1}), all = ranks.Communicator("all", {0, 1});
    const uint32_t in = ranks.Buffer(0, "in", BufferKind::Input, 12);
    const uint32_t sum = ranks.Buffer(0, "sum", BufferKind::Temporary, 12);
    const uint32_t wide = ranks.Buffer(0, "wide", BufferKind::Temporary, 36);
    const uint32_t out = ranks.Buffer(0, "out", BufferKind::Output, 12);
    const uint32_t micro = ranks.Segment(0, "micro");
    ranks.Collective(0, 0, CollectiveKind::AllReduce, tp, in, sum, 12);
    ranks.Collective(0, 0, CollectiveKind::AllReduce, tp, in, sum, 12);
    const uint32_t last = ranks.Segment(0, "last");
    ranks.Collective(0, 0, CollectiveKind::AllGather, tp, sum, wide, 12);
    ranks.Collective(0, 0, CollectiveKind::ReduceScatter, tp, wide, sum, 12);
    ranks.Collective(0, 0, CollectiveKind::AllToAll, tp, in, out, 4);
    ranks.Collective(0, 0, CollectiveKind::AllReduce, all, in, sum, 12);
    for (int call = 0; call < 3; ++call) ranks.Call(0, micro);
    ranks.Call(0, last);
    plan_ = ranks.Finish();
    for (const int layer : {0, 1}) {
      const std::string number = std::to_string(layer);
      plan_.programs[0]->segments[micro]->commands[static_cast<size_t>(layer)]->source =
          AddSource(plan_, "layers." + number + ".down", "for layers." + number + ".mlp at 1.5");
    }
  }

  CommunicationReport Report(const CommunicationReportOptions& options = {}) {
    const std::vector<uint8_t> bytes = BytesOf(plan_);
    return reportCommunication(PlanIn(bytes), 0, options);
  }

  fbs::PlanT plan_;
};

TEST_F(CommunicationReportTest, LayersAreOneGroup) {
  const CommunicationReport report = Report();
  ASSERT_EQ(report.groups.size(), 5u);
  const CommunicationGroup& sums = report.groups[0];
  EXPECT_EQ(sums.operation, "all_reduce on 'tp'");
  EXPECT_EQ(sums.axes, "tp");
  EXPECT_EQ(sums.source, "layers.*.down");
  EXPECT_EQ(sums.reason, "for layers.*.mlp at 1.*");
  EXPECT_EQ(sums.count, 6u);
  EXPECT_EQ(sums.bytesSent, 6u * 2 * 48 * 2 / 3);
}

TEST_F(CommunicationReportTest, BytesOfEachKind) {
  const CommunicationReport report = Report();
  const auto bytes_of = [&](const std::string& operation, uint64_t count) {
    for (const CommunicationGroup& group : report.groups) {
      if (group.operation == operation && group.count == count) return group.bytesSent;
    }
    ADD_FAILURE() << "no " << operation;
    return uint64_t{0};
  };
  EXPECT_EQ(bytes_of("all_gather on 'tp'", 1), 2u * 48);
  EXPECT_EQ(bytes_of("reduce_scatter on 'tp'", 1), 2u * 48);
  EXPECT_EQ(bytes_of("all_to_all on 'tp'", 1), 2u * 16);
  EXPECT_EQ(bytes_of("all_reduce on 'all'", 1), 2u * 48 * 5 / 6);
  EXPECT_EQ(report.byAxes.at("tp").count, 9u);
  EXPECT_EQ(report.byAxes.at("tp").bytesSent, 6u * 64 + 2 * 96 + 32);
  EXPECT_EQ(report.byAxes.at("dp, tp").count, 1u);
  EXPECT_EQ(report.byAxes.at("dp, tp").bytesSent, 80u);
}

TEST_F(CommunicationReportTest, OneByOne) {
  const CommunicationReport report = Report({"layers.1", false});
  ASSERT_EQ(report.groups.size(), 1u);
  EXPECT_EQ(report.groups[0].source, "layers.1.down");
  EXPECT_EQ(report.groups[0].tensors, "in");
  EXPECT_EQ(report.groups[0].count, 3u);
  EXPECT_EQ(Report({"wide", false}).groups.size(), 1u);  // the tensor that a reduce_scatter sends
  EXPECT_TRUE(Report({"nonsense", false}).groups.empty());
}

TEST(CommunicationReport, Pipelines) {
  fbs::PlanT plan = testing::MakePipeline(2, 3, 4);
  const std::vector<uint8_t> bytes = BytesOf(plan);
  uint64_t sends = 0, receives = 0;
  for (uint32_t entry = 0; entry < plan.entries.size(); ++entry) {
    for (const CommunicationGroup& group : reportCommunication(PlanIn(bytes), entry).groups) {
      if (group.operation.rfind("send", 0) == 0) sends += group.count;
      if (group.operation.rfind("receive", 0) != 0) continue;
      receives += group.count;
      EXPECT_EQ(group.bytesSent, 0u);
    }
  }
  EXPECT_EQ(sends, 8u);  // 4 microbatches forward, 4 back
  EXPECT_EQ(receives, 8u);
}

}  // namespace
}  // namespace bowline
