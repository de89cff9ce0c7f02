//===- ModelsTest.cpp - Operations compute as their interfaces say
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks every operation with a reference semantics: those of graph and stage, and the upstream ones with external
// models. Each answer of an operation's interfaces is compared with its results on random operands.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Verifier.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

//===----------------------------------------------------------------------===//
// Everybody answers
//===----------------------------------------------------------------------===//

/// Operations that hold programs together and compute nothing.
static const std::set<std::string> kStructure = {"graph.func",  "graph.return", "graph.entry",  "graph.param",
                                                 "graph.state", "graph.read",   "graph.write",  "graph.fusion",
                                                 "graph.yield", "stage.send",   "stage.receive"};

/// Operations that compute something and have no derivative: a loss cannot depend on them smoothly, or the compiler
/// makes them with derivatives or after them.
static const std::set<std::string> kWithoutDerivative = {
    // Integers, comparisons, and values that depend on no parameter.
    "arith.addi", "arith.cmpf", "arith.cmpi", "arith.constant", "arith.fptosi", "arith.muli", "arith.sitofp",
    "arith.subi", "arith.uitofp", "graph.iota", "graph.random", "graph.rope_angles", "graph.sample_tokens",
    "graph.sequence_positions",
    // Served models alone have caches, and weights in blocks of bits.
    "graph.cache_write", "graph.paged_attention", "graph.quantized_dot", "graph.quantized_gather",
    // The derivatives of others, and sums and copies between the stages that have them.
    "graph.attention_grad", "graph.scatter_add", "graph.softmax_cross_entropy_grad", "stage.broadcast", "stage.sum"};

TEST(Models, EveryOperationAnswersOrTakesTheDefaults) {
  int64_t count = 0;
  for (RegisteredOperationName name : context().getRegisteredOperations()) {
    std::string text = name.getStringRef().str();
    bool isOurs = isa<GraphDialect, stage::StageDialect>(name.getDialect()) && !kStructure.count(text);
    if (!isOurs && !name.hasInterface<Interpretable>())
      continue;
    ++count;
    EXPECT_TRUE(name.hasInterface<Interpretable>()) << text;
    EXPECT_EQ(name.hasInterface<Differentiable>(), !kWithoutDerivative.count(text)) << text;
    EXPECT_TRUE(name.hasInterface<CostModel>()) << text;
    EXPECT_TRUE(name.hasInterface<Factored>()) << text;
    EXPECT_TRUE(name.hasInterface<ShardingModel>()) << text;
    EXPECT_TRUE(name.hasInterface<PaddingModel>()) << text;
    EXPECT_TRUE(name.hasInterface<PrecisionModel>()) << text;
    EXPECT_TRUE(name.hasInterface<FusionModel>()) << text;
  }
  EXPECT_GT(count, 50);
}

TEST(Models, KernelsHaveOneOperation) {
  std::map<std::string, std::string> operations;
  for (RegisteredOperationName name : context().getRegisteredOperations())
    if (auto *model = name.getInterface<KernelModel>()) {
      std::string kernel = model->kernelName().str(), text = name.getStringRef().str();
      EXPECT_TRUE(operations.emplace(kernel, text).second) << text << " and " << operations[kernel];
      EXPECT_EQ(operationOfKernel(&context(), kernel), name);
    }
  EXPECT_GE(operations.size(), 8u);
  EXPECT_FALSE(operationOfKernel(&context(), "no kernel"));
}

//===----------------------------------------------------------------------===//
// Examples
//===----------------------------------------------------------------------===//

namespace {
/// An operation by itself, with operands of other values and types.
class Alone {
public:
  explicit Alone(Operation *like, TypeRange operandTypes)
      : builder(like->getLoc(), like->getContext()),
        function(FuncOp::create(builder, "alone", builder.getFunctionType({}, {}))) {
    body = builder.createBlock(&function->getBody());
    for (Type type : operandTypes)
      body->addArgument(type, like->getLoc());
    op = builder.clone(*like);
    op->setOperands(body->getArguments());
  }
  explicit Alone(Operation *like) : Alone(like, like->getOperandTypes()) {}

