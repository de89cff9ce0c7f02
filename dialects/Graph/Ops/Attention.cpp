//===- Attention.cpp - attention, attention_grad
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

/// Shapes of query [B, S, H, D] and of key and value [B, T, K, D].
static LogicalResult checkAttention(std::optional<Location> loc, Type queryType, Type keyType, Type valueType,
                                    bool causal) {
  RankedTensorType query = tensorType(queryType), key = tensorType(keyType);
  if (query.getRank() != 4 || key.getRank() != 4)
    return emitOptionalError(loc, "query, key and value must have four dimensions, got ", query, " and ", key);
  if (keyType != valueType)
    return emitOptionalError(loc, "key and value must have equal types, got ", keyType, " and ", valueType);
  if (query.getElementType() != key.getElementType())
    return emitOptionalError(loc, "element types must agree");
  if (query.getDimSize(0) != key.getDimSize(0) || query.getDimSize(3) != key.getDimSize(3))
    return emitOptionalError(loc, "batch and head dimensions of query and key must agree, got ", query, " and ", key);
  if (key.getDimSize(2) == 0 || query.getDimSize(2) % key.getDimSize(2) != 0)
    return emitOptionalError(loc, "the number of query heads ", query.getDimSize(2),
                             " must be a multiple of the number of key heads ", key.getDimSize(2));
  if (causal && query.getDimSize(1) > key.getDimSize(1))
    return emitOptionalError(loc, "causal attention needs at least as many keys as queries, got ", key.getDimSize(1),
                             " and ", query.getDimSize(1));
  return success();
}

static RankedTensorType logsumexpType(Type queryType) {
  RankedTensorType query = tensorType(queryType);
  return RankedTensorType::get({query.getDimSize(0), query.getDimSize(2), query.getDimSize(1)},
                               statisticsType(query.getElementType()));
}

namespace {
/// Index arithmetic of one attention problem.
struct Problem {
  int64_t batch, queries, heads, width, keys, keyHeads;
  bool causal;
  double scale;

  Problem(const HostTensor &query, const HostTensor &key, bool causal, double scale)
      : batch(query.shape[0]), queries(query.shape[1]), heads(query.shape[2]), width(query.shape[3]),
        keys(key.shape[1]), keyHeads(key.shape[2]), causal(causal), scale(scale) {}

  int64_t queryRow(int64_t b, int64_t s, int64_t h) const { return ((b * queries + s) * heads + h) * width; }
  int64_t keyRow(int64_t b, int64_t t, int64_t h) const {
    return ((b * keys + t) * keyHeads + h / (heads / keyHeads)) * width;
  }
  int64_t statistic(int64_t b, int64_t h, int64_t s) const { return (b * heads + h) * queries + s; }
  int64_t visible(int64_t s) const { return causal ? s + keys - queries + 1 : keys; }

  template <typename Body> void forEachQuery(Body body) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t s = 0; s < queries; ++s)
          body(b, h, s);
  }
  double dot(const HostTensor &x, int64_t xRow, const HostTensor &y, int64_t yRow) const {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum += x.data[xRow + d] * y.data[yRow + d];
    return sum;
  }
};

/// Batch and heads are independent. A dimension of query heads is key heads, then the heads of a group that share one.
/// Positions and the head dimension stay whole.
struct AttentionFactors {
  FactorRule rule;
  FactorRule::TensorFactors query, key, logsumexp;

