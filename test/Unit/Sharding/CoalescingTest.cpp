//===- CoalescingTest.cpp - Coalesced collectives give what they gave before
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Random programs of collectives, additions, sums of scalars, and variables that are read and written, run on all ranks
// by the reference interpreter before and after scalars were added up and buckets formed. Values are integers: sums are
// exact in any order.
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/DistributedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "passes/Local/Collectives/CollectiveBuckets.h"
#include "passes/Local/Collectives/ScalarSums.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr llvm::StringLiteral kAxes[] = {"a", "b", "c"};
constexpr int64_t kSize = 12;

class RandomProgramOfRanks {
public:
  explicit RandomProgramOfRanks(Random &random) : random(random), b(UnknownLoc::get(&context()), &context()) {
    for (int64_t count = random.integer(1, 3); static_cast<int64_t>(sizes.size()) < count;)
      sizes.push_back(random.integer(1, 3));
  }

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToEnd(module->getBody());
    mesh = dist::MeshOp::create(b, "mesh", axisNames(), sizes);
    auto vector = RankedTensorType::get({kSize}, b.getF64Type());
    for (StringRef name : {"v", "w"})
      graph::StateOp::create(b, name, StateFlags::Saved, vector, graph::FillAttr::get(&context(), 3.0));
    auto argumentType = RankedTensorType::get({mesh.getRankCount(), kSize}, b.getF64Type());
    auto function = graph::FuncOp::create(b, "f", b.getFunctionType({argumentType}, {}));
    SmallVector<SmallVector<StringAttr>> cut(2);
    llvm::append_range(cut[0], axisNames().getAsRange<StringAttr>());
    function.setArgAttr(0, dist::DistDialect::kShardingAttr, dist::ShardingAttr::get(&context(), cut));
    Block &body = function.getBody().emplaceBlock();
    Value argument = body.addArgument(argumentType.clone({1, kSize}), b.getLoc());
    b.setInsertionPointToEnd(&body);
    add(graph::ReshapeOp::create(b, vector, argument), 100);
    for (int i = 0; i < 30; ++i)
      step();
    returnAll(function);
    return module;
  }

  HostTensor input() { return random.integers({mesh.getRankCount(), kSize}, -100, 100); }

