//===- CollectiveLoweringTest.cpp - Lowered collectives give what they gave before
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Random chains of collectives on random shapes, meshes, axes and dimensions, run on all ranks by the reference
// interpreter before and after lowering.
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/CollectiveLowering.h"
#include "compiler/Interp/DistributedInterpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr llvm::StringLiteral kAxes[] = {"a", "b", "c"};

/// `graph.func @f(%whole)`, which gives each rank a tensor of its own, applies collectives to it, and returns the
/// results of all ranks.
class RandomCollectives {
public:
  explicit RandomCollectives(Random &random) : random(random), b(UnknownLoc::get(&context()), &context()) {
    for (int64_t count = random.integer(1, 3); static_cast<int64_t>(sizes.size()) < count;)
      sizes.push_back(random.integer(1, 3));
  }

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToEnd(module->getBody());
    mesh = dist::MeshOp::create(b, "mesh", axisNames(sizes.size()), sizes);
    SmallVector<int64_t> shape;
    for (int64_t rank = random.integer(1, 4); rank > 0; --rank)
      shape.push_back(random.pick({1, 1, 2, 3, 4, 6, 12, 18}));
    SmallVector<int64_t> wholeShape{mesh.getRankCount()};
    llvm::append_range(wholeShape, shape);
    whole.assign(wholeShape.begin(), wholeShape.end());

    auto type = RankedTensorType::get(wholeShape, b.getF64Type());
    auto function = graph::FuncOp::create(b, "f", b.getFunctionType({type}, {}));
    Block &body = function.getBody().emplaceBlock();
    Value argument = body.addArgument(type, b.getLoc());
    SmallVector<SmallVector<StringAttr>> cut(wholeShape.size());
    for (auto axis : axisNames(sizes.size()).getAsRange<StringAttr>())
      cut[0].push_back(axis);
    function.setArgAttr(0, dist::DistDialect::kShardingAttr, dist::ShardingAttr::get(&context(), cut));
    wholeShape[0] = 1;
    argument.setType(type.clone(wholeShape));
    b.setInsertionPointToEnd(&body);
    Value value = graph::ReshapeOp::create(b, type.clone(shape), argument);
    for (int i = 0; i < 4; ++i)
      value = apply(value);
    value = dist::AllGatherOp::create(b, grown(value, 0, mesh.getRankCount()), value, 0, axisNames(sizes.size()), "");
    graph::ReturnOp::create(b, value);
    function.setFunctionType(b.getFunctionType(body.getArgumentTypes(), value.getType()));
    return module;
  }

  /// Integers: sums are exact in any order.
  HostTensor input() { return random.integers(whole, -100, 100); }

private:
  ArrayAttr axisNames(size_t count) { return b.getStrArrayAttr(SmallVector<StringRef>(kAxes, kAxes + count)); }

  /// Some axes in any order.
  ArrayAttr someAxes() {
    SmallVector<StringRef> names;
    for (int64_t axis : random.permutation(sizes.size()))
      if (names.empty() || random.flip())
        names.push_back(kAxes[axis]);
    return b.getStrArrayAttr(names);
  }

  static RankedTensorType grown(Value value, int64_t dim, int64_t factor) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
    shape[dim] *= factor;
    return type.clone(shape);
  }

  static RankedTensorType shrunk(Value value, int64_t dim, int64_t factor) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
    shape[dim] /= factor;
    return type.clone(shape);
  }

  Value apply(Value value) {
    ArrayAttr axes = someAxes();
    int64_t ranks = mesh.getSize(llvm::to_vector(axes.getAsRange<StringAttr>()));
    auto type = cast<RankedTensorType>(value.getType());
    int64_t dim = random.integer(0, type.getRank() - 1), other = random.integer(0, type.getRank() - 1);
    auto kind = random.flip() ? dist::ReduceKind::Sum : dist::ReduceKind::Max;
    bool divides = type.getDimSize(dim) % ranks == 0;
    switch (random.integer(0, 6)) {
    case 0:
      return dist::AllReduceOp::create(b, type, kind, value, axes, "why");
    case 1:
      if (type.getNumElements() * ranks > 20000)
        return value;
      return dist::AllGatherOp::create(b, grown(value, dim, ranks), value, dim, axes, "why");
    case 2:
      return divides ? Value(dist::ReduceScatterOp::create(b, shrunk(value, dim, ranks), kind, value, dim, axes, "why"))
                     : value;
    case 3: {
      if (!divides)
        return value;
      SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
      shape[dim] /= ranks;
      shape[other] *= ranks;
      return dist::AllToAllOp::create(b, type.clone(shape), value, dim, other, axes, "why");
    }
    case 4:
      if (int64_t shift = random.integer(-2 * ranks, 2 * ranks); shift % ranks != 0)
        return dist::PermuteOp::create(b, type, value, shift, axes, "why");
      return value;
    case 5:
      return divides ? Value(dist::SliceOp::create(b, shrunk(value, dim, ranks), value, dim, axes)) : value;
    default: {
      auto scalar = RankedTensorType::get({}, b.getI32Type());
      Value place = dist::CoordinateOp::create(b, scalar, axes);
      Value real = arith::SIToFPOp::create(b, scalar.clone(b.getF64Type()), place);
      return arith::AddFOp::create(b, value, graph::BroadcastOp::create(b, type, real, ArrayRef<int64_t>{}));
    }
    }
  }

  Random &random;
  ImplicitLocOpBuilder b;
  SmallVector<int64_t> sizes;
  dist::MeshOp mesh;
  Shape whole;
};

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

/// Whether lowering may leave `op` in the program.
bool isLowered(Operation *op, dist::MeshOp mesh) {
  if (op->getName().getDialectNamespace() != "dist" || isa<dist::MeshOp>(op))
    return true;
  auto axes = op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>();
  if (llvm::any_of(axes, [&](StringAttr axis) { return mesh.getSize(axis) == 1; }))
    return false;
  if (auto gather = dyn_cast<dist::AllGatherOp>(op))
    return gather.getDim() == 0;
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op))
    return scatter.getDim() == 0;
  if (auto move = dyn_cast<dist::AllToAllOp>(op))
    return move.getSplitDim() == 0 && move.getConcatDim() == 0;
  return isa<dist::AllReduceOp, dist::CoordinateOp, dist::PermuteOp>(op);
}

} // namespace

TEST(CollectiveLowering, EqualsTheCollectives) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < 400; ++i) {
    RandomCollectives program(random);
    OwningOpRef<ModuleOp> before = program.build();
    ASSERT_TRUE(succeeded(verify(*before)));
    OwningOpRef<ModuleOp> after = before->clone();
    dist::MeshOp mesh = dist::MeshOp::of(*after);
    CollectiveLowering(mesh).run(*after->getOps<graph::FuncOp>().begin());
    ASSERT_TRUE(succeeded(verify(*after)));
    after->walk([&](Operation *op) {
      if (!isLowered(op, mesh))
        ADD_FAILURE() << "still there: " << printed(op);
    });
    HostTensor input = program.input();
    auto expected = DistributedInterpreter(*before).run("f", input);
    auto actual = DistributedInterpreter(*after).run("f", input);
    ASSERT_TRUE(succeeded(expected) && succeeded(actual));
    EXPECT_EQ((*actual)[0].shape, (*expected)[0].shape);
    EXPECT_EQ((*actual)[0].data, (*expected)[0].data) << printed(*before);
    if (testing::Test::HasFailure())
      return;
  }
}
