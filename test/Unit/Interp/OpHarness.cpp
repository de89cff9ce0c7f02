//===- OpHarness.cpp - Runs one operation and its gradient on random inputs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Interp/OpHarness.h"

#include "compiler/Interp/Interpreter.h"
#include "compiler/Support/Registration.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

MLIRContext &bowline::test::context() {
  static MLIRContext &instance = *[] {
    DialectRegistry registry;
    registerAllDialects(registry);
    auto *context = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    return context;
  }();
  return instance;
}

//===----------------------------------------------------------------------===//
// Random
//===----------------------------------------------------------------------===//

int64_t Random::integer(int64_t low, int64_t highInclusive) {
  return std::uniform_int_distribution<int64_t>(low, highInclusive)(engine);
}

double Random::real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }

Shape Random::shape(int64_t rank) {
  Shape shape(rank);
  for (int64_t &dim : shape)
    dim = size();
  return shape;
}

SmallVector<int64_t> Random::permutation(int64_t count) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, count));
  std::shuffle(order.begin(), order.end(), engine);
  return order;
}

SmallVector<int64_t> Random::selection(int64_t rank) {
  SmallVector<int64_t> chosen;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (flip())
      chosen.push_back(dim);
  return chosen;
}

HostTensor Random::reals(const Shape &shape, double low, double high) {
  HostTensor tensor(shape);
  for (double &value : tensor.data)
    value = real(low, high);
  return tensor;
}

HostTensor Random::integers(const Shape &shape, int64_t low, int64_t highInclusive) {
  HostTensor tensor(shape);
  for (double &value : tensor.data)
    value = static_cast<double>(integer(low, highInclusive));
  return tensor;
}

HostTensor Random::distinct(const Shape &shape) {
  HostTensor tensor(shape);
  int64_t count = tensor.count();
  for (auto [value, step] : llvm::zip_equal(tensor.data, permutation(count)))
    value = (static_cast<double>(step) + 0.5) * 4 / static_cast<double>(count) - 2;
  // An odd count has a step at zero.
  for (double &value : tensor.data)
    value += 1.0 / static_cast<double>(count);
  return tensor;
}

//===----------------------------------------------------------------------===//
// OpHarness
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(const Operand &operand) {
  Builder builder(&context());
  Type element = operand.element == ElementKind::F64   ? Type(builder.getF64Type())
                 : operand.element == ElementKind::I32 ? Type(builder.getI32Type())
                 : operand.element == ElementKind::U8  ? Type(builder.getIntegerType(8, /*isSigned=*/false))
                                                       : Type(builder.getI1Type());
  return RankedTensorType::get(operand.value.shape, element);
}

/// An empty function at the end of `module`, with the builder at the end of its body.
static graph::FuncOp beginFunction(ImplicitLocOpBuilder &b, ModuleOp module, StringRef name, TypeRange arguments) {
  b.setInsertionPointToEnd(module.getBody());
  auto function = graph::FuncOp::create(b, name, b.getFunctionType(arguments, {}));
  Block *body = b.createBlock(&function.getBody());
  for (Type type : arguments)
    body->addArgument(type, b.getLoc());
  return function;
}

static void endFunction(ImplicitLocOpBuilder &b, graph::FuncOp function, ValueRange results) {
  graph::ReturnOp::create(b, results);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), results.getTypes()));
}

static Tensors run(ModuleOp module, StringRef name, ArrayRef<HostTensor> arguments) {
  FailureOr<Tensors> results = Interpreter(module).run(name, arguments);
  EXPECT_TRUE(succeeded(results)) << "@" << name.str() << " failed";
  return succeeded(results) ? *results : Tensors();
}

OpHarness::OpHarness(std::vector<Operand> givenOperands, BuildOp build)
    : operands(std::move(givenOperands)), module(ModuleOp::create(UnknownLoc::get(&context()))) {
  ImplicitLocOpBuilder b(UnknownLoc::get(&context()), &context());
  SmallVector<Type> types = llvm::map_to_vector(operands, [](const Operand &o) -> Type { return typeOf(o); });
  graph::FuncOp function = beginFunction(b, *module, "forward", types);
  op = build(b, function.getBody().getArguments());
  endFunction(b, function, op->getResults());
  EXPECT_TRUE(succeeded(verify(*module)));
}

Tensors OpHarness::forward(const std::vector<HostTensor> &values) { return run(*module, "forward", values); }

std::vector<HostTensor> OpHarness::values() const {
  std::vector<HostTensor> values;
  for (const Operand &operand : operands)
    values.push_back(operand.value);
  return values;
}

