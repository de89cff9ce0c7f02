//===- ElementwiseTest.cpp - Reference semantics of arith and math
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

template <typename OpTy> static Operation *buildSame(ImplicitLocOpBuilder &b, ValueRange operands) {
  OperationState state(b.getLoc(), OpTy::getOperationName());
  state.addOperands(operands);
  state.addTypes(operands.back().getType());
  return static_cast<OpBuilder &>(b).create(state);
}

using Formula = std::function<long double(std::vector<long double>)>;

static void expectFormula(Random &random, std::vector<Operand> operands, const BuildOp &build, const Formula &formula) {
  SCOPED_TRACE(random.trace());
  HostTensor result = OpHarness(operands, build).forward().front();
  ASSERT_EQ(result.shape, operands[0].value.shape);
  for (size_t i = 0; i < result.data.size(); ++i) {
    std::vector<long double> x;
    for (const Operand &operand : operands)
      x.push_back(operand.value.data[i]);
    double expected = static_cast<double>(formula(x));
    ASSERT_NEAR(result.data[i], expected, 1e-13 * std::max(1.0, std::fabs(expected))) << "element " << i;
  }
}

template <typename OpTy>
static void expectUnary(long double (*function)(long double), double low = -3, double high = 3) {
  Random random;
  expectFormula(random, {{random.reals(random.shape(3), low, high)}}, buildSame<OpTy>,
                [&](std::vector<long double> x) { return function(x[0]); });
}

template <typename OpTy>
static void expectBinary(long double (*function)(long double, long double), double low = -3, double high = 3) {
  Random random;
  Shape shape = random.shape(2);
  expectFormula(random, {{random.reals(shape, low, high)}, {random.reals(shape, low, high)}}, buildSame<OpTy>,
                [&](std::vector<long double> x) { return function(x[0], x[1]); });
}

TEST(Elementwise, Arithmetic) {
  using Number = long double;
  expectBinary<arith::AddFOp>([](Number x, Number y) { return x + y; });
  expectBinary<arith::SubFOp>([](Number x, Number y) { return x - y; });
  expectBinary<arith::MulFOp>([](Number x, Number y) { return x * y; });
  expectBinary<arith::DivFOp>([](Number x, Number y) { return x / y; }, 0.1, 3);
  expectBinary<arith::MaximumFOp>([](Number x, Number y) { return x < y ? y : x; });
  expectBinary<arith::MinimumFOp>([](Number x, Number y) { return x < y ? x : y; });
  expectBinary<math::PowFOp>([](Number x, Number y) { return powl(x, y); }, 0.1, 3);
  expectUnary<arith::NegFOp>([](Number x) { return -x; });
}

TEST(Elementwise, Functions) {
  using Number = long double;
  expectUnary<math::AbsFOp>([](Number x) { return x < 0 ? -x : x; });
  expectUnary<math::CosOp>([](Number x) { return cosl(x); });
  expectUnary<math::SinOp>([](Number x) { return sinl(x); });
  expectUnary<math::ErfOp>([](Number x) { return erfl(x); });
  expectUnary<math::ExpOp>([](Number x) { return expl(x); });
  expectUnary<math::LogOp>([](Number x) { return logl(x); }, 0.01, 9);
  expectUnary<math::RsqrtOp>([](Number x) { return 1 / sqrtl(x); }, 0.01, 9);
  expectUnary<math::SqrtOp>([](Number x) { return sqrtl(x); }, 0, 9);
  expectUnary<math::TanhOp>([](Number x) { return tanhl(x); });
  expectUnary<LogisticOp>([](Number x) { return 1 / (1 + expl(-x)); }, -9, 9);
  expectUnary<SiluOp>([](Number x) { return x / (1 + expl(-x)); }, -9, 9);
}

TEST(Elementwise, LogisticSaturates) {
  HostTensor x({4});
  x.data = {-1e4, -std::numeric_limits<double>::infinity(), 1e4, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(OpHarness({{x}}, buildSame<LogisticOp>).forward().front().data, (std::vector<double>{0, 0, 1, 1}));
}

TEST(Elementwise, MaximumKeepsNaN) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  HostTensor x({2}), y({2});
  x.data = {nan, 1};
  y.data = {1, nan};
  for (const BuildOp &build : {BuildOp(buildSame<arith::MaximumFOp>), BuildOp(buildSame<arith::MinimumFOp>)}) {
    HostTensor result = OpHarness({{x}, {y}}, build).forward().front();
    EXPECT_TRUE(std::isnan(result.data[0]) && std::isnan(result.data[1]));
  }
}

TEST(Elementwise, IntegersWrap) {
  Random random;
  Shape shape = random.shape(2);
  auto draw = [&] { return Operand{random.integers(shape, INT32_MIN, INT32_MAX), ElementKind::I32}; };
  auto wrap = [](__int128 value) {
    return static_cast<long double>(static_cast<int32_t>(static_cast<uint32_t>(value)));
  };
  auto whole = [](long double x) { return static_cast<__int128>(x); };
  expectFormula(random, {draw(), draw()}, buildSame<arith::AddIOp>,
                [&](std::vector<long double> x) { return wrap(whole(x[0]) + whole(x[1])); });
  expectFormula(random, {draw(), draw()}, buildSame<arith::SubIOp>,
                [&](std::vector<long double> x) { return wrap(whole(x[0]) - whole(x[1])); });
  expectFormula(random, {draw(), draw()}, buildSame<arith::MulIOp>,
                [&](std::vector<long double> x) { return wrap(whole(x[0]) * whole(x[1])); });
}

