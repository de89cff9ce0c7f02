//===- ElementwiseModels.cpp - Interfaces of upstream elementwise operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// `arith` and `math` operations on tensors are the elementwise part of the graph dialect. This file gives each one its
// reference semantics, its derivative, its cost and its factor rule.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Graph/Ops/TensorMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// Reference semantics: one scalar function per operation.
//===----------------------------------------------------------------------===//

using Scalars = ArrayRef<double>;

/// Integer arithmetic is modulo 2^width, as `arith` says.
static uint64_t bits(double value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
static double wrapped(Type type, uint64_t value) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return width == 1 ? value & 1 : static_cast<double>(llvm::SignExtend64(value, width));
}

using A = const Arithmetic &;

static double eval(arith::AddFOp, A a, Scalars x) { return a.add(x[0], x[1]); }
static double eval(arith::SubFOp, A a, Scalars x) { return a.subtract(x[0], x[1]); }
static double eval(arith::MulFOp, A a, Scalars x) { return a.multiply(x[0], x[1]); }
static double eval(arith::DivFOp, A a, Scalars x) { return a.divide(x[0], x[1]); }
static double eval(arith::NegFOp, A a, Scalars x) { return a.negative(x[0]); }
// Numbers of an arithmetic without an order are compared as they are held: that keeps the laws of a total order.
static double eval(arith::MaximumFOp, A, Scalars x) { return std::isnan(x[0]) ? x[0] : x[0] > x[1] ? x[0] : x[1]; }
static double eval(arith::MinimumFOp, A, Scalars x) { return std::isnan(x[0]) ? x[0] : x[0] < x[1] ? x[0] : x[1]; }
static double eval(arith::SelectOp, A, Scalars x) { return x[0] != 0 ? x[1] : x[2]; }
static double eval(arith::ExtFOp, A, Scalars x) { return x[0]; }
static double eval(arith::TruncFOp, A, Scalars x) { return x[0]; }
static double eval(arith::SIToFPOp, A a, Scalars x) { return a.number(x[0]); }
static double eval(arith::UIToFPOp, A a, Scalars x) { return a.number(x[0]); }
static double eval(arith::FPToSIOp, A a, Scalars x) { return *a.truncated(x[0]); }
static double eval(arith::AddIOp op, A, Scalars x) { return wrapped(op.getType(), bits(x[0]) + bits(x[1])); }
static double eval(arith::SubIOp op, A, Scalars x) { return wrapped(op.getType(), bits(x[0]) - bits(x[1])); }
static double eval(arith::MulIOp op, A, Scalars x) { return wrapped(op.getType(), bits(x[0]) * bits(x[1])); }
static double eval(math::AbsFOp, A a, Scalars x) { return a.abs(x[0]); }
static double eval(math::CosOp, A a, Scalars x) { return a.cos(x[0]); }
static double eval(math::ErfOp, A a, Scalars x) { return a.erf(x[0]); }
static double eval(math::ExpOp, A a, Scalars x) { return a.exp(x[0]); }
static double eval(math::LogOp, A a, Scalars x) { return a.log(x[0]); }
static double eval(math::PowFOp, A a, Scalars x) { return a.pow(x[0], x[1]); }
static double eval(math::RsqrtOp, A a, Scalars x) { return a.divide(1, a.sqrt(x[0])); }
static double eval(math::SinOp, A a, Scalars x) { return a.sin(x[0]); }
static double eval(math::SqrtOp, A a, Scalars x) { return a.sqrt(x[0]); }
static double eval(math::TanhOp, A a, Scalars x) { return a.tanh(x[0]); }

