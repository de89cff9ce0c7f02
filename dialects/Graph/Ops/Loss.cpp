//===- Loss.cpp - softmax_cross_entropy and its gradient
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/LocalParts.h"
#include "dialects/Graph/Ops/TensorMath.h"

#include <limits>

using namespace mlir;
using namespace bowline::graph;

static LogicalResult checkLoss(std::optional<Location> loc, RankedTensorType logits, RankedTensorType labels) {
  if (logits.getRank() == 0 || labels.getShape() != logits.getShape().drop_back())
    return emitOptionalError(loc, "the labels' shape must be the logits' without the last dimension, got ", labels,
                             " for ", logits);
  return success();
}

static RankedTensorType perPositionType(RankedTensorType logits) {
  return RankedTensorType::get(logits.getShape().drop_back(), statisticsType(logits.getElementType()));
}

/// A label may be one past the classes: its logit is elsewhere.
static LogicalResult checkLabel(Operation *op, double label, int64_t classes) {
  if (label <= classes)
    return success();
  return op->emitOpError("label ") << static_cast<int64_t>(label) << " is outside of the " << classes << " classes";
}

namespace {
/// Positions are independent; classes are normalised as a whole, for which ranks exchange numbers per position.
struct LossFactors {
  FactorRule rule;
  FactorRule::TensorFactors rows, logits;

  explicit LossFactors(RankedTensorType type) : rows(rule.addDims(type.getShape().drop_back())), logits(rows) {
    logits.push_back({rule.add(type.getShape().back(), FactorRule::Kind::Exchanged)});
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

static Value isLabel(TensorMath &m, Value labels, Value logits) {
  RankedTensorType type = tensorType(logits).clone(IntegerType::get(logits.getContext(), 32));
  Value classes = m.create<IotaOp>(type, type.getRank() - 1);
  return m.create<arith::CmpIOp>(arith::CmpIPredicate::eq, classes, m.acrossRow(labels, logits));
}

static Value isAbsent(TensorMath &m, Value labels) {
  return m.create<arith::CmpIOp>(arith::CmpIPredicate::slt, labels, m.constant(labels, 0));
}

namespace {
/// The parts of a softmax: `power` are the exponentials, `sum` is their sum over the row.
struct Softmax {
  Value power, sum;

  /// Finds the softmax of logits whose loss was decomposed, from its logsumexp, maximum + log(sum).
  static std::optional<Softmax> find(Value logsumexp, Value logits) {
    auto total = logsumexp.getDefiningOp<arith::AddFOp>();
    auto log = total ? total.getRhs().getDefiningOp<math::LogOp>() : math::LogOp();
    auto sum = log ? log.getOperand().getDefiningOp<ReduceOp>() : ReduceOp();
    auto power = sum ? sum.getInput().getDefiningOp<math::ExpOp>() : math::ExpOp();
    auto shifted = power ? power.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
    auto maximum = shifted ? shifted.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!maximum || sum.getKind() != ReduceKind::Sum || maximum.getInput() != total.getLhs())
      return std::nullopt;
    Value source = shifted.getLhs();
    if (auto wide = source.getDefiningOp<arith::ExtFOp>(); wide && source != logits)
      source = wide.getIn();
    return source == logits ? std::optional(Softmax{power, sum}) : std::nullopt;
  }
};
} // namespace

SmallVector<Value> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value logits = m.wide(getLogits());
  Value maximum = m.reduce(ReduceKind::Max, logits);
  // A NaN that the maximum leaves out comes back with the exponentials.
  m.marked(maximum, kIgnoresNan);
  Value shifted = m.sub(logits, m.acrossRow(maximum, logits));
  Value power = m.marked(m.create<math::ExpOp>(shifted), kNeverAboveZero);
  Value sum = m.reduce(ReduceKind::Sum, power);
  Value logSumExp = m.add(maximum, m.create<math::LogOp>(sum));
  Value chosen = m.select(isLabel(m, getLabels(), logits), logits, m.constant(logits, 0));
  Value loss = m.sub(logSumExp, m.reduce(ReduceKind::Sum, chosen));
  return {m.select(isAbsent(m, getLabels()), m.constant(loss, 0), loss), logSumExp};
}

SmallVector<Value> SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value logits = m.wide(getLogits());
  Value probability;
  if (std::optional<Softmax> known = Softmax::find(getLogsumexp(), getLogits()))
    // exp(x - log(sum) - maximum), with the exponential that is in the sum.
    probability = m.mul(known->power, m.acrossRow(m.div(m.constant(known->sum, 1), known->sum), logits));
  else
    probability = m.create<math::ExpOp>(m.sub(logits, m.acrossRow(getLogsumexp(), logits)));
  Value oneHot = m.select(isLabel(m, getLabels(), logits), m.constant(logits, 1), m.constant(logits, 0));
  Value grad = m.mul(m.sub(probability, oneHot), m.acrossRow(getLossGrad(), logits));
  Value absent = m.acrossRow(isAbsent(m, getLabels()), logits);
  return {m.narrow(m.select(absent, m.constant(logits, 0), grad), getType())};
}

