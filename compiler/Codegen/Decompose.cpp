//===- Decompose.cpp - Layers as elementwise operations and reductions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Decompose.h"
#include "compiler/Codegen/MathExpansion.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace bowline;

namespace {

/// What a softmax is made of: `power` are the exponentials, `sum` theirs over the row.
struct Softmax {
  Value logits, power, sum;
};
/// By the logarithm of the sum of exponentials.
using Softmaxes = llvm::DenseMap<Value, Softmax>;

/// Builds tensor operations in place of `op`.
class Decomposition {
public:
  Decomposition(Operation *op, Softmaxes &softmaxes) : builder(op->getLoc(), op), softmaxes(softmaxes) {}

  Value logistic(Value x) {
    // exp of a negative number only: 1 / (1 + e) and, for negative x, e / (1 + e).
    Value power = marked(create<math::ExpOp>(create<arith::NegFOp>(create<math::AbsFOp>(x))), codegen::kNeverAboveZero);
    Value isNegative = compare(arith::CmpFPredicate::OLT, x, constant(x, 0));
    Value numerator = create<arith::SelectOp>(isNegative, power, constant(x, 1));
    return create<arith::DivFOp>(numerator, add(constant(x, 1), power));
  }

  Value silu(Value x) { return mul(finiteBelow(x), logistic(x)); }

  Value gelu(graph::GeluOp op) {
    Value x = op.getInput();
    if (op.getKind() == graph::GeluKind::Erf) {
      Value inner = marked(create<math::ErfOp>(mul(x, constant(x, std::numbers::sqrt2 / 2))), codegen::kBesideOne);
      Value half = mul(constant(x, 0.5), finiteBelow(x));
      return add(mul(half, inner), half);
    }
    // (1 + tanh u) / 2 is the logistic function of 2 u.
    Value cubic = add(constant(x, 1), mul(constant(x, 0.044715), mul(x, x)));
    return mul(finiteBelow(x), logistic(mul(mul(constant(x, 2 * std::sqrt(2 / std::numbers::pi)), x), cubic)));
  }

  Value rmsNorm(graph::RmsNormOp op) {
    Value x = wide(op.getInput());
    Value inverse = inverseRoot(mean(mul(x, x)), op.getEps().convertToDouble());
    Value normalised = mul(x, acrossRow(inverse, x));
    return narrow(mul(normalised, acrossRows(wide(op.getScale()), x)), op.getType());
  }

  Value layerNorm(graph::LayerNormOp op) {
    Value x = wide(op.getInput());
    Value centred = create<arith::SubFOp>(x, acrossRow(mean(x), x));
    Value inverse = inverseRoot(mean(mul(centred, centred)), op.getEps().convertToDouble());
    Value normalised = mul(centred, acrossRow(inverse, x));
    Value scaled = mul(normalised, acrossRows(wide(op.getScale()), x));
    return narrow(add(scaled, acrossRows(wide(op.getBias()), x)), op.getType());
  }

  Value rope(graph::RopeOp op) {
    Value x = wide(op.getInput());
    SmallVector<int64_t> sizes = llvm::to_vector(typeOf(x).getShape());
    int64_t half = sizes[3] /= 2;
    Value low = create<graph::SliceOp>(x, ArrayRef<int64_t>{0, 0, 0, 0}, sizes);
    Value high = create<graph::SliceOp>(x, ArrayRef<int64_t>{0, 0, 0, half}, sizes);
    Value cosine = broadcast(wide(op.getCosine()), low, {1, 3}), sine = broadcast(wide(op.getSine()), low, {1, 3});
    if (op.getInverse())
      sine = create<arith::NegFOp>(sine);
    Value rotatedLow = create<arith::SubFOp>(mul(low, cosine), mul(high, sine));
    Value rotatedHigh = add(mul(high, cosine), mul(low, sine));
    return narrow(create<graph::ConcatOp>(ValueRange{rotatedLow, rotatedHigh}, int64_t(3)), op.getType());
  }

  SmallVector<Value> softmaxCrossEntropy(graph::SoftmaxCrossEntropyOp op) {
    Value logits = wide(op.getLogits());
    Value maximum = reduce(graph::ReduceKind::Max, logits);
    // A NaN that the maximum leaves out comes back with the exponentials.
    marked(maximum, codegen::kIgnoresNan);
    Value shifted = create<arith::SubFOp>(logits, acrossRow(maximum, logits));
    Value power = marked(create<math::ExpOp>(shifted), codegen::kNeverAboveZero);
    Value sum = reduce(graph::ReduceKind::Sum, power);
    Value logSumExp = add(maximum, create<math::LogOp>(sum));
    softmaxes[logSumExp] = {op.getLogits(), power, sum};
    Value chosen = create<arith::SelectOp>(isLabel(op.getLabels(), logits), logits, constant(logits, 0));
    Value loss = create<arith::SubFOp>(logSumExp, reduce(graph::ReduceKind::Sum, chosen));
    return {create<arith::SelectOp>(isAbsent(op.getLabels()), constant(loss, 0), loss), logSumExp};
  }