static double eval(arith::CmpFOp op, A, Scalars x) {
  bool unordered = std::isnan(x[0]) || std::isnan(x[1]);
  switch (op.getPredicate()) {
  case arith::CmpFPredicate::OEQ:
    return x[0] == x[1];
  case arith::CmpFPredicate::OGT:
    return x[0] > x[1];
  case arith::CmpFPredicate::OGE:
    return x[0] >= x[1];
  case arith::CmpFPredicate::OLT:
    return x[0] < x[1];
  case arith::CmpFPredicate::OLE:
    return x[0] <= x[1];
  case arith::CmpFPredicate::ONE:
    return !unordered && x[0] != x[1];
  case arith::CmpFPredicate::UNE:
    return unordered || x[0] != x[1];
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || x[0] == x[1];
  case arith::CmpFPredicate::UGT:
    return unordered || x[0] > x[1];
  case arith::CmpFPredicate::UGE:
    return unordered || x[0] >= x[1];
  case arith::CmpFPredicate::ULT:
    return unordered || x[0] < x[1];
  case arith::CmpFPredicate::ULE:
    return unordered || x[0] <= x[1];
  case arith::CmpFPredicate::AlwaysFalse:
    return 0;
  case arith::CmpFPredicate::AlwaysTrue:
    return 1;
  }
  llvm_unreachable("unknown predicate");
}

static double eval(arith::CmpIOp op, A, Scalars x) {
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return x[0] == x[1];
  case arith::CmpIPredicate::ne:
    return x[0] != x[1];
  case arith::CmpIPredicate::slt:
    return x[0] < x[1];
  case arith::CmpIPredicate::sle:
    return x[0] <= x[1];
  case arith::CmpIPredicate::sgt:
    return x[0] > x[1];
  case arith::CmpIPredicate::sge:
    return x[0] >= x[1];
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::ule:
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::uge:
    return std::numeric_limits<double>::quiet_NaN(); // refused by interpret
  }
  llvm_unreachable("unknown predicate");
}

//===----------------------------------------------------------------------===//
// Derivatives: the gradients of the operands from the result's gradient.
//===----------------------------------------------------------------------===//

namespace {
/// Arithmetic on tensors of one type.
struct Math {
  ImplicitLocOpBuilder b;
  Type type;

  Value constant(double value) { return constantLike(b, type, value); }
  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(b, lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return arith::SubFOp::create(b, lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs); }
  Value div(Value lhs, Value rhs) { return arith::DivFOp::create(b, lhs, rhs); }
  Value neg(Value value) { return arith::NegFOp::create(b, value); }
  Value select(Value condition, Value lhs, Value rhs) { return arith::SelectOp::create(b, condition, lhs, rhs); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, predicate, lhs, rhs);
  }
};
} // namespace

using Grads = SmallVectorImpl<Value>;

static void vjp(arith::AddFOp, Math &, Value g, Grads &grads) { grads[0] = grads[1] = g; }
static void vjp(arith::SubFOp, Math &m, Value g, Grads &grads) {
  grads[0] = g;
  grads[1] = m.neg(g);
}
static void vjp(arith::MulFOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.mul(g, op.getRhs());
  grads[1] = m.mul(g, op.getLhs());
}
static void vjp(arith::DivFOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.div(g, op.getRhs());
  grads[1] = m.neg(m.div(m.mul(g, op.getResult()), op.getRhs()));
}
static void vjp(arith::NegFOp, Math &m, Value g, Grads &grads) { grads[0] = m.neg(g); }