FusionRole SoftmaxCrossEntropyOp::fusionRole() { return FusionRole::Row; }
FusionRole SoftmaxCrossEntropyGradOp::fusionRole() { return FusionRole::Row; }

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

static bool isLastDim(std::optional<int64_t> dim, Value logits) { return dim == tensorType(logits).getRank() - 1; }

bool SoftmaxCrossEntropyOp::hasNeutralPadding() { return true; }
bool SoftmaxCrossEntropyGradOp::hasNeutralPadding() { return true; }

/// A class that does not exist has an exponential of zero.
static void requireAbsentClasses(PaddingContext &context, Value logits) {
  if (isLastDim(context.dimOfOperand(0), logits))
    context.require(0, absentLogit(tensorType(logits).getElementType()));
}
void SoftmaxCrossEntropyOp::requireNeutralPadding(PaddingContext &context) {
  requireAbsentClasses(context, getLogits());
}
void SoftmaxCrossEntropyGradOp::requireNeutralPadding(PaddingContext &context) {
  requireAbsentClasses(context, getLogits());
}

std::optional<double> SoftmaxCrossEntropyGradOp::resultPadding(const PaddingContext &context, unsigned) {
  // The exponential of an absent logit.
  return isLastDim(context.dimOfResult(0), getLogits()) ? std::optional(0.0) : std::nullopt;
}

/// Labels among this rank's classes; one past them for a class of another rank; negative ones as they are.
static Value ownLabels(LocalContext &context, ImplicitLocOpBuilder &builder, Value labels, LocalContext::Axes axes,
                       int64_t part) {
  Value index = shiftedToPart(context, builder, labels, axes, part);
  Value own = whereOwn(builder, index, part, index, constantLike(builder, labels.getType(), static_cast<double>(part)));
  Value absent =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, labels, constantLike(builder, labels.getType(), 0));
  return arith::SelectOp::create(builder, absent, labels, own);
}

/// The axes that divide the classes.
static LocalContext::Axes classAxes(LocalContext &context, Value logits) {
  return context.axesOf(logits, tensorType(logits).getRank() - 1);
}

// Per position, ranks exchange the logsumexp of their classes (its maximum, then the sum), and add up the logit of the
// label, which one of them has. No rank holds the logits of all classes (Shoeybi et al., "Megatron-LM", 2019, 3).
void SoftmaxCrossEntropyOp::localize(LocalContext &context) {
  LocalContext::Axes axes = classAxes(context, getLogits());
  if (axes.empty())
    return;
  ImplicitLocOpBuilder builder(getLoc(), *this);
  Value labels = getLabels();
  getLabelsMutable().assign(ownLabels(context, builder, labels, axes, tensorType(getLogits()).getShape().back()));
  builder.setInsertionPointAfter(*this);
  constexpr const char *kWhole = "the logsumexp of all classes";
  Value part = getLogsumexp();
  Value maximum = context.combine(builder, ReduceKind::Max, part, axes, kWhole);
  auto shifted = arith::SubFOp::create(builder, part, maximum);
  Value power = math::ExpOp::create(builder, shifted);
  Value sum = context.combine(builder, ReduceKind::Sum, power, axes, kWhole);
  Value logsumexp = arith::AddFOp::create(builder, maximum, math::LogOp::create(builder, sum));
  // The label's logit on the rank that has it, zero on the others.
  auto logit = arith::SubFOp::create(builder, part, getLoss());
  Value chosen = context.combine(builder, ReduceKind::Sum, logit, axes, "the logit of the label");
  Value whole = arith::SubFOp::create(builder, logsumexp, chosen);
  Value absent =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, labels, constantLike(builder, labels.getType(), 0));
  Value result = arith::SelectOp::create(builder, absent, constantLike(builder, whole.getType(), 0), whole);
  llvm::SmallPtrSet<Operation *, 4> own{logit, maximum.getDefiningOp(), shifted};
  context.replace(getLogsumexp(), logsumexp, own);
  context.replace(getLoss(), result, own);
}