  /// `wanted` are values of the block that the operation is in.
  Tensors compute(ArrayRef<HostTensor> operands, ValueRange wanted,
                  const Arithmetic &arithmetic = Arithmetic::reals()) {
    DenseMap<Value, HostTensor> values;
    for (auto [argument, operand] : llvm::zip_equal(body->getArguments(), operands)) {
      values[argument] = operand;
      values[argument].shape = cast<RankedTensorType>(argument.getType()).getShape().vec();
    }
    for (Operation &each : *body)
      computeOne(each, values, arithmetic);
    return llvm::map_to_vector(wanted, [&](Value value) { return values.lookup(value); });
  }
  Tensors compute(ArrayRef<HostTensor> operands) { return compute(operands, op->getResults()); }

  ImplicitLocOpBuilder builder;
  OwningOpRef<FuncOp> function;
  Block *body;
  Operation *op;

private:
  static void computeOne(Operation &op, DenseMap<Value, HostTensor> &values, const Arithmetic &arithmetic) {
    if (auto fusion = dyn_cast<FusionOp>(op)) {
      Block &inner = fusion.getBody().front();
      for (auto [argument, input] : llvm::zip_equal(inner.getArguments(), fusion.getInputs()))
        values[argument] = HostTensor(values.lookup(input));
      for (Operation &each : inner.without_terminator())
        computeOne(each, values, arithmetic);
      for (auto [output, value] : llvm::zip_equal(fusion.getOutputs(), inner.getTerminator()->getOperands()))
        values[output] = HostTensor(values.lookup(value));
      return;
    }
    Tensors operands, results;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    for (Type type : op.getResultTypes())
      results.emplace_back(cast<RankedTensorType>(type).getShape().vec());
    EXPECT_TRUE(succeeded(cast<Interpretable>(op).interpret(operands, results, arithmetic)))
        << op.getName().getStringRef().str();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results))
      values[value] = tensor;
  }
};

constexpr int kRounds = 100;

/// Calls `check` with random examples of every operation, and expects it to have something to say (true) about each of
/// `operations`, and about no other if `only`.
void checkAll(function_ref<bool(Random &, Operation *, ArrayRef<HostTensor>)> check,
              const std::set<std::string> &operations) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::set<std::string> checked;
  for (const RuleCase &c : ruleCases())
    for (int round = 0; round < kRounds; ++round) {
      Example example = c.draw(random);
      OpHarness harness(example.operands, example.build);
      SCOPED_TRACE(c.operation);
      if (check(random, harness.operation(), harness.values()))
        checked.insert(c.operation);
      if (testing::Test::HasFailure())
        return;
    }
  EXPECT_THAT(checked, testing::IsSupersetOf(operations));
}
} // namespace

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isReal(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

TEST(Models, EveryOperationCanRun) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor>) {
        if (isa<stage::StageDialect>(op->getDialect()))
          return false; // becomes messages between ranks
        bool runs = isView(op) || fusionRoleOf(op) != FusionRole::None || isa<KernelModel>(op);
        EXPECT_TRUE(runs) << "neither generated code nor a kernel computes it";
        return runs;
      },
      {"graph.reshape", "graph.dot_general", "graph.reduce", "math.exp", "arith.constant"});
}

TEST(Models, DecompositionsComputeTheSame) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        Alone alone(op);
        OpBuilder builder(alone.op);
        SmallVector<Value> parts = cast<FusionModel>(alone.op).decompose(builder);
        if (parts.empty())
          return false;
        EXPECT_EQ(ValueRange(parts).getTypes(), op->getResultTypes());
        for (auto [actual, expected] : llvm::zip_equal(alone.compute(operands, parts), Alone(op).compute(operands)))
          expectNear(actual, expected);
        return true;
      },
      {"graph.gelu", "graph.layer_norm", "graph.logistic", "graph.rms_norm", "graph.rope", "graph.silu",
       "graph.softcap", "graph.softmax_cross_entropy", "graph.softmax_cross_entropy_grad", "graph.valid_rows"});
}

/// How many elements of a tensor are in one row of the domain: a row, one value, or none where all rows share the
/// tensor.
static int64_t rowSize(const HostTensor &value, ArrayRef<SmallVector<int64_t, 1>> tensor,
                       ArrayRef<SmallVector<int64_t, 1>> domain) {
  if (tensor == domain)
    return value.shape.back();
  return tensor == domain.drop_back() ? 1 : 0;
}