/// The whole gradient goes to the chosen side; on a tie, to the right-hand one.
static void chooseSide(Math &m, Value takesLeft, Value g, Value &left, Value &right) {
  Value zero = m.constant(0);
  left = m.select(takesLeft, g, zero);
  right = m.select(takesLeft, zero, g);
}
static void vjp(arith::MaximumFOp op, Math &m, Value g, Grads &grads) {
  chooseSide(m, m.compare(arith::CmpFPredicate::OGT, op.getLhs(), op.getRhs()), g, grads[0], grads[1]);
}
static void vjp(arith::MinimumFOp op, Math &m, Value g, Grads &grads) {
  chooseSide(m, m.compare(arith::CmpFPredicate::OLT, op.getLhs(), op.getRhs()), g, grads[0], grads[1]);
}
static void vjp(arith::SelectOp op, Math &m, Value g, Grads &grads) {
  chooseSide(m, op.getCondition(), g, grads[1], grads[2]);
}
static void vjp(arith::ExtFOp op, Math &m, Value g, Grads &grads) {
  grads[0] = arith::TruncFOp::create(m.b, op.getIn().getType(), g);
}
static void vjp(arith::TruncFOp op, Math &m, Value g, Grads &grads) {
  grads[0] = arith::ExtFOp::create(m.b, op.getIn().getType(), g);
}
static void vjp(math::AbsFOp op, Math &m, Value g, Grads &grads) {
  Value negative = m.compare(arith::CmpFPredicate::OLT, op.getOperand(), m.constant(0));
  grads[0] = m.select(negative, m.neg(g), g);
}
static void vjp(math::CosOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.neg(m.mul(g, math::SinOp::create(m.b, op.getOperand())));
}
static void vjp(math::SinOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.mul(g, math::CosOp::create(m.b, op.getOperand()));
}
static void vjp(math::ErfOp op, Math &m, Value g, Grads &grads) {
  // The constant is no number of bf16.
  TensorMath t(m.b, op);
  Value x = t.wide(op.getOperand());
  Value exponential = t.create<math::ExpOp>(t.create<arith::NegFOp>(t.mul(x, x)));
  Value density = t.mul(t.constant(x, 2 / std::sqrt(std::numbers::pi)), exponential);
  grads[0] = t.narrow(t.mul(t.wide(g), density), op.getType());
}
static void vjp(math::ExpOp op, Math &m, Value g, Grads &grads) { grads[0] = m.mul(g, op.getResult()); }
static void vjp(math::LogOp op, Math &m, Value g, Grads &grads) { grads[0] = m.div(g, op.getOperand()); }
static void vjp(math::PowFOp op, Math &m, Value g, Grads &grads) {
  // d/dx x^y = y x^(y-1); d/dy x^y = x^y log x.
  Value lowered = math::PowFOp::create(m.b, op.getLhs(), m.sub(op.getRhs(), m.constant(1)));
  grads[0] = m.mul(g, m.mul(op.getRhs(), lowered));
  grads[1] = m.mul(g, m.mul(op.getResult(), math::LogOp::create(m.b, op.getLhs())));
}
static void vjp(math::RsqrtOp op, Math &m, Value g, Grads &grads) {
  Value cube = m.mul(op.getResult(), m.mul(op.getResult(), op.getResult()));
  grads[0] = m.mul(g, m.mul(m.constant(-0.5), cube));
}
static void vjp(math::SqrtOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.div(m.mul(m.constant(0.5), g), op.getResult());
}
static void vjp(math::TanhOp op, Math &m, Value g, Grads &grads) {
  grads[0] = m.mul(g, m.sub(m.constant(1), m.mul(op.getResult(), op.getResult())));
}

//===----------------------------------------------------------------------===//
// The models
//===----------------------------------------------------------------------===//