void SoftmaxCrossEntropyGradOp::localize(LocalContext &context) {
  LocalContext::Axes axes = classAxes(context, getLogits());
  if (axes.empty())
    return;
  ImplicitLocOpBuilder builder(getLoc(), *this);
  getLabelsMutable().assign(ownLabels(context, builder, getLabels(), axes, tensorType(getLogits()).getShape().back()));
}

//===----------------------------------------------------------------------===//
// SoftmaxCrossEntropyOp
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                      SmallVectorImpl<Type> &results) {
  RankedTensorType logits = tensorType(adaptor.getLogits());
  if (failed(checkLoss(loc, logits, tensorType(adaptor.getLabels()))))
    return failure();
  results.assign({perPositionType(logits), perPositionType(logits)});
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                              SmallVectorImpl<Value> &operandGrads) {
  if (resultGrads[1])
    return emitOpError("the logsumexp is not differentiable; use only the first result in the loss");
  if (!resultGrads[0])
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = SoftmaxCrossEntropyGradOp::create(b, getLogits(), getLabels(), getLogsumexp(), resultGrads[0]);
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                               const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &logits = operands[0], &labels = operands[1];
  int64_t classes = logits.shape.back();
  for (auto [row, label] : llvm::enumerate(labels.data)) {
    if (failed(checkLabel(*this, label, classes)))
      return failure();
    ArrayRef<double> scores(&logits.data[row * classes], classes);
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (double score : scores)
      maximum = a.maximum(maximum, score);
    for (double score : scores)
      sum = a.add(sum, a.exp(a.subtract(score, maximum)));
    double logsumexp = a.add(maximum, a.log(sum));
    double logit = label < 0 || label == classes ? 0 : scores[static_cast<size_t>(label)];
    results[0].data[row] = label < 0 ? 0 : a.subtract(logsumexp, logit);
    results[1].data[row] = logsumexp;
  }
  return success();
}

FactorRule SoftmaxCrossEntropyOp::factorRule() {
  LossFactors f(tensorType(getLogits()));
  f.rule.operands = {f.logits, f.rows};
  f.rule.results = {f.rows, f.rows};
  return f.rule;
}

bool SoftmaxCrossEntropyOp::takesAbsent(unsigned operand) { return operand == 1; } // labels

Precision SoftmaxCrossEntropyOp::precision() { return Precision::Tolerate; }

double SoftmaxCrossEntropyOp::flops() { return 4.0 * tensorType(getLogits()).getNumElements(); }

//===----------------------------------------------------------------------===//
// SoftmaxCrossEntropyGradOp
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                          SmallVectorImpl<Type> &results) {
  RankedTensorType logits = tensorType(adaptor.getLogits());
  if (failed(checkLoss(loc, logits, tensorType(adaptor.getLabels()))))
    return failure();
  for (Value statistic : {adaptor.getLogsumexp(), adaptor.getLossGrad()})
    if (statistic.getType() != perPositionType(logits))
      return emitOptionalError(loc, "logsumexp and loss gradient must have type ", perPositionType(logits));
  results.push_back(logits);
  return success();
}

LogicalResult SoftmaxCrossEntropyGradOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                                   const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &logits = operands[0], &labels = operands[1], &logsumexp = operands[2], &grad = operands[3];
  int64_t classes = logits.shape.back();
  for (auto [row, label] : llvm::enumerate(labels.data)) {
    if (failed(checkLabel(*this, label, classes)))
      return failure();
    for (int64_t i = 0; i < classes; ++i) {
      double probability = a.exp(a.subtract(logits.data[row * classes + i], logsumexp.data[row]));
      double difference = a.subtract(probability, label == i ? 1 : 0);
      results[0].data[row * classes + i] = label < 0 ? 0 : a.multiply(difference, grad.data[row]);
    }
  }
  return success();
}

FactorRule SoftmaxCrossEntropyGradOp::factorRule() {
  LossFactors f(tensorType(getLogits()));
  f.rule.operands = {f.logits, f.rows, f.rows, f.rows};
  f.rule.results = {f.logits};
  return f.rule;
}

bool SoftmaxCrossEntropyGradOp::takesAbsent(unsigned operand) { return operand == 1; } // labels

double SoftmaxCrossEntropyGradOp::flops() { return 4.0 * tensorType(getLogits()).getNumElements(); }