TEST(Models, RowsFollowFromTheirRowAlone) {
  checkAll(
      [](Random &random, Operation *op, ArrayRef<HostTensor> operands) {
        FusionRole role = fusionRoleOf(op);
        if ((role != FusionRole::Row && role != FusionRole::Elementwise) || fusionDomainOf(op).empty())
          return false;
        FactorRule rule = cast<Factored>(op).factorRule();
        const FactorRule::TensorFactors &domain = role == FusionRole::Row ? rule.operands[0] : rule.results[0];
        int64_t rows = ShapedType::getNumElements(fusionDomainOf(op).drop_back()), row = random.integer(0, rows - 1);
        Tensors changed(operands);
        for (auto [value, tensor, factors] : llvm::zip_equal(op->getOperands(), changed, rule.operands))
          if (int64_t size = isReal(value) ? rowSize(tensor, factors, domain) : 0)
            for (auto [i, element] : llvm::enumerate(tensor.data))
              if (static_cast<int64_t>(i) / size != row)
                element += random.real(0.1, 1);
        Tensors before = Alone(op).compute(operands), after = Alone(op).compute(changed);
        for (auto [a, b, factors] : llvm::zip_equal(before, after, rule.results)) {
          int64_t size = rowSize(a, factors, domain);
          EXPECT_GT(size, 0) << "a result of a row operation has rows";
          for (int64_t i = row * size; i < (row + 1) * size; ++i)
            EXPECT_EQ(a.data[i], b.data[i]);
        }
        return true;
      },
      {"graph.layer_norm", "graph.reduce", "graph.rms_norm", "graph.silu", "graph.softmax_cross_entropy",
       "graph.softmax_cross_entropy_grad", "arith.addf"});
}

TEST(Models, RepetitionsHaveTheOperandInTheNamedDimensions) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        if (!isRepetition(op))
          return false;
        HostTensor result = Alone(op).compute(operands).front();
        SmallVector<int64_t> dims = repeatedDims(op);
        size_t next = 0;
        forEachIndex(result.shape, [&](const std::vector<int64_t> &index) {
          SmallVector<int64_t> own = llvm::map_to_vector(dims, [&](int64_t dim) { return index[dim]; });
          EXPECT_EQ(result.data[next++], at(operands[0], own));
        });
        return true;
      },
      {"graph.broadcast"});
}

TEST(Models, ViewsHaveTheSameBytes) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        if (!isView(op))
          return false;
        EXPECT_EQ(typeOf(op->getResult(0)).getElementType(), typeOf(op->getOperand(0)).getElementType());
        EXPECT_EQ(Alone(op).compute(operands).front().data, operands[0].data);
        return true;
      },
      {"graph.reshape"});
}

TEST(Models, WhatFollowsInPrecisionMovesElements) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        if (precisionOf(op) != Precision::Follow || op->getNumOperands() != 1)
          return false;
        std::set<double> known(operands[0].data.begin(), operands[0].data.end());
        known.insert(0.0);
        HostTensor result = Alone(op).compute(operands).front();
        for (double element : result.data)
          EXPECT_TRUE(known.count(element)) << element << " is neither zero nor an element of the operand";
        return true;
      },
      {"graph.broadcast", "graph.concat", "graph.pad", "graph.reshape", "graph.slice", "graph.transpose"});
}