  Value softmaxCrossEntropyGrad(graph::SoftmaxCrossEntropyGradOp op) {
    Value logits = wide(op.getLogits());
    Value probability;
    auto known = softmaxes.find(op.getLogsumexp());
    if (known != softmaxes.end() && known->second.logits == op.getLogits())
      // exp(x - log(sum) - maximum), with the exponential that is in the sum.
      probability = mul(known->second.power,
                        acrossRow(create<arith::DivFOp>(constant(known->second.sum, 1), known->second.sum), logits));
    else
      probability = create<math::ExpOp>(create<arith::SubFOp>(logits, acrossRow(op.getLogsumexp(), logits)));
    Value oneHot = create<arith::SelectOp>(isLabel(op.getLabels(), logits), constant(logits, 1), constant(logits, 0));
    Value grad = mul(create<arith::SubFOp>(probability, oneHot), acrossRow(op.getLossGrad(), logits));
    Value absent = acrossRow(isAbsent(op.getLabels()), logits);
    return narrow(create<arith::SelectOp>(absent, constant(logits, 0), grad), op.getType());
  }

private:
  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return OpTy::create(builder, std::forward<Args>(args)...)->getResult(0);
  }
  /// `value`, with a promise to those who generate code for it.
  Value marked(Value value, StringRef promise) {
    value.getDefiningOp()->setAttr(promise, builder.getUnitAttr());
    return value;
  }
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  Value constant(Value like, double value) {
    RankedTensorType type = typeOf(like);
    return create<arith::ConstantOp>(DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value)));
  }
  Value add(Value lhs, Value rhs) { return create<arith::AddFOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return create<arith::MulFOp>(lhs, rhs); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return create<arith::CmpFOp>(predicate, lhs, rhs);
  }

  /// `x`, with the greatest negative number for minus infinity, so that its product with zero is zero.
  Value finiteBelow(Value x) {
    auto type = cast<FloatType>(typeOf(x).getElementType());
    APFloat largest = APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true);
    Value bound = create<arith::ConstantOp>(DenseElementsAttr::get(typeOf(x), largest));
    return create<arith::MaximumFOp>(x, bound);
  }

  Value broadcast(Value value, Value like, ArrayRef<int64_t> dims) {
    return create<graph::BroadcastOp>(typeOf(like).clone(typeOf(value).getElementType()), value, dims);
  }
  /// One value per row, repeated along the last dimension of `like`.
  Value acrossRow(Value value, Value like) {
    return broadcast(value, like, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(like).getRank() - 1)));
  }
  /// One row, repeated along all dimensions but the last.
  Value acrossRows(Value value, Value like) { return broadcast(value, like, {typeOf(like).getRank() - 1}); }

  Value reduce(graph::ReduceKind kind, Value value) {
    return create<graph::ReduceOp>(kind, value, ArrayRef<int64_t>{typeOf(value).getRank() - 1});
  }
  Value mean(Value value) {
    Value sum = reduce(graph::ReduceKind::Sum, value);
    return mul(sum, constant(sum, 1.0 / typeOf(value).getShape().back()));
  }
  Value inverseRoot(Value square, double eps) { return create<math::RsqrtOp>(add(square, constant(square, eps))); }

  /// In f32 or wider.
  Value wide(Value value) {
    if (typeOf(value).getElementTypeBitWidth() >= 32)
      return value;
    return create<arith::ExtFOp>(typeOf(value).clone(builder.getF32Type()), value);
  }
  Value narrow(Value value, Type type) {
    return value.getType() == type ? value : create<arith::TruncFOp>(type, value);
  }

  Value isLabel(Value labels, Value logits) {
    RankedTensorType type = typeOf(logits).clone(builder.getI32Type());
    Value classes = create<graph::IotaOp>(type, type.getRank() - 1);
    return create<arith::CmpIOp>(arith::CmpIPredicate::eq, classes, acrossRow(labels, logits));
  }
  Value isAbsent(Value labels) {
    Value zero = create<arith::ConstantOp>(DenseElementsAttr::get(typeOf(labels), builder.getI32IntegerAttr(0)));
    return create<arith::CmpIOp>(arith::CmpIPredicate::slt, labels, zero);
  }

  ImplicitLocOpBuilder builder;
  Softmaxes &softmaxes;
};

/// As in the derivative of gelu.
bool isOnlyAddedToOne(math::ErfOp erf) {
  return llvm::all_of(erf->getUsers(), [&](Operation *user) {
    auto sum = dyn_cast<arith::AddFOp>(user);
    return sum && matchPattern(sum.getLhs() == erf ? sum.getRhs() : sum.getLhs(), m_OneFloat());
  });
}

} // namespace

void codegen::decomposeLayers(Block &block) {
  for (auto erf : block.getOps<math::ErfOp>())
    if (isOnlyAddedToOne(erf))
      erf->setAttr(kBesideOne, UnitAttr::get(erf.getContext()));
  Softmaxes softmaxes;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Decomposition layer(&op, softmaxes);
    SmallVector<Value> results =
        llvm::TypeSwitch<Operation *, SmallVector<Value>>(&op)
            .Case([&](graph::LogisticOp op) { return SmallVector<Value>{layer.logistic(op.getInput())}; })
            .Case([&](graph::SiluOp op) { return SmallVector<Value>{layer.silu(op.getInput())}; })
            .Case([&](graph::GeluOp op) { return SmallVector<Value>{layer.gelu(op)}; })
            .Case([&](graph::RmsNormOp op) { return SmallVector<Value>{layer.rmsNorm(op)}; })
            .Case([&](graph::LayerNormOp op) { return SmallVector<Value>{layer.layerNorm(op)}; })
            .Case([&](graph::RopeOp op) { return SmallVector<Value>{layer.rope(op)}; })
            .Case([&](graph::SoftmaxCrossEntropyOp op) { return layer.softmaxCrossEntropy(op); })
            .Case([&](graph::SoftmaxCrossEntropyGradOp op) {
              return SmallVector<Value>{layer.softmaxCrossEntropyGrad(op)};
            })
            .Default([](Operation *) { return SmallVector<Value>{}; });
    if (results.empty())
      continue;
    op.replaceAllUsesWith(results);
    op.erase();
  }
}