  AttentionFactors(RankedTensorType queryType, RankedTensorType keyType, std::optional<ReduceKind> groupCombines) {
    using Kind = FactorRule::Kind;
    int64_t batch = rule.add(queryType.getDimSize(0)), keyHeads = rule.add(keyType.getDimSize(2));
    int64_t group = rule.add(queryType.getDimSize(2) / keyType.getDimSize(2), Kind::Parallel, groupCombines);
    int64_t queries = rule.add(queryType.getDimSize(1), Kind::Blocked);
    int64_t keys = rule.add(keyType.getDimSize(1), Kind::Blocked);
    int64_t width = rule.add(queryType.getDimSize(3), Kind::Blocked);
    query = {{batch}, {queries}, {keyHeads, group}, {width}};
    key = {{batch}, {keys}, {keyHeads}, {width}};
    logsumexp = {{batch}, {keyHeads, group}, {queries}};
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  Type query = adaptor.getQuery().getType();
  if (failed(checkAttention(loc, query, adaptor.getKey().getType(), adaptor.getValue().getType(), adaptor.getCausal())))
    return failure();
  results.assign({query, logsumexpType(query)});
  return success();
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  if (resultGrads[1])
    return emitOpError("the logsumexp is not differentiable; use only the first result in the loss");
  if (!resultGrads[0])
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto grad = AttentionGradOp::create(b, getQuery(), getKey(), getValue(), getResult(), getLogsumexp(), resultGrads[0],
                                      getScaleAttr(), getCausalAttr());
  operandGrads[0] = grad.getQueryGrad();
  operandGrads[1] = grad.getKeyGrad();
  operandGrads[2] = grad.getValueGrad();
  return success();
}

LogicalResult AttentionOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2];
  Problem p(query, key, getCausal(), getScale().convertToDouble());
  std::fill(results[0].data.begin(), results[0].data.end(), 0.0);
  p.forEachQuery([&](int64_t b, int64_t h, int64_t s) {
    std::vector<double> scores(p.visible(s));
    double maximum = -std::numeric_limits<double>::infinity();
    for (int64_t t = 0; t < p.visible(s); ++t) {
      scores[t] = p.scale * p.dot(query, p.queryRow(b, s, h), key, p.keyRow(b, t, h));
      maximum = std::max(maximum, scores[t]);
    }
    double sum = 0;
    for (double score : scores)
      sum += std::exp(score - maximum);
    double logsumexp = maximum + std::log(sum);
    results[1].data[p.statistic(b, h, s)] = logsumexp;
    for (int64_t t = 0; t < p.visible(s); ++t)
      for (int64_t d = 0; d < p.width; ++d)
        results[0].data[p.queryRow(b, s, h) + d] += std::exp(scores[t] - logsumexp) * value.data[p.keyRow(b, t, h) + d];
  });
  return success();
}

/// Multiply-adds of `products` matrix products of size S x T x D, half of them masked where causal.
static double attentionFlops(Type queryType, Type keyType, bool causal, int products) {
  RankedTensorType query = tensorType(queryType), key = tensorType(keyType);
  double pairs = static_cast<double>(query.getDimSize(1)) * key.getDimSize(1) * (causal ? 0.5 : 1.0);
  return 2.0 * products * query.getDimSize(0) * query.getDimSize(2) * query.getDimSize(3) * pairs;
}

FactorRule AttentionOp::factorRule() {
  AttentionFactors f(tensorType(getQuery()), tensorType(getKey()), /*groupCombines=*/std::nullopt);
  f.rule.operands = {f.query, f.key, f.key};
  f.rule.results = {f.query, f.logsumexp};
  return f.rule;
}

double AttentionOp::flops() { return attentionFlops(getQuery().getType(), getKey().getType(), getCausal(), 2); }

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                SmallVectorImpl<Type> &results) {
  Type query = adaptor.getQuery().getType(), key = adaptor.getKey().getType();
  if (failed(checkAttention(loc, query, key, adaptor.getValue().getType(), adaptor.getCausal())))
    return failure();
  if (adaptor.getResult().getType() != query || adaptor.getResultGrad().getType() != query)
    return emitOptionalError(loc, "result and its gradient must have the query's type ", query);
  if (adaptor.getLogsumexp().getType() != logsumexpType(query))
    return emitOptionalError(loc, "logsumexp must have type ", logsumexpType(query));
  results.assign({query, key, key});
  return success();
}

LogicalResult AttentionGradOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2], &output = operands[3],
                   &logsumexp = operands[4], &grad = operands[5];
  Problem p(query, key, getCausal(), getScale().convertToDouble());
  for (HostTensor &result : results)
    std::fill(result.data.begin(), result.data.end(), 0.0);
  p.forEachQuery([&](int64_t b, int64_t h, int64_t s) {
    int64_t q = p.queryRow(b, s, h);
    double delta = p.dot(output, q, grad, q);
    for (int64_t t = 0; t < p.visible(s); ++t) {
      int64_t k = p.keyRow(b, t, h);
      double probability = std::exp(p.scale * p.dot(query, q, key, k) - logsumexp.data[p.statistic(b, h, s)]);
      double scoreGrad = probability * (p.dot(grad, q, value, k) - delta) * p.scale;
      for (int64_t d = 0; d < p.width; ++d) {
        results[0].data[q + d] += scoreGrad * key.data[k + d];
        results[1].data[k + d] += scoreGrad * query.data[q + d];
        results[2].data[k + d] += probability * grad.data[q + d];
      }
    }
  });
  return success();
}

FactorRule AttentionGradOp::factorRule() {
  // Every query head of a group adds to the gradients of its key head.
  AttentionFactors f(tensorType(getQuery()), tensorType(getKey()), /*groupCombines=*/ReduceKind::Sum);
  f.rule.operands = {f.query, f.key, f.key, f.query, f.logsumexp, f.query};
  f.rule.results = {f.query, f.key, f.key};
  return f.rule;
}

double AttentionGradOp::flops() { return attentionFlops(getQuery().getType(), getKey().getType(), getCausal(), 5); }
