//===- ReshapeChainsTest.cpp - Reshapes of sharded values keep the order of elements
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Random chains of reshapes and transposes begin with a tensor whose dimensions are sharded at random, and are
// propagated, made local and run on all ranks of the reference interpreter, beside the same chain on one rank. Sizes
// are small powers of two, as axes are, so that an axis often shards a factor completely and another one is left over.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Local/Passes.h"
#include "passes/Sharding/Passes.h"
#include "test/Unit/Interp/OpHarness.h"
#include "test/Unit/Sharding/RanksBesideOne.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kChains = 2000;

std::string typeOf(const Shape &shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f64>";
}

/// The text of a chain.
class Chain {
public:
  explicit Chain(Random &random) : random(random) {
    for (int64_t rank = random.integer(1, 3); rank > 0; --rank)
      shape.push_back(random.pick({2, 4, 8}));
    argument = shape;
    std::string sharding = drawSharding();
    for (int64_t count = random.integer(1, 4); count > 0; --count)
      addStep();
    std::string ends = value + " : " + typeOf(shape);
    text = mesh + "graph.func @chain(%x: " + typeOf(argument) + " {dist.sharding = " + sharding + "}) -> " +
           typeOf(shape) + " {\n" + body + "  graph.return " + ends + "\n}\n";
  }

  Shape argument;
  std::string text;
  /// How many of the reshapes move a factor from one dimension to the next.
  int64_t merges = 0;

private:
  /// Each of the axes shards a dimension that it divides, or none.
  std::string drawSharding() {
    std::vector<int64_t> sizes = random.flip() ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{2, 4, 2};
    const char *names[] = {"a", "b", "c"};
    std::string axes, numbers;
    std::vector<std::string> dims(shape.size());
    std::vector<int64_t> left(shape.begin(), shape.end());
    for (auto [i, size] : llvm::enumerate(sizes)) {
      axes += std::string(i ? ", \"" : "\"") + names[i] + "\"";
      numbers += (i ? ", " : "") + std::to_string(size);
    }
    for (int64_t i : random.permutation(sizes.size())) {
      int64_t dim = random.integer(0, static_cast<int64_t>(shape.size()) - 1);
      if (left[dim] % sizes[i] != 0 || random.integer(0, 5) == 0)
        continue;
      left[dim] /= sizes[i];
      dims[dim] += std::string(dims[dim].empty() ? "\"" : ", \"") + names[i] + "\"";
    }
    mesh = "dist.mesh @mesh [" + axes + "] [" + numbers + "]\n";
    std::string text;
    for (const std::string &dim : dims)
      text += (text.empty() ? "{" : ", {") + dim + "}";
    return "#dist.sharding<[" + text + "]>";
  }

  void emit(const std::string &operation, const Shape &to) {
    std::string name = "%" + std::to_string(next++);
    body += "  " + name + " = " + operation + " : (" + typeOf(shape) + ") -> " + typeOf(to) + "\n";
    value = name;
    shape = to;
  }

  void addStep() {
    if (shape.size() > 1 && random.integer(0, 3) == 0) {
      Shape to;
      std::string perm;
      for (int64_t dim : random.permutation(shape.size())) {
        to.push_back(shape[dim]);
        perm += (perm.empty() ? "" : ", ") + std::to_string(dim);
      }
      return emit("graph.transpose " + value + " perm [" + perm + "]", to);
    }
    // A factor of a dimension goes over to its neighbour: [a, b*c] to [a*b, c], or back; or the dimension is divided.
    Shape to = shape;
    int64_t dim = random.integer(0, static_cast<int64_t>(shape.size()) - 1);
    int64_t factor = random.pick({2, 4});
    if (to[dim] % factor != 0)
      factor = to[dim];
    to[dim] /= factor;
    bool up = random.flip();
    int64_t other = up ? dim - 1 : dim + 1;
    if (random.integer(0, 3) == 0 || other < 0 || other == static_cast<int64_t>(to.size()))
      to.insert(to.begin() + (up ? dim : dim + 1), factor);
    else
      to[other] *= factor, ++merges;
    emit("graph.reshape " + value, to);
  }

  Random &random;
  Shape shape;
  std::string mesh, body, value = "%x";
  int64_t next = 0;
};

/// Compares the results of all ranks with the results of one rank.
void check(const Chain &chain) {
  SCOPED_TRACE(chain.text);
  OwningOpRef<ModuleOp> whole = parseSourceString<ModuleOp>(chain.text, &context());
  ASSERT_TRUE(whole);
  OwningOpRef<ModuleOp> local = whole->clone();
  PassManager passes(&context());
  passes.addPass(createPropagateShardings());
  passes.addPass(createGlobalToLocal());
  ASSERT_TRUE(succeeded(passes.run(*local)));
  HostTensor numbers(chain.argument);
  for (int64_t i = 0; i < numbers.count(); ++i)
    numbers.data[i] = static_cast<double>(i + 1);
  Interpreter one(*whole);
  DistributedInterpreter many(*local);
  auto expected = one.run("chain", {numbers}), actual = many.run("chain", {numbers});
  ASSERT_TRUE(succeeded(expected) && succeeded(actual));
  EXPECT_EQ(actual->front().shape, expected->front().shape);
  EXPECT_EQ(actual->front().data, expected->front().data);
}

} // namespace

TEST(ReshapeChains, RanksKeepTheOrderOfElements) {
  Random random;
  SCOPED_TRACE(random.trace());
  int64_t merges = 0;
  for (int i = 0; i < kChains; ++i) {
    Chain chain(random);
    check(chain);
    if (HasFailure())
      return;
    merges += chain.merges;
  }
  EXPECT_GT(merges, kChains / 4);
}
