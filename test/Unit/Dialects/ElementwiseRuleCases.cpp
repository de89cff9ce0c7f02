//===- ElementwiseRuleCases.cpp - Elementwise operations that rules are tried on
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

/// An operation whose result has the type of its last operand with `result` elements.
template <typename OpTy>
static RuleCase elementwise(std::vector<ElementKind> operands, ElementKind result = ElementKind::F64) {
  return {OpTy::getOperationName().str(), [=](Random &random) {
            Example example;
            Shape shape = random.shape(random.integer(0, 3));
            for (ElementKind element : operands)
              example.operands.push_back({element == ElementKind::F64   ? random.reals(shape, 0.1, 3)
                                          : element == ElementKind::I32 ? random.integers(shape, -9, 9)
                                                                        : random.integers(shape, 0, 1),
                                          element});
            example.build = [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
              Type elements[] = {b.getF64Type(), b.getI32Type(), b.getI1Type()};
              OperationState state(b.getLoc(), OpTy::getOperationName());
              state.addOperands(x);
              state.addTypes(RankedTensorType::get(shape, elements[static_cast<int>(result)]));
              return static_cast<OpBuilder &>(b).create(state);
            };
            return example;
          }};
}

template <typename... Ops> static void addUnary(std::vector<RuleCase> &cases) {
  (cases.push_back(elementwise<Ops>({ElementKind::F64})), ...);
}
template <typename... Ops> static void addBinary(std::vector<RuleCase> &cases, ElementKind element) {
  (cases.push_back(elementwise<Ops>({element, element}, element)), ...);
}

/// An operation on operands of one random shape, built by hand.
static RuleCase pointwise(StringRef name, std::vector<ElementKind> operands, const BuildOp &build) {
  RuleCase result = elementwise<arith::AddFOp>(std::move(operands));
  return {name.str(), [draw = result.draw, build](Random &random) {
            Example example = draw(random);
            example.build = build;
            return example;
          }};
}

static Type withElements(Value value, Type element) { return cast<RankedTensorType>(value.getType()).clone(element); }

void bowline::test::addElementwiseCases(std::vector<RuleCase> &cases) {
  addBinary<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp, arith::MinimumFOp,
            math::PowFOp>(cases, ElementKind::F64);
  addBinary<arith::AddIOp, arith::SubIOp, arith::MulIOp>(cases, ElementKind::I32);
  addUnary<arith::NegFOp, math::AbsFOp, math::CosOp, math::ErfOp, math::ExpOp, math::LogOp, math::RsqrtOp, math::SinOp,
           math::SqrtOp, math::TanhOp, LogisticOp, SiluOp>(cases);
  cases.push_back(elementwise<arith::SIToFPOp>({ElementKind::I32}));
  cases.push_back(elementwise<arith::UIToFPOp>({ElementKind::I1}));
  cases.push_back(elementwise<arith::FPToSIOp>({ElementKind::F64}, ElementKind::I32));
  cases.push_back(elementwise<arith::SelectOp>({ElementKind::I1, ElementKind::F64, ElementKind::F64}));

  using Ops = ValueRange;
  for (GeluKind kind : {GeluKind::Tanh, GeluKind::Erf})
    cases.push_back(pointwise("graph.gelu", {ElementKind::F64}, [=](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
      return GeluOp::create(b, x[0].getType(), kind, x[0]);
    }));
  cases.push_back(pointwise("graph.softcap", {ElementKind::F64}, [](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
    return SoftcapOp::create(b, x[0].getType(), x[0], APFloat(1.5));
  }));
  cases.push_back(pointwise("arith.truncf", {ElementKind::F64}, [](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
    return arith::TruncFOp::create(b, withElements(x[0], b.getBF16Type()), x[0]);
  }));
  cases.push_back(pointwise("arith.extf", {ElementKind::F64}, [](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
    Value narrow = arith::TruncFOp::create(b, withElements(x[0], b.getBF16Type()), x[0]);
    return arith::ExtFOp::create(b, x[0].getType(), narrow);
  }));
  cases.push_back(
      pointwise("arith.cmpf", {ElementKind::F64, ElementKind::F64}, [](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
        return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x[0], x[1]);
      }));
  cases.push_back(
      pointwise("arith.cmpi", {ElementKind::I32, ElementKind::I32}, [](ImplicitLocOpBuilder &b, Ops x) -> Operation * {
        return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x[0], x[1]);
      }));
}