TEST(Models, KernelsStandForTheirOperations) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        if (!isa<KernelModel>(op))
          return false;
        Alone alone(op);
        OpBuilder prepare(alone.op);
        cast<KernelModel>(alone.op).prepareForKernel(prepare);
        // The operation itself, or its replacement, behind which there may be views.
        Operation *last = &alone.body->back();
        while (isView(last))
          last = last->getOperand(0).getDefiningOp();
        auto model = cast<KernelModel>(last);
        if (!model.hasKernel())
          return false;
        KernelUse use{model.kernelConfig(/*hasEpilogue=*/false), {}, {}};
        for (Value operand : model->getOperands())
          use.operands.push_back(typeOf(operand));
        for (Value result : model->getResults())
          use.results.push_back(typeOf(result));
        alone.builder.setInsertionPointToEnd(alone.body);
        SmallVector<Value> results;
        auto name = operationOfKernel(&context(), model.kernelName());
        auto *kernel = name ? name->getInterface<KernelModel>() : nullptr;
        EXPECT_TRUE(kernel && succeeded(kernel->buildFromKernel(alone.builder, use, model->getOperands(), results)));
        EXPECT_EQ(ValueRange(results).getTypes(), model->getResultTypes());
        for (auto [actual, expected] : llvm::zip_equal(alone.compute(operands, results), Alone(op).compute(operands))) {
          actual.shape = expected.shape;
          expectNear(actual, expected);
        }
        return true;
      },
      {"graph.attention", "graph.attention_grad", "graph.cache_write", "graph.dot_general", "graph.gather",
       "graph.grouped_dot", "graph.grouped_outer", "graph.paged_attention", "graph.quantized_dot",
       "graph.quantized_gather", "graph.random", "graph.rope_angles", "graph.sample_tokens", "graph.scatter_add",
       "graph.sequence_positions"});
}

//===----------------------------------------------------------------------===//
// Sums, and dimensions seen as two
//===----------------------------------------------------------------------===//

TEST(Models, AdditiveOperationsAddUp) {
  checkAll(
      [](Random &random, Operation *op, ArrayRef<HostTensor> operands) {
        if (!cast<ShardingModel>(op).isAdditive())
          return false;
        Tensors others, sums;
        for (const HostTensor &operand : operands) {
          others.push_back(random.reals(operand.shape));
          sums.push_back(operand);
          for (auto [sum, other] : llvm::zip_equal(sums.back().data, others.back().data))
            sum += other;
        }
        Tensors one = Alone(op).compute(operands), two = Alone(op).compute(others), all = Alone(op).compute(sums);
        for (size_t i = 0; i < one.front().data.size(); ++i)
          EXPECT_NEAR(one.front().data[i] + two.front().data[i], all.front().data[i], 1e-12);
        return true;
      },
      {"arith.addf", "arith.extf", "graph.reduce", "graph.reshape", "graph.transpose"});
}

/// Whether every dimension of the operation that has the factor is that factor alone.
static bool standsAlone(const FactorRule &rule, int64_t factor) {
  for (const auto &tensors : {rule.operands, rule.results})
    for (const FactorRule::TensorFactors &tensor : tensors)
      for (const auto &dim : tensor)
        if (llvm::is_contained(dim, factor) && dim.size() > 1)
          return false;
  return true;
}

TEST(Models, SplitDimensionsKeepTheElements) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        FactorRule rule = cast<Factored>(op).factorRule();
        bool any = false;
        for (auto [number, factor] : llvm::enumerate(rule.factors)) {
          if (factor.size < 4 || factor.size % 2 != 0 || factor.kind == FactorRule::Kind::Blocked ||
              !standsAlone(rule, static_cast<int64_t>(number)))
            continue;
          DimSplit split{2, factor.size / 2};
          auto splitsOf = [&, own = static_cast<int64_t>(number)](const FactorRule::TensorFactors &tensor) {
            return DimSplits(llvm::map_range(
                tensor, [&](ArrayRef<int64_t> dim) { return llvm::is_contained(dim, own) ? split : DimSplit(); }));
          };
          SmallVector<DimSplits> before = llvm::map_to_vector(rule.operands, splitsOf),
                                 after = llvm::map_to_vector(rule.results, splitsOf);
          if (!cast<ShardingModel>(op).canSplitDims(/*byRule=*/true, before, after))
            continue;
          SmallVector<Type> types;
          for (auto [operand, splits] : llvm::zip_equal(op->getOperands(), before))
            types.push_back(typeOf(operand).clone(splitShape(splits, typeOf(operand).getShape())));
          Alone alone(op, types);
          cast<ShardingModel>(alone.op).splitDims(before, after);
          EXPECT_TRUE(succeeded(verify(alone.op)));
          Tensors expected = Alone(op).compute(operands), actual = alone.compute(operands);
          for (auto [a, b, splits] : llvm::zip_equal(actual, expected, after)) {
            EXPECT_EQ(ArrayRef<int64_t>(a.shape), ArrayRef<int64_t>(splitShape(splits, b.shape)));
            EXPECT_EQ(a.data, b.data);
          }
          any = true;
        }
        return any;
      },
      {"arith.addf", "graph.broadcast", "graph.concat", "graph.dot_general", "graph.pad", "graph.random",
       "graph.reduce", "graph.slice", "graph.transpose"});
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