namespace {

template <typename OpTy> struct InterpretModel : Interpretable::ExternalModel<InterpretModel<OpTy>, OpTy> {
  LogicalResult interpret(Operation *op, ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                          const Arithmetic &arithmetic) const {
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      if (compare.getPredicate() >= arith::CmpIPredicate::ult)
        return op->emitOpError("unsigned comparison has no reference semantics here; use a signed one");
    if (isa<arith::FPToSIOp>(op) && !arithmetic.truncated(0))
      return op->emitOpError("has no meaning ") << arithmetic.where();
    bool holdsIntegers = !isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
    SmallVector<double, 3> scalars(operands.size());
    for (size_t i = 0; i < results[0].data.size(); ++i) {
      // The condition of `select` may be one value for the whole tensor.
      for (size_t k = 0; k < operands.size(); ++k)
        scalars[k] = operands[k].data[operands[k].data.size() == 1 ? 0 : i];
      double &result = results[0].data[i] = eval(cast<OpTy>(op), arithmetic, scalars);
      if (holdsIntegers && !(std::fabs(result) <= 0x1p53))
        return op->emitOpError("element ") << i << " of the result is " << result
                                           << ", which the reference semantics cannot hold exactly (2^53 is the limit)";
    }
    return success();
  }
};

template <typename OpTy> struct CostModelOf : CostModel::ExternalModel<CostModelOf<OpTy>, OpTy> {
  double flops(Operation *op) const {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    bool isFloat = type && isa<FloatType>(type.getElementType());
    return isFloat ? static_cast<double>(type.getNumElements()) : 0;
  }
  RepeatCost repeatCost(Operation *op) const {
    // The operand is narrower than the result that would be kept.
    return isa<arith::ExtFOp>(op) ? RepeatCost::Free : repeatCostByTraits(op);
  }
};

template <typename OpTy> struct AlignedModel : Factored::ExternalModel<AlignedModel<OpTy>, OpTy> {
  FactorRule factorRule(Operation *op) const { return alignedRule(op); }
};

template <typename OpTy> struct ShardingModelOf : ShardingModel::ExternalModel<ShardingModelOf<OpTy>, OpTy> {
  bool isAdditive(Operation *op) const { return isa<arith::AddFOp, arith::ExtFOp>(op); }
};

template <typename OpTy> struct PaddingModelOf : PaddingModel::ExternalModel<PaddingModelOf<OpTy>, OpTy> {
  std::optional<double> resultPadding(Operation *op, const PaddingContext &context, unsigned) const {
    // Anything finite times zero is zero.
    if (isa<arith::MulFOp>(op) && (context.numberIn(0) == 0.0 || context.numberIn(1) == 0.0))
      return 0.0;
    if (isa<arith::SelectOp>(op) && !context.numberIn(0))
      return context.numberIn(1) == context.numberIn(2) ? context.numberIn(1) : std::nullopt;
    return paddingByEvaluation(op, context);
  }
};

template <typename OpTy> struct PrecisionModelOf : PrecisionModel::ExternalModel<PrecisionModelOf<OpTy>, OpTy> {
  Precision precision(Operation *op) const {
    if (isa<arith::ExtFOp>(op))
      return Precision::Tolerate;
    return isa<arith::TruncFOp>(op) ? Precision::Keep : precisionByTraits(op); // its operand is wider than its result
  }
};

template <typename OpTy> struct FusionModelOf : FusionModel::ExternalModel<FusionModelOf<OpTy>, OpTy> {};

template <typename OpTy> struct VjpModel : Differentiable::ExternalModel<VjpModel<OpTy>, OpTy> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                         SmallVectorImpl<Value> &operandGrads) const {
    Math math{ImplicitLocOpBuilder(op->getLoc(), builder), op->getResult(0).getType()};
    vjp(cast<OpTy>(op), math, resultGrads[0], operandGrads);
    return success();
  }
};

template <typename... Ops> void attachModels(MLIRContext *context) {
  (Ops::template attachInterface<InterpretModel<Ops>, CostModelOf<Ops>, AlignedModel<Ops>, ShardingModelOf<Ops>,
                                 PaddingModelOf<Ops>, PrecisionModelOf<Ops>, FusionModelOf<Ops>>(*context),
   ...);
}
template <typename... Ops> void attachVjp(MLIRContext *context) {
  (Ops::template attachInterface<VjpModel<Ops>>(*context), ...);
}

} // namespace

void bowline::graph::registerElementwiseModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attachConstantModels(context);
    attachModels<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp,
                 arith::MinimumFOp, arith::SelectOp, arith::CmpFOp, arith::CmpIOp, arith::ExtFOp, arith::TruncFOp,
                 arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(
        context);
    attachVjp<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp,
              arith::MinimumFOp, arith::SelectOp, arith::ExtFOp, arith::TruncFOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attachModels<math::AbsFOp, math::CosOp, math::ErfOp, math::ExpOp, math::LogOp, math::PowFOp, math::RsqrtOp,
                 math::SinOp, math::SqrtOp, math::TanhOp>(context);
    attachVjp<math::AbsFOp, math::CosOp, math::ErfOp, math::ExpOp, math::LogOp, math::PowFOp, math::RsqrtOp,
              math::SinOp, math::SqrtOp, math::TanhOp>(context);
  });
}
