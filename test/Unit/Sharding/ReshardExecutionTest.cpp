//===- ReshardExecutionTest.cpp - Every rank ends with the piece that a reshard says
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Random meshes, some with an axis in two parts, random shardings with several axes per dimension in any order and with
// unreduced axes, random shapes that they need not divide. The program that a reshard becomes runs on all ranks of the
// reference interpreter; each rank's result is compared with its piece of the whole tensor, cut here by
// arithmetic on coordinates alone. Elements are integers: sums are exact in any order.
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/DistributedInterpreter.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Local/Collectives/CollectiveLowering.h"
#include "passes/Local/Tensors/Localization.h"
#include "passes/Sharding/Assignment/AxisDivision.h"
#include "passes/Sharding/Padding/Padding.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kCases = 600;

/// Axes by dimension, the first outermost, and those over which the tensor is a sum.
struct Cuts {
  std::vector<std::vector<std::string>> dims;
  std::vector<std::string> unreduced;
};

std::string quoted(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

std::string printed(const Cuts &cuts) {
  std::string text;
  for (const std::vector<std::string> &axes : cuts.dims)
    text += (text.empty() ? "{" : ", {") + quoted(axes) + "}";
  std::string unreduced = cuts.unreduced.empty() ? "" : ", unreduced = {" + quoted(cuts.unreduced) + "}";
  return "#dist.sharding<[" + text + "]" + unreduced + ">";
}

std::string printed(const Shape &shape) {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return "tensor<" + text + "f64>";
}

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

class ReshardCase {
public:
  explicit ReshardCase(Random &random) : random(random) {
    chooseMesh();
    for (int64_t rank = random.integer(1, 3); rank > 0; --rank)
      shape.push_back(random.integer(1, 11));
    from = chooseCuts(axes);
    // An axis with partial sums can stay unreduced or be completed; no other axis becomes unreduced.
    std::vector<std::string> free, kept;
    for (const std::string &axis : axes)
      (llvm::is_contained(from.unreduced, axis) && random.integer(0, 2) == 0 ? kept : free).push_back(axis);
    to = chooseCuts(free);
    to.unreduced = kept;
    if (random.integer(0, 9) == 0)
      to = from;
  }

  void run() {
    OwningOpRef<ModuleOp> module = build();
    ASSERT_TRUE(module);
    lower(*module);
    if (testing::Test::HasFailure())
      return;
    HostTensor parts = random.integers(partsShape, -1000, 1000), whole(shape);
    for (int64_t i = 0; i < parts.count(); ++i)
      whole.data[i % whole.count()] += parts.data[i];
    DistributedInterpreter ranks(*module);
    ASSERT_TRUE(succeeded(ranks.setVariable("parts", parts)));
    ASSERT_TRUE(succeeded(ranks.setVariable("result", HostTensor(shape))));
    ASSERT_TRUE(succeeded(ranks.run("reshard", {})));
    compare(ranks, whole, graph::StateOp(module->lookupSymbol<graph::StateOp>("result")).getTensorType());
  }

  /// Whether this case shows something that others need not.
  bool isUneven() const {
    for (auto [size, fromAxes, toAxes] : llvm::zip_equal(shape, from.dims, to.dims))
      if (size % ranksAlong(fromAxes) != 0 || size % ranksAlong(toAxes) != 0)
        return true;
    return false;
  }
  bool hasParts() const {
    return llvm::any_of(axes, [](const std::string &axis) { return StringRef(axis).contains('/'); });
  }
  bool isSum() const { return !from.unreduced.empty(); }

private:
  void chooseMesh() {
    std::vector<int64_t> sizes;
    int64_t ranks = 1;
    for (int64_t count = random.integer(1, 3); count > 0; --count)
      if (int64_t size = random.pick({1, 2, 2, 3, 4, 6, 8}); ranks * size <= 8) {
        sizes.push_back(size);
        ranks *= size;
      }
    if (sizes.empty())
      sizes.push_back(8);
    std::vector<std::string> names = {"dp", "tp", "cp"};
    names.resize(sizes.size());
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "" : ", ") + std::to_string(size);
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>("dist.mesh @mesh [" + quoted(names) + "] [" + text + "]", &context());
    for (auto [name, size] : llvm::zip_equal(names, sizes))
      if (size % 2 == 0 && size > 2 && random.flip())
        divideAxis(*module, name, random.flip() ? 2 : size / 2);
    dist::MeshOp op = dist::MeshOp::of(*module);
    for (auto [name, size] : llvm::zip_equal(op.getAxisNames().getAsRange<StringAttr>(), op.getAxisSizes())) {
      axes.push_back(name.str());
      axisSizes.push_back(size);
    }
    mesh = printed(op.getOperation());
  }

  /// Each axis cuts a dimension, is one that the tensor is a sum over, or is not used.
  Cuts chooseCuts(const std::vector<std::string> &among) {
    Cuts cuts;
    cuts.dims.resize(shape.size());
    for (int64_t i : random.permutation(among.size())) {
      int64_t use = random.integer(-1, static_cast<int64_t>(shape.size()) + 1);
      if (use == -1)
        cuts.unreduced.push_back(among[i]);
      else if (use < static_cast<int64_t>(shape.size()))
        cuts.dims[use].push_back(among[i]);
    }
    return cuts;
  }

  int64_t ranksAlong(const std::vector<std::string> &names) const {
    int64_t ranks = 1;
    for (auto [axis, size] : llvm::zip_equal(axes, axisSizes))
      ranks *= llvm::is_contained(names, axis) ? size : 1;
    return ranks;
  }

  /// Ranks are in row-major order of coordinates; `names` are the digits of the place, the first most significant.
  int64_t placeOf(int64_t rank, const std::vector<std::string> &names) const {
    std::map<std::string, int64_t> coordinates, sizes;
    for (size_t i = axes.size(); i-- > 0; rank /= axisSizes[i]) {
      coordinates[axes[i]] = rank % axisSizes[i];
      sizes[axes[i]] = axisSizes[i];
    }
    int64_t place = 0;
    for (const std::string &name : names)
      place = place * sizes[name] + coordinates[name];
    return place;
  }

  /// `parts` has the summands along its first dimension; their sum is resharded and written.
  OwningOpRef<ModuleOp> build() {
    partsShape = {ranksAlong(from.unreduced) * random.integer(1, 2)};
    llvm::append_range(partsShape, shape);
    Cuts cutParts{{from.unreduced}, {}};
    llvm::append_range(cutParts.dims, from.dims);
    text = mesh + "\ngraph.param @parts : " + printed(partsShape) +
           " init(#graph.fill<0.0>) key(\"parts\") {dist.sharding = " + printed(cutParts) +
           "}\ngraph.state @result saved : " + printed(shape) +
           " init(#graph.fill<0.0>) {dist.sharding = " + printed(to) +
           "}\ngraph.func @reshard() {\n  %parts = graph.read @parts : " + printed(partsShape) +
           "\n  %sum = graph.reduce sum %parts dims [0] : (" + printed(partsShape) + ") -> " + printed(shape) +
           "\n  graph.write @result, %sum : " + printed(shape) + "\n  graph.return\n}\n";
    fromParts = printed(cutParts);
    return parseSourceString<ModuleOp>(text, &context());
  }

  dist::ShardingAttr sharding(const std::string &printedCuts) {
    return cast<dist::ShardingAttr>(parseAttribute(printedCuts, &context()));
  }

  void lower(ModuleOp module) {
    SCOPED_TRACE(text);
    dist::MeshOp meshOp = dist::MeshOp::of(module);
    ASSERT_TRUE(succeeded(Padding(module, meshOp).run()));
    auto function = module.lookupSymbol<graph::FuncOp>("reshard");
    auto read = *function.getOps<graph::ReadOp>().begin();
    auto write = *function.getOps<graph::WriteOp>().begin();
    Value sum = write->getOperand(0);
    OpBuilder builder(write);
    Value moved = dist::ReshardOp::create(builder, write.getLoc(), sum, sharding(printed(to)), "test");
    write->setOperand(0, moved);
    auto setSharding = [&](Operation *op, const std::string &cuts) {
      op->setAttr(dist::DistDialect::kShardingsAttr, builder.getArrayAttr({sharding(cuts)}));
    };
    setSharding(read, fromParts);
    for (Operation &op : function.getBody().front())
      if (!isa<graph::ReadOp, graph::WriteOp, graph::ReturnOp, dist::ReshardOp>(op))
        setSharding(&op, printed(from));
    setSharding(moved.getDefiningOp(), printed(to));
    ASSERT_TRUE(succeeded(verify(module)));
    ASSERT_TRUE(succeeded(Localization(module, meshOp).run()));
    if (random.flip())
      CollectiveLowering(meshOp).run(function);
    ASSERT_TRUE(succeeded(verify(module)));
  }

  /// Adds up the values of a group of ranks that hold summands, and cuts nothing else.
  void compare(const DistributedInterpreter &ranks, const HostTensor &whole, RankedTensorType local) {
    int64_t count = 1;
    for (int64_t size : axisSizes)
      count *= size;
    std::vector<std::string> others;
    for (const std::string &axis : axes)
      if (!llvm::is_contained(to.unreduced, axis))
        others.push_back(axis);
    std::map<int64_t, HostTensor> sums;
    for (int64_t rank = 0; rank < count; ++rank) {
      const HostTensor *piece = ranks.getLocal(rank, "result");
      ASSERT_TRUE(piece);
      ASSERT_EQ(ArrayRef<int64_t>(piece->shape), local.getShape());
      auto [sum, first] = sums.try_emplace(placeOf(rank, others), *piece);
      for (int64_t i = 0; !first && i < piece->count(); ++i)
        sum->second.data[i] += piece->data[i];
    }
    for (int64_t rank = 0; rank < count; ++rank)
      EXPECT_EQ(sums[placeOf(rank, others)].data, pieceOf(whole, rank, local.getShape()).data)
          << "rank " << rank << "\n"
          << text << "from " << printed(from);
  }

  /// Zeros where the whole ends before the piece does.
  HostTensor pieceOf(const HostTensor &whole, int64_t rank, ArrayRef<int64_t> local) {
    HostTensor piece(Shape(local.begin(), local.end()));
    for (int64_t i = 0; i < piece.count(); ++i) {
      int64_t rest = i, offset = 0, stride = 1;
      bool inside = true;
      for (size_t dim = shape.size(); dim-- > 0; rest /= local[dim]) {
        int64_t index = placeOf(rank, to.dims[dim]) * local[dim] + rest % local[dim];
        inside &= index < shape[dim];
        offset += index * stride;
        stride *= shape[dim];
      }
      piece.data[i] = inside ? whole.data[offset] : 0;
    }
    return piece;
  }

  Random &random;
  std::vector<std::string> axes;
  std::vector<int64_t> axisSizes;
  std::string mesh;
  Shape shape, partsShape;
  Cuts from, to;
  std::string fromParts, text;
};

} // namespace

TEST(ReshardExecution, EachRankEndsWithItsPiece) {
  Random random;
  SCOPED_TRACE(random.trace());
  int uneven = 0, parts = 0, sums = 0;
  for (int i = 0; i < kCases; ++i) {
    ReshardCase reshard(random);
    reshard.run();
    if (HasFailure())
      return;
    uneven += reshard.isUneven();
    parts += reshard.hasParts();
    sums += reshard.isSum();
  }
  std::printf("%s: %d reshards, %d of sizes that do not divide, %d on axes in parts, %d of sums\n",
              random.trace().c_str(), kCases, uneven, parts, sums);
  EXPECT_GT(uneven, kCases / 10);
  EXPECT_GT(parts, kCases / 10);
  EXPECT_GT(sums, kCases / 10);
}