TEST(Elementwise, IntegerBeyondExactIsRefused) {
  auto module = ModuleOp::create(UnknownLoc::get(&context()));
  OwningOpRef<ModuleOp> owner(module);
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  ImplicitLocOpBuilder b(UnknownLoc::get(&context()), &context());
  auto type = RankedTensorType::get({1}, b.getI64Type());
  b.setInsertionPointToEnd(module.getBody());
  auto function = FuncOp::create(b, "f", b.getFunctionType({type}, {type}));
  Block *body = b.createBlock(&function.getBody());
  Value x = body->addArgument(type, b.getLoc());
  ReturnOp::create(b, ValueRange{arith::MulIOp::create(b, x, x)});
  HostTensor large({1});
  large.data = {0x1p31};
  EXPECT_TRUE(failed(Interpreter(module).run("f", large)));
  EXPECT_NE(message.find("cannot hold exactly"), std::string::npos) << message;
}

TEST(Elementwise, SelectAndCompare) {
  Random random;
  Shape shape = random.shape(2);
  expectFormula(random, {{random.integers(shape, 0, 1), ElementKind::I1}, {random.reals(shape)}, {random.reals(shape)}},
                buildSame<arith::SelectOp>, [](std::vector<long double> x) { return x[0] == 1 ? x[1] : x[2]; });
  auto compare = [&](arith::CmpFPredicate predicate) {
    return [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return arith::CmpFOp::create(b, predicate, x[0], x[1]);
    };
  };
  // Few values, so that some are equal, and NaN.
  auto draw = [&] {
    HostTensor x = random.integers(shape, 0, 3);
    for (double &value : x.data)
      value = value == 3 ? std::numeric_limits<double>::quiet_NaN() : value;
    return Operand{x};
  };
  using P = arith::CmpFPredicate;
  auto unordered = [](long double x, long double y) { return x != x || y != y; };
  for (auto [predicate, ordered] : std::vector<std::pair<P, bool (*)(long double, long double)>>{
           {P::OEQ, [](long double x, long double y) { return x == y; }},
           {P::OGT, [](long double x, long double y) { return x > y; }},
           {P::OGE, [](long double x, long double y) { return x >= y; }},
           {P::OLT, [](long double x, long double y) { return x < y; }},
           {P::OLE, [](long double x, long double y) { return x <= y; }},
           {P::ONE, [](long double x, long double y) { return x < y || x > y; }},
           {P::ORD, [](long double x, long double y) { return x == x && y == y; }}}) {
    expectFormula(random, {draw(), draw()}, compare(predicate),
                  [&, ordered = ordered](std::vector<long double> x) { return ordered(x[0], x[1]); });
    // ORD's partner is UNO, its negation; the others' are the same or unordered.
    bool isOrd = predicate == P::ORD;
    P partner = isOrd ? P::UNO : static_cast<P>(static_cast<int>(predicate) + 7);
    expectFormula(random, {draw(), draw()}, compare(partner), [&, ordered = ordered](std::vector<long double> x) {
      return isOrd ? unordered(x[0], x[1]) : ordered(x[0], x[1]) || unordered(x[0], x[1]);
    });
  }
  using I = arith::CmpIPredicate;
  for (auto [predicate, holds] : std::vector<std::pair<I, bool (*)(long double, long double)>>{
           {I::eq, [](long double x, long double y) { return x == y; }},
           {I::ne, [](long double x, long double y) { return x != y; }},
           {I::slt, [](long double x, long double y) { return x < y; }},
           {I::sle, [](long double x, long double y) { return x <= y; }},
           {I::sgt, [](long double x, long double y) { return x > y; }},
           {I::sge, [](long double x, long double y) { return x >= y; }}})
    expectFormula(
        random, {{random.integers(shape, -2, 2), ElementKind::I32}, {random.integers(shape, -2, 2), ElementKind::I32}},
        [predicate = predicate](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
          return arith::CmpIOp::create(b, predicate, x[0], x[1]);
        },
        [holds = holds](std::vector<long double> x) { return holds(x[0], x[1]); });
}

TEST(Elementwise, Conversions) {
  Random random;
  Shape shape = random.shape(2);
  auto to = [](Value x, Type element) { return cast<RankedTensorType>(x.getType()).clone(element); };
  expectFormula(
      random, {{random.integers(shape, -9, 9), ElementKind::I32}},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return arith::SIToFPOp::create(b, to(x[0], b.getF64Type()), x[0]);
      },
      [](std::vector<long double> x) { return x[0]; });
  expectFormula(
      random, {{random.integers(shape, 0, 1), ElementKind::I1}},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return arith::UIToFPOp::create(b, to(x[0], b.getF64Type()), x[0]);
      },
      [](std::vector<long double> x) { return x[0]; });
  expectFormula(
      random, {{random.reals(shape, -9, 9)}},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return arith::FPToSIOp::create(b, to(x[0], b.getI32Type()), x[0]);
      },
      [](std::vector<long double> x) { return static_cast<long double>(static_cast<int>(x[0])); });
}