private:
  /// A value, and the bound of its elements.
  struct Known {
    Value value;
    double bound;
    RankedTensorType type() const { return cast<RankedTensorType>(Value(value).getType()); }
  };

  ArrayAttr axisNames() { return b.getStrArrayAttr(SmallVector<StringRef>(kAxes, kAxes + sizes.size())); }

  /// Few choices, so that many collectives may join.
  ArrayAttr someAxes() {
    SmallVector<StringRef> names = {kAxes[random.integer(0, static_cast<int64_t>(sizes.size()) - 1)]};
    return random.integer(0, 3) == 0 ? axisNames() : b.getStrArrayAttr(names);
  }

  void add(Value value, double bound) {
    if (bound < 1e12)
      known.push_back({value, bound});
  }

  const Known &any() { return known[random.integer(0, static_cast<int64_t>(known.size()) - 1)]; }

  /// One of the same type; perhaps the same.
  const Known &like(RankedTensorType type) {
    SmallVector<const Known *> fitting;
    for (const Known &one : known)
      if (one.type() == type)
        fitting.push_back(&one);
    return *fitting[random.integer(0, static_cast<int64_t>(fitting.size()) - 1)];
  }

  void step() {
    Known x = any();
    RankedTensorType type = x.type();
    bool isScalar = type.getRank() == 0;
    ArrayAttr axes = someAxes();
    int64_t ranks = mesh.getSize(llvm::to_vector(axes.getAsRange<StringAttr>()));
    auto kind = random.integer(0, 3) > 0 ? dist::ReduceKind::Sum : dist::ReduceKind::Max;
    double reduced = x.bound * static_cast<double>(ranks);
    switch (random.integer(0, 7)) {
    case 0:
    case 1: {
      const Known &y = like(type);
      return add(arith::AddFOp::create(b, x.value, y.value), x.bound + y.bound);
    }
    case 2:
      return add(dist::AllReduceOp::create(b, type, kind, x.value, axes, "why"), reduced);
    case 3:
      if (!isScalar && type.getNumElements() * ranks <= 200)
        add(dist::AllGatherOp::create(b, type.clone({type.getDimSize(0) * ranks}), x.value, 0, axes, "why"), x.bound);
      return;
    case 4:
      if (!isScalar && type.getDimSize(0) % ranks == 0)
        add(dist::ReduceScatterOp::create(b, type.clone({type.getDimSize(0) / ranks}), kind, x.value, 0, axes, "why"),
            reduced);
      return;
    case 5:
      if (!isScalar)
        add(graph::ReduceOp::create(b, graph::ReduceKind::Sum, x.value, ArrayRef<int64_t>{0}),
            x.bound * static_cast<double>(type.getNumElements()));
      return;
    case 6:
      // A variable's new value may exceed values that were read before.
      written = std::max(written, x.bound);
      if (!isScalar && type.getDimSize(0) == kSize)
        graph::WriteOp::create(b, random.flip() ? "v" : "w", x.value);
      return;
    default:
      return add(graph::ReadOp::create(b, RankedTensorType::get({kSize}, b.getF64Type()), random.flip() ? "v" : "w"),
                 written);
    }
  }

  /// Every rank returns the values of all ranks.
  void returnAll(graph::FuncOp function) {
    SmallVector<Value> results;
    for (const Known &one : known) {
      Value value = one.value;
      if (one.type().getRank() == 0)
        value = graph::ReshapeOp::create(b, one.type().clone(ArrayRef<int64_t>{1}), value);
      auto type = cast<RankedTensorType>(value.getType());
      results.push_back(dist::AllGatherOp::create(b, type.clone({type.getDimSize(0) * mesh.getRankCount()}), value, 0,
                                                  axisNames(), ""));
    }
    graph::ReturnOp::create(b, results);
    function.setFunctionType(
        b.getFunctionType(function.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
  }

  Random &random;
  ImplicitLocOpBuilder b;
  SmallVector<int64_t> sizes;
  dist::MeshOp mesh;
  std::vector<Known> known;
  double written = 3;
};

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

int64_t countCollectives(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *op) {
    count += isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp, dist::BucketOp>(op);
  });
  return count;
}

int64_t bytesOf(dist::BucketOp bucket) {
  int64_t bytes = 0;
  for (auto [input, output] : llvm::zip_equal(bucket.getInputs(), bucket.getOutputs()))
    bytes += 8 * std::max(cast<RankedTensorType>(input.getType()).getNumElements(),
                          cast<RankedTensorType>(output.getType()).getNumElements());
  return bytes;
}

} // namespace

TEST(Coalescing, EqualsTheCollectives) {
  Random random;
  SCOPED_TRACE(random.trace());
  int64_t separate = 0, together = 0;
  for (int i = 0; i < 300; ++i) {
    RandomProgramOfRanks program(random);
    OwningOpRef<ModuleOp> before = program.build();
    ASSERT_TRUE(succeeded(verify(*before))) << printed(*before);
    OwningOpRef<ModuleOp> after = before->clone();
    Block &body = (*after->getOps<graph::FuncOp>().begin()).getBody().front();
    int64_t limit = random.pick({100, 1000, 1 << 20});
    ScalarSums(dist::MeshOp::of(*after)).run(body);
    CollectiveBuckets(limit).run(body);
    ASSERT_TRUE(succeeded(verify(*after))) << printed(*before);
    after->walk([&](dist::BucketOp bucket) { EXPECT_LE(bytesOf(bucket), limit); });
    separate += countCollectives(*before);
    together += countCollectives(*after);

    HostTensor input = program.input();
    DistributedInterpreter one(*before), other(*after);
    for (DistributedInterpreter *ranks : {&one, &other})
      for (StringRef name : {"v", "w"}) {
        HostTensor start(std::vector<int64_t>{kSize});
        llvm::fill(start.data, 3.0);
        ASSERT_TRUE(succeeded(ranks->setVariable(name, start)));
      }
    auto expected = one.run("f", input), actual = other.run("f", input);
    ASSERT_TRUE(succeeded(expected) && succeeded(actual));
    for (auto [a, b] : llvm::zip_equal(*actual, *expected))
      EXPECT_EQ(a.data, b.data) << printed(*before) << printed(*after);
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_LT(4 * together, 3 * separate);
}
