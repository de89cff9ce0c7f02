//===- Loss.cpp - softmax_cross_entropy and its gradient
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

#include <cmath>
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
/// Positions are independent; classes are normalised as a whole, for which parts exchange a number per position.
struct LossFactors {
  FactorRule rule;
  FactorRule::TensorFactors rows, logits;

  explicit LossFactors(RankedTensorType type) : rows(rule.addDims(type.getShape().drop_back())), logits(rows) {
    logits.push_back({rule.add(type.getShape().back(), FactorRule::Kind::Exchanged)});
  }
};
} // namespace

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

LogicalResult SoftmaxCrossEntropyOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &logits = operands[0], &labels = operands[1];
  int64_t classes = logits.shape.back();
  for (int64_t row = 0; row < labels.count(); ++row) {
    if (failed(checkLabel(*this, labels.data[row], classes)))
      return failure();
    auto begin = logits.data.begin() + row * classes;
    double maximum = *std::max_element(begin, begin + classes), sum = 0;
    for (int64_t i = 0; i < classes; ++i)
      sum += std::exp(begin[i] - maximum);
    double logsumexp = maximum + std::log(sum);
    double logit =
        labels.data[row] < 0 || labels.data[row] == classes ? 0 : begin[static_cast<int64_t>(labels.data[row])];
    results[0].data[row] = labels.data[row] < 0 ? 0 : logsumexp - logit;
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

LogicalResult SoftmaxCrossEntropyGradOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &logits = operands[0], &labels = operands[1], &logsumexp = operands[2], &grad = operands[3];
  int64_t classes = logits.shape.back();
  for (int64_t row = 0; row < labels.count(); ++row) {
    if (failed(checkLabel(*this, labels.data[row], classes)))
      return failure();
    for (int64_t i = 0; i < classes; ++i) {
      double probability = std::exp(logits.data[row * classes + i] - logsumexp.data[row]);
      double difference = probability - (labels.data[row] == i ? 1 : 0);
      results[0].data[row * classes + i] = labels.data[row] < 0 ? 0 : difference * grad.data[row];
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

double SoftmaxCrossEntropyGradOp::flops() { return 4.0 * tensorType(getLogits()).getNumElements(); }
