// Rules of layouts, which say the shard of a global tensor that a buffer holds.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

std::vector<std::unique_ptr<fbs::DimShardingT>> ShardedBy(const std::vector<std::vector<uint8_t>>& dims) {
  std::vector<std::unique_ptr<fbs::DimShardingT>> shardings;
  for (const std::vector<uint8_t>& axes : dims) {
    shardings.push_back(std::make_unique<fbs::DimShardingT>());
    shardings.back()->axes = axes;
  }
  return shardings;
}

// Adds buffer 10 'shard' of u8, which holds a shard of a tensor of shape `global`.
fbs::LayoutT& AddShard(P& p, std::vector<int64_t> shape, std::vector<int64_t> global) {
  auto buffer = std::make_unique<fbs::BufferT>();
  buffer->name = "shard";
  buffer->kind = fbs::BufferKind::Temporary;
  buffer->dtype = fbs::DType::U8;
  buffer->bytes = 1;
  for (const int64_t extent : shape) buffer->bytes *= static_cast<uint64_t>(extent);
  buffer->shape = std::move(shape);
  buffer->offset = (p.arena_bytes + 63) / 64 * 64;
  p.arena_bytes = buffer->offset + buffer->bytes;
  buffer->layout = std::make_unique<fbs::LayoutT>();
  buffer->layout->global_shape = std::move(global);
  p.buffers.push_back(std::move(buffer));
  return *p.buffers.back()->layout;
}

// The fixture for a mesh of dp = 2 and tp = 3.
P MakePlanOfSixRanks() {
  P p = MakePlan();
  p.mesh[0]->size = 2;
  p.mesh.push_back(std::make_unique<fbs::AxisT>());
  p.mesh.back()->name = "tp";
  p.mesh.back()->size = 3;
  return p;
}

// A rank holds 2 x 2 of the 3 x 5 elements: each dimension is padded to a multiple of its ranks.
P MakePlanWithShard() {
  P p = MakePlanOfSixRanks();
  AddShard(p, {2, 2}, {3, 5}).dim_shardings = ShardedBy({{0}, {1}});
  return p;
}

fbs::LayoutT& LayoutOf(P& p) { return *p.buffers.back()->layout; }

TEST(VerifyLayoutGood, AcceptsWholeTensors) {
  P p = MakePlanOfSixRanks();
  AddShard(p, {3, 5}, {3, 5});
  ExpectAccepted(std::move(p));
}

TEST(VerifyLayoutGood, AcceptsViews) {
  P p = MakePlanOfSixRanks();
  fbs::LayoutT& layout = AddShard(p, {4, 3}, {12, 2});
  layout.view = {8, 3};
  layout.dim_shardings = ShardedBy({{0}, {}});
  ExpectAccepted(std::move(p));
}

TEST(VerifyLayoutGood, AcceptsFlatShards) {
  // dp has 2 of 3 rows of 5 elements, and tp a third of these 10, padded to 12.
  P p = MakePlanOfSixRanks();
  fbs::LayoutT& layout = AddShard(p, {4}, {3, 5});
  layout.dim_shardings = ShardedBy({{0}, {}});
  layout.flat_axes = {1};
  ExpectAccepted(std::move(p));
}

TEST(VerifyLayoutGood, AcceptsTheLargestTensors) {
  // 2^62 bytes, of which a rank has a sixth.
  P p = MakePlanOfSixRanks();
  AddShard(p, {((int64_t{1} << 62) + 5) / 6}, {int64_t{1} << 31, int64_t{1} << 31}).flat_axes = {0, 1};
  ExpectAccepted(std::move(p));
  // Without elements, of extents whose product would be larger.
  P empty = MakePlanOfSixRanks();
  AddShard(empty, {0}, {int64_t{1} << 31, 0, int64_t{1} << 31}).flat_axes = {0, 1};
  ExpectAccepted(std::move(empty));
}

const Rule kLayoutRules[] = {
    {"GlobalShape", [](P& p) { LayoutOf(p).global_shape = {-3, 5}; },
     "buffer 10 'shard': layout: extent -3 of dimension 0 is negative"},
    {"GlobalTooLarge", [](P& p) { LayoutOf(p).global_shape = {int64_t{1} << 32, int64_t{1} << 31}; },
     "buffer 10 'shard': layout: u8[4294967296, 2147483648] has more than 2^62 bytes"},
    {"OverflowHiddenByZero",
     [](P& p) {
       LayoutOf(p).global_shape = {int64_t{1} << 32, 0, int64_t{1} << 32};
       LayoutOf(p).dim_shardings.clear();
       LayoutOf(p).flat_axes = {0};
     },
     "layout: u8[4294967296, 0, 4294967296] has more than 2^62 bytes"},
    {"OneElementAmongSeveral",
     [](P& p) {
       fbs::LayoutT& layout = LayoutOf(p);
       layout.view = {1, 15};
     },
     "dimension 0 of the view has one element, and is divided among 2 ranks: all but one would hold padding"},
    {"ViewShape", [](P& p) { LayoutOf(p).view = {3, -5}; }, "layout: extent -5 of dimension 1 is negative"},
    {"ViewOfOtherElements", [](P& p) { LayoutOf(p).view = {3, 6}; },
     "layout: the view u8[3, 6] has other elements than u8[3, 5]"},
    {"ShardingsOfOtherDimensions", [](P& p) { LayoutOf(p).dim_shardings.pop_back(); },
     "layout: 1 shardings for 2 dimensions"},
    {"NoSuchAxis", [](P& p) { LayoutOf(p).dim_shardings = ShardedBy({{0}, {2}}); }, "axis 2 does not exist"},
    {"AxisOfTwoDimensions", [](P& p) { LayoutOf(p).dim_shardings = ShardedBy({{0}, {0}}); },
     "layout: axis 'dp' divides it twice"},
    {"AxisOfADimensionAndFlat", [](P& p) { LayoutOf(p).flat_axes = {1}; }, "layout: axis 'tp' divides it twice"},
    {"OtherExtent", [](P& p) { LayoutOf(p).global_shape = {5, 5}; },
     "layout: a rank's shard is [3, 2], but the buffer is u8[2, 2]"},
    {"OtherRank", [](P& p) { LayoutOf(p).dim_shardings = ShardedBy({{0}, {}}), LayoutOf(p).flat_axes = {1}; },
     "layout: a rank's shard is [4], but the buffer is u8[2, 2]"},
};

class VerifyLayout : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyLayout, Refuses) { ExpectRefused(MakePlanWithShard(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyLayout, ::testing::ValuesIn(kLayoutRules), NameOfRule);

}  // namespace
}  // namespace bowline