OpHarness::Gradients OpHarness::gradients(const std::vector<std::optional<HostTensor>> &cotangents) {
  ImplicitLocOpBuilder b(UnknownLoc::get(&context()), &context());
  if (Operation *old = SymbolTable::lookupSymbolIn(module->getOperation(), "vjp"))
    old->erase();
  SmallVector<Type> types = llvm::map_to_vector(operands, [](const Operand &o) -> Type { return typeOf(o); });
  std::vector<HostTensor> arguments = values();
  for (auto [result, cotangent] : llvm::zip_equal(op->getResults(), cotangents))
    if (cotangent) {
      types.push_back(result.getType());
      arguments.push_back(*cotangent);
    }
  graph::FuncOp function = beginFunction(b, *module, "vjp", types);
  ValueRange blockArguments = function.getBody().getArguments();

  IRMapping mapping;
  graph::FuncOp forward = cast<graph::FuncOp>(op->getParentOp());
  mapping.map(forward.getBody().getArguments(), blockArguments.take_front(operands.size()));
  Operation *copy = b.clone(*op, mapping);
  SmallVector<Value> resultGrads, operandGrads(copy->getNumOperands());
  size_t next = operands.size();
  for (const auto &cotangent : cotangents)
    resultGrads.push_back(cotangent ? blockArguments[next++] : Value());
  auto differentiable = dyn_cast<graph::Differentiable>(copy);
  EXPECT_TRUE(differentiable) << copy->getName().getStringRef().str() << " is not differentiable";
  EXPECT_TRUE(differentiable && succeeded(differentiable.buildVjp(b, resultGrads, operandGrads)));

  SmallVector<Value> returned;
  for (auto [operand, grad] : llvm::zip_equal(copy->getOperands(), operandGrads))
    if (grad) {
      EXPECT_EQ(grad.getType(), operand.getType()) << "a gradient has its operand's type";
      returned.push_back(grad);
    }
  endFunction(b, function, returned);
  EXPECT_TRUE(succeeded(verify(*module)));

  Tensors results = run(*module, "vjp", arguments);
  Gradients gradients;
  size_t position = 0;
  for (Value grad : operandGrads)
    gradients.operands.push_back(grad && position < results.size() ? std::optional(results[position++]) : std::nullopt);
  return gradients;
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

static double innerProduct(const Tensors &results, const std::vector<std::optional<HostTensor>> &cotangents) {
  double product = 0;
  for (auto [result, cotangent] : llvm::zip_equal(results, cotangents))
    if (cotangent)
      product = std::inner_product(result.data.begin(), result.data.end(), cotangent->data.begin(), product);
  return product;
}

void bowline::test::expectGradients(Random &random, std::vector<Operand> operands, const BuildOp &build,
                                    std::vector<bool> results, std::vector<size_t> constants) {
  SCOPED_TRACE(random.trace());
  OpHarness harness(operands, build);
  if (results.empty())
    results.assign(harness.operation()->getNumResults(), true);
  std::vector<std::optional<HostTensor>> cotangents;
  for (auto [isUsed, type] : llvm::zip_equal(results, harness.operation()->getResultTypes()))
    cotangents.push_back(isUsed ? std::optional(random.reals(cast<RankedTensorType>(type).getShape().vec()))
                                : std::nullopt);
  OpHarness::Gradients gradients = harness.gradients(cotangents);

  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  std::vector<HostTensor> values = harness.values();
  for (auto [k, operand] : llvm::enumerate(operands)) {
    const std::optional<HostTensor> &gradient = gradients.operands[k];
    if (operand.element != ElementKind::F64 || llvm::is_contained(constants, k)) {
      EXPECT_FALSE(gradient) << "operand " << k << " should have no gradient";
      continue;
    }
    HostTensor numeric(operand.value.shape);
    double largest = 1e-3;
    for (size_t i = 0; i < numeric.data.size(); ++i) {
      double original = values[k].data[i];
      values[k].data[i] = original + kStep;
      double above = innerProduct(harness.forward(values), cotangents);
      values[k].data[i] = original - kStep;
      double below = innerProduct(harness.forward(values), cotangents);
      values[k].data[i] = original;
      numeric.data[i] = (above - below) / (2 * kStep);
      largest = std::max(largest, std::fabs(numeric.data[i]));
    }
    for (size_t i = 0; i < numeric.data.size(); ++i)
      ASSERT_NEAR(gradient ? gradient->data[i] : 0.0, numeric.data[i], kTolerance * largest)
          << "gradient of operand " << k << ", element " << i;
  }
}

void bowline::test::expectNear(const HostTensor &actual, const HostTensor &expected) {
  ASSERT_EQ(actual.shape, expected.shape);
  ASSERT_EQ(actual.data.size(), expected.data.size());
  for (size_t i = 0; i < expected.data.size(); ++i)
    ASSERT_NEAR(actual.data[i], expected.data[i], 1e-12 * std::max(1.0, std::fabs(expected.data[i])))
        << "element " << i;
}

double bowline::test::at(const HostTensor &tensor, ArrayRef<int64_t> index) {
  int64_t offset = 0;
  for (auto [size, i] : llvm::zip_equal(tensor.shape, index))
    offset = offset * size + i;
  return tensor.data[offset];
}

HostTensor bowline::test::tensorOf(const Shape &shape,
                                   function_ref<long double(const std::vector<int64_t> &)> formula) {
  HostTensor tensor(shape);
  std::vector<int64_t> index(shape.size());
  for (int64_t position = 0; position < tensor.count(); ++position) {
    int64_t rest = position;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
      index[dim] = rest % shape[dim];
    tensor.data[position] = static_cast<double>(formula(index));
  }
  return tensor;
}
