// Links as people write them, and their meaning for the cost model.

#include "targets/costs/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bowline::targets {
namespace {

using ::testing::HasSubstr;

TEST(Link, IsWrittenWithUnits) {
  const struct {
    const char* text;
    double bandwidth;
    int64_t nanoseconds;
  } cases[] = {
      {"bandwidth=10GB/s,latency=5us", 10e9, 5000},
      {"latency=1.5ms", 0, 1500000},
      {"bandwidth=2.5e3KB/s", 2.5e6, 0},
      {"latency=2s, bandwidth=7B/s", 7, 2000000000},
      {"bandwidth=1TB/s,latency=0ns", 1e12, 0},
      {"bandwidth=3MB/s,latency=20ns", 3e6, 20},
  };
  for (const auto& c : cases) {
    const auto link = ParseLink(c.text);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_DOUBLE_EQ(link->bandwidth, c.bandwidth);
    EXPECT_EQ(link->latency.count(), c.nanoseconds);
  }
}

TEST(Link, RefusesOtherText) {
  const struct {
    const char *text, *why;
  } cases[] = {
      {"", "there is no ''"},
      {"speed=1GB/s", "there is no 'speed'"},
      {"bandwidth=10", "'10' is not a bandwidth above zero"},
      {"bandwidth=10Gb/s", "'10Gb/s' is not"},
      {"bandwidth=GB/s", "'GB/s' is not"},
      {"bandwidth=0GB/s", "'0GB/s' is not"},
      {"bandwidth=-1GB/s", "'-1GB/s' is not"},
      {"bandwidth=nanGB/s", "'nanGB/s' is not"},
      {"bandwidth=infGB/s", "'infGB/s' is not"},
      {"latency=5", "'5' is not a latency"},
      {"latency=-5us", "'-5us' is not a latency"},
      {"latency=1e300s", "'1e300s' is not a latency"},
      {"latency=1us,latency=2us", "latency is there twice"},
      {"bandwidth=1GB/s,,", "there is no ''"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ParseLink(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("such as bandwidth=10GB/s,latency=5us"));
  }
}

TEST(Link, IsOfAnAxisOrOfAll) {
  const auto links = ParseLinks({"latency=1us", "tp:bandwidth=2GB/s", "dp:latency=3us"}, {"dp", "tp", "pp"});
  ASSERT_TRUE(links.ok()) << links.status();
  ASSERT_EQ(links->size(), 3u);
  EXPECT_EQ(links->at("").latency.count(), 1000);
  EXPECT_EQ(links->at("dp").latency.count(), 3000);
  EXPECT_EQ(links->at("tp").bandwidth, 2e9);
  EXPECT_EQ(links->at("tp").latency.count(), 0);
  EXPECT_TRUE(ParseLinks({}, {}).value().empty());
  for (const std::string& axis : {"", "tp:"}) {
    const absl::Status twice = ParseLinks({axis + "bandwidth=2GB/s", axis + "latency=1us"}, {"dp", "tp"}).status();
    EXPECT_THAT(std::string(twice.message()), HasSubstr("is given twice"));
  }
}

TEST(Link, RefusesAxesThatAreNotThere) {
  const struct {
    const char *text, *why;
    std::vector<std::string> axes;
  } cases[] = {
      {"tb:latency=1us", "--link tb:latency=1us: the mesh has no axis 'tb'; its axes are dp, tp", {"dp", "tp"}},
      {":latency=1us", "the mesh has no axis ''", {"dp"}},
      {"dp:latency=1us", "the mesh has no axis 'dp'; it has one rank", {}},
      {"dp:latency=1", "--link dp:latency=1: link 'latency=1': '1' is not a latency", {"dp"}},
      {"dp:tp:latency=1us", "there is no 'tp:latency'", {"dp", "tp"}},
  };
  for (const auto& c : cases) {
    const absl::Status status = ParseLinks({c.text}, c.axes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

TEST(CostModel, TakesTheSlowestLinkOfAGroup) {
  using Axes = std::vector<absl::string_view>;
  const Costs costs = {.command_seconds = 1e-3, .link = {.bandwidth = 1e9}};
  CostModel model(costs);
  EXPECT_EQ(model.LinkAlong(Axes{"dp"}).bandwidth, costs.link.bandwidth);
  LinkTable links = ParseLinks({"dp:bandwidth=1MB/s", "tp:bandwidth=8GB/s,latency=1us"}, {"dp", "tp", "pp"}).value();
  model = CostModel(costs, 1, links);
  EXPECT_EQ(model.LinkAlong(Axes{"dp", "tp"}).bandwidth, 1e6);
  EXPECT_EQ(model.LinkAlong(Axes{"tp", "dp"}).bandwidth, 1e6);
  EXPECT_EQ(model.LinkAlong(Axes{"tp"}).bandwidth, 8e9);
  EXPECT_EQ(model.LinkAlong(Axes{"pp"}).bandwidth, costs.link.bandwidth);  // nothing was said about it
  EXPECT_EQ(model.LinkAlong(Axes{"tp", "pp"}).bandwidth, costs.link.bandwidth);
  EXPECT_EQ(model.LinkAlong(Axes{}).bandwidth, costs.link.bandwidth);
  links[""] = {.bandwidth = 2e6};
  model = CostModel(costs, 1, links);
  EXPECT_EQ(model.LinkAlong(Axes{"pp"}).bandwidth, 2e6);

  // 4 ranks, 4 MB: three messages of a megabyte each, twice for a sum.
  using collectives::Kind;
  const LinkOptions link = {.bandwidth = 1e6, .latency = std::chrono::milliseconds(100)};
  EXPECT_DOUBLE_EQ(model.CollectiveSeconds(link, collectives::Of(Kind::kAllGather), 4e6, 4),
                   costs.command_seconds + 3 * 1.1);
  EXPECT_DOUBLE_EQ(model.CollectiveSeconds(link, collectives::Of(Kind::kAllReduce), 4e6, 4),
                   costs.command_seconds + 6 * 1.1);
  // To a neighbour it is one message, whole.
  EXPECT_DOUBLE_EQ(model.CollectiveSeconds(link, collectives::Of(Kind::kPermute), 4e6, 4), costs.command_seconds + 4.1);
  EXPECT_DOUBLE_EQ(model.TransferSeconds(link, 2e6), costs.command_seconds + 2.1);
  EXPECT_DOUBLE_EQ(model.TransferSeconds({.latency = std::chrono::seconds(1)}, 2e6), costs.command_seconds + 1);
}

TEST(CostModel, TakesTheLargerOfArithmeticAndTraffic) {
  const CostModel model({.flops = 100, .bytes = 10, .command_seconds = 1}, /*threads=*/2);
  EXPECT_DOUBLE_EQ(model.LaunchSeconds(400, 0), 1 + 2);
  EXPECT_DOUBLE_EQ(model.LaunchSeconds(400, 80), 1 + 4);
  EXPECT_DOUBLE_EQ(model.CopySeconds(20), 1 + 4);
  EXPECT_DOUBLE_EQ(model.FlopsPerByte(), 10);
}

}  // namespace
}  // namespace bowline::targets