namespace {
/// One factor has grown; operands' padding holds these numbers.
class Grown final : public PaddingContext {
public:
  Grown(const FactorRule &rule, int64_t factor, SmallVector<Number> numbers)
      : rule(rule), factor(factor), numbers(std::move(numbers)) {}

  FactorRule::Kind kind() const override { return rule.factors[factor].kind; }
  std::optional<int64_t> dimOfOperand(unsigned operand) const override { return dimOf(rule.operands[operand]); }
  std::optional<int64_t> dimOfResult(unsigned result) const override { return dimOf(rule.results[result]); }
  Number numberIn(unsigned operand) const override { return dimOfOperand(operand) ? numbers[operand] : std::nullopt; }
  void require(unsigned operand, double number) override {
    EXPECT_TRUE(dimOfOperand(operand)) << "operand " << operand << " has no padding";
    numbers[operand] = number;
  }

  Shape shapeOf(ArrayRef<int64_t> shape, const FactorRule::TensorFactors &tensor, int64_t more) const {
    Shape grown = shape.vec();
    if (auto dim = dimOf(tensor))
      grown[*dim] += more;
    return grown;
  }

private:
  std::optional<int64_t> dimOf(const FactorRule::TensorFactors &tensor) const {
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (llvm::is_contained(factors, factor))
        return static_cast<int64_t>(dim);
    return std::nullopt;
  }

  const FactorRule &rule;
  int64_t factor;
  SmallVector<Number> numbers;
};
} // namespace

/// Calls body(element of the grown tensor, its element of before; none where it is padding).
static void forEachGrown(const Shape &grown, const Shape &before,
                         function_ref<void(size_t, std::optional<size_t>)> body) {
  HostTensor shape(before);
  std::vector<int64_t> strides = shape.strides();
  size_t next = 0;
  forEachIndex(grown, [&](const std::vector<int64_t> &index) {
    bool isInside = true;
    for (auto [i, size] : llvm::zip_equal(index, before))
      isInside &= i < size;
    body(next++, isInside ? std::optional<size_t>(offsetOf(index, strides)) : std::nullopt);
  });
}

/// Whether the operation says which padding of a factor that stays whole changes nothing.
static bool padsWhole(Operation *op, const FactorRule &rule, int64_t factor) {
  auto model = cast<PaddingModel>(op);
  Grown context(rule, factor, SmallVector<std::optional<double>>(op->getNumOperands()));
  model.requireNeutralPadding(context);
  bool isRequired = llvm::any_of(llvm::seq(op->getNumOperands()),
                                 [&](unsigned operand) { return context.numberIn(operand).has_value(); });
  return model.padsWholeDims() && isRequired;
}

/// Whether the operation says that padding of the factor, of which it knows some numbers, changes nothing.
static bool checkPadding(Random &random, Operation *op, ArrayRef<HostTensor> operands, const FactorRule &rule,
                         int64_t factor) {
  const FactorRule::Factor &f = rule.factors[factor];
  bool combines = f.combine || f.kind == FactorRule::Kind::Exchanged;
  if ((f.kind == FactorRule::Kind::Blocked && !padsWhole(op, rule, factor)) || !standsAlone(rule, factor) ||
      op->hasTrait<OpTrait::ConstantLike>() || (combines && !cast<PaddingModel>(op).hasNeutralPadding()))
    return false;
  int64_t more = random.integer(1, 3);
  SmallVector<std::optional<double>> numbers;
  for (Value operand : op->getOperands())
    numbers.push_back(!isReal(operand) ? std::optional(0.0)
                      : random.flip()  ? std::optional<double>(static_cast<double>(random.integer(0, 2)))
                                       : std::nullopt);
  Grown context(rule, factor, numbers);
  SmallVector<Type> types;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    types.push_back(typeOf(operand).clone(context.shapeOf(typeOf(operand).getShape(), tensor, more)));
  Alone alone(op, types);
  auto model = cast<PaddingModel>(alone.op);
  for (auto [index, tensor] : llvm::enumerate(rule.results)) {
    RankedTensorType type = typeOf(op->getResult(index));
    if (context.dimOfResult(index))
      model.growResult(index, type.clone(context.shapeOf(type.getShape(), tensor, more)));
  }
  EXPECT_TRUE(succeeded(verify(alone.op)));
  model.requireNeutralPadding(context);

  Tensors padded;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    HostTensor tensor(context.shapeOf(operand.shape, rule.operands[index], more));
    forEachGrown(tensor.shape, operand.shape, [&, i = index, &from = operand](size_t to, std::optional<size_t> inside) {
      tensor.data[to] = inside ? from.data[*inside] : context.numberIn(i).value_or(random.real(1, 2));
    });
    padded.push_back(std::move(tensor));
  }
  Tensors before = Alone(op).compute(operands), after = alone.compute(padded);
  for (auto [index, result] : llvm::enumerate(after)) {
    std::optional<double> promised = context.dimOfResult(index) ? model.resultPadding(context, index) : std::nullopt;
    forEachGrown(
        result.shape, before[index].shape, [&, i = index, &own = result](size_t at, std::optional<size_t> from) {
          if (from)
            EXPECT_NEAR(own.data[at], before[i].data[*from], 1e-12 * std::max(1.0, std::fabs(before[i].data[*from])));
          else if (promised && std::isfinite(*promised))
            EXPECT_EQ(own.data[at], *promised) << "the padding of result " << i;
        });
  }
  return true;
}

TEST(Models, PaddingChangesNothing) {
  checkAll(
      [](Random &random, Operation *op, ArrayRef<HostTensor> operands) {
        FactorRule rule = cast<Factored>(op).factorRule();
        bool any = false;
        for (int64_t factor = 0, count = rule.factors.size(); factor < count; ++factor)
          any |= checkPadding(random, op, operands, rule, factor);
        return any;
      },
      {"arith.mulf", "arith.select", "graph.attention", "graph.broadcast", "graph.cache_write", "graph.concat",
       "graph.dot_general", "graph.gather", "graph.grouped_dot", "graph.grouped_outer", "graph.pad", "graph.random",
       "graph.reduce", "graph.sample_tokens", "graph.scatter_add", "graph.slice", "graph.softmax_cross_entropy",
       "graph.softmax_cross_entropy_grad", "graph.transpose"});
}

//===----------------------------------------------------------------------===//
// Answers that are meant for programs of certain types
//===----------------------------------------------------------------------===//

TEST(Models, AbsentIndicesHaveAMeaning) {
  checkAll(
      [](Random &, Operation *op, ArrayRef<HostTensor> operands) {
        bool any = false;
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          if (cast<Interpretable>(op).takesAbsent(i)) {
            Tensors absent(operands);
            llvm::fill(absent[i].data, -1.0);
            HostTensor result = Alone(op).compute(absent).front();
            for (double element : result.data)
              EXPECT_EQ(element, 0.0);
            any = true;
          }
        return any;
      },
      {"graph.softmax_cross_entropy", "graph.softmax_cross_entropy_grad"});
}

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

/// Whether the only result of narrow operands may be of this type.
static bool takesResult(Operation *like, FloatType element) {
  SmallVector<Type> operands(like->getOperandTypes());
  for (Type &type : operands)
    if (isFloat(type))
      type = cast<RankedTensorType>(type).clone(BFloat16Type::get(like->getContext()));
  Alone narrow(like, operands);
  narrow.op->getResult(0).setType(cast<RankedTensorType>(like->getResultTypes()[0]).clone(element));
  ScopedDiagnosticHandler silent(&context(), [](Diagnostic &) { return success(); });
  return succeeded(verify(narrow.op));
}

TEST(Models, WideSumsAreResultsOfTheOperation) {
  Builder b(&context());
  for (const RuleCase &c : ruleCases()) {
    Random random;
    Example example = c.draw(random);
    OpHarness harness(example.operands, example.build);
    Operation *op = harness.operation();
    bool takesBoth = op->getNumResults() == 1 && llvm::any_of(op->getOperandTypes(), isFloat) &&
                     takesResult(op, b.getBF16Type()) && takesResult(op, b.getF32Type());
    EXPECT_EQ(cast<PrecisionModel>(op).accumulatesWide(), takesBoth) << c.operation;
  }
}
