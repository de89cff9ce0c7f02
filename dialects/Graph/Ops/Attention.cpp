//===- Attention.cpp - attention, attention_grad
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

#include <limits>

using namespace mlir;
using namespace bowline::graph;

/// Shapes of query [B, S, H, D] and of key and value [B, T, K, D].
static LogicalResult checkAttention(std::optional<Location> loc, Type queryType, Type keyType, Type valueType,
                                    bool causal, int64_t window) {
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
  if (window < 0)
    return emitOptionalError(loc, "a window must have at least one key, got ", window);
  if (window > 0 && !causal)
    return emitOptionalError(loc, "a window of keys needs causal attention");
  return success();
}

static RankedTensorType logsumexpType(Type queryType) {
  RankedTensorType query = tensorType(queryType);
  return RankedTensorType::get({query.getDimSize(0), query.getDimSize(2), query.getDimSize(1)},
                               statisticsType(query.getElementType()));
}

namespace {
/// The pairs of a query and a key that attention looks at.
struct Pairs {
  const Arithmetic &a;
  const HostTensor &query, &key;
  int64_t batch, queries, heads, width, keys, keyHeads;
  bool causal;
  int64_t window;
  double scale;
  SmallVector<int64_t> along; ///< a head

  template <typename Op>
  Pairs(const Arithmetic &arithmetic, const HostTensor &query, const HostTensor &key, Op op)
      : a(arithmetic), query(query), key(key), batch(query.shape[0]), queries(query.shape[1]), heads(query.shape[2]),
        width(query.shape[3]), keys(key.shape[1]), keyHeads(key.shape[2]), causal(op.getCausal()),
        window(op.getWindow()), scale(a.number(op.getScale().convertToDouble())),
        along(llvm::to_vector(llvm::seq<int64_t>(0, width))) {}

  /// Calls body(first element of a query, its place in the statistics, first elements of the keys that it sees).
  void forEachQuery(function_ref<void(int64_t, int64_t, ArrayRef<int64_t>)> body) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t s = 0; s < queries; ++s) {
          SmallVector<int64_t> rows;
          int64_t end = causal ? s + keys - queries + 1 : keys, begin = window > 0 ? end - window : 0;
          for (int64_t t = std::max<int64_t>(begin, 0); t < end; ++t)
            rows.push_back(((b * keys + t) * keyHeads + h / (heads / keyHeads)) * width);
          body(((b * queries + s) * heads + h) * width, (b * heads + h) * queries + s, rows);
        }
  }
  double dot(const HostTensor &x, int64_t xRow, const HostTensor &y, int64_t yRow) const {
    return a.sumOfProducts(&x.data[xRow], along, &y.data[yRow], along);
  }
  double score(int64_t q, int64_t k) const { return a.multiply(scale, dot(query, q, key, k)); }
  /// Adds `factor` times a row of `from` to a row of `into`.
  void accumulate(HostTensor &into, int64_t at, double factor, const HostTensor &from, int64_t row) const {
    for (int64_t d = 0; d < width; ++d)
      into.data[at + d] = a.add(into.data[at + d], a.multiply(factor, from.data[row + d]));
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
  if (failed(checkAttention(loc, query, adaptor.getKey().getType(), adaptor.getValue().getType(), adaptor.getCausal(),
                            adaptor.getWindow())))
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
                                      getScale(), getCausal(), getWindow());
  operandGrads[0] = grad.getQueryGrad();
  operandGrads[1] = grad.getKeyGrad();
  operandGrads[2] = grad.getValueGrad();
  return success();
}

LogicalResult AttentionOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  Pairs pairs(a, operands[0], operands[1], *this);
  llvm::fill(results[0].data, 0.0);
  pairs.forEachQuery([&](int64_t q, int64_t statistic, ArrayRef<int64_t> keys) {
    SmallVector<double> scores;
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k : keys) {
      scores.push_back(pairs.score(q, k));
      maximum = a.maximum(maximum, scores.back());
    }
    for (double score : scores)
      sum = a.add(sum, a.exp(a.subtract(score, maximum)));
    double logsumexp = results[1].data[statistic] = a.add(maximum, a.log(sum));
    for (auto [score, k] : llvm::zip_equal(scores, keys))
      pairs.accumulate(results[0], q, a.exp(a.subtract(score, logsumexp)), operands[2], k);
  });
  return success();
}

Precision AttentionOp::precision() { return Precision::Narrow; }

bool AttentionOp::isWideResult(unsigned result) { return result > 0; } // the logsumexp

template <typename Op> static DictionaryAttr attentionConfig(Op op) {
  KernelConfig config(op.getContext());
  config.integer("causal", op.getCausal()).real("scale", op.getScale().convertToDouble());
  if (op.getWindow() != 0)
    config.integer("window", op.getWindow());
  return config.get();
}

StringRef AttentionOp::kernelName() { return "attention_forward"; }

DictionaryAttr AttentionOp::kernelConfig(bool) { return attentionConfig(*this); }

LogicalResult AttentionOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                           SmallVectorImpl<Value> &results) {
  auto op = AttentionOp::create(builder, operands[0], operands[1], operands[2], use.real("scale"),
                                use.integer("causal") != 0, use.integer("window"));
  llvm::append_range(results, op->getResults());
  return success();
}

/// How many keys the queries of a head see together. The last causal query sees all of them, each one before it one
/// less, and none more than the window.
static double countPairs(double queries, double keys, bool causal, double window) {
  if (!causal)
    return queries * keys;
  double last = window == 0 ? keys : std::min(window, keys);
  double fewer = std::max(0.0, last - (keys - queries + 1)); // queries that see less than the last one
  return queries * last - fewer * (fewer + 1) / 2;
}

/// Multiply-adds of `products` matrix products that have an element for each pair of a query and a key that it sees.
template <typename Op> static double attentionFlops(Op op, int products) {
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  double pairs = countPairs(static_cast<double>(query.getDimSize(1)), static_cast<double>(key.getDimSize(1)),
                            op.getCausal(), static_cast<double>(op.getWindow()));
  return 2.0 * products * query.getDimSize(0) * query.getDimSize(2) * query.getDimSize(3) * pairs;
}

FactorRule AttentionOp::factorRule() {
  AttentionFactors f(tensorType(getQuery()), tensorType(getKey()), /*groupCombines=*/std::nullopt);
  f.rule.operands = {f.query, f.key, f.key};
  f.rule.results = {f.query, f.logsumexp};
  return f.rule;
}

double AttentionOp::flops() { return attentionFlops(*this, 2); }

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                SmallVectorImpl<Type> &results) {
  Type query = adaptor.getQuery().getType(), key = adaptor.getKey().getType();
  if (failed(checkAttention(loc, query, key, adaptor.getValue().getType(), adaptor.getCausal(), adaptor.getWindow())))
    return failure();
  if (adaptor.getResult().getType() != query || adaptor.getResultGrad().getType() != query)
    return emitOptionalError(loc, "result and its gradient must have the query's type ", query);
  if (adaptor.getLogsumexp().getType() != logsumexpType(query))
    return emitOptionalError(loc, "logsumexp must have type ", logsumexpType(query));
  results.assign({query, key, key});
  return success();
}

LogicalResult AttentionGradOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                         const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2], &output = operands[3],
                   &logsumexp = operands[4], &grad = operands[5];
  Pairs pairs(a, query, key, *this);
  for (HostTensor &result : results)
    llvm::fill(result.data, 0.0);
  pairs.forEachQuery([&](int64_t q, int64_t statistic, ArrayRef<int64_t> keys) {
    double delta = pairs.dot(output, q, grad, q);
    for (int64_t k : keys) {
      double probability = a.exp(a.subtract(pairs.score(q, k), logsumexp.data[statistic]));
      double slope = a.subtract(pairs.dot(grad, q, value, k), delta);
      double scoreGrad = a.multiply(a.multiply(probability, slope), pairs.scale);
      pairs.accumulate(results[0], q, scoreGrad, key, k);
      pairs.accumulate(results[1], k, scoreGrad, query, q);
      pairs.accumulate(results[2], k, probability, grad, q);
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

double AttentionGradOp::flops() { return attentionFlops(*this, 5); }

StringRef AttentionGradOp::kernelName() { return "attention_backward"; }

DictionaryAttr AttentionGradOp::kernelConfig(bool) { return attentionConfig(*this); }

LogicalResult AttentionGradOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                               SmallVectorImpl<Value> &results) {
  auto op = AttentionGradOp::create(builder, operands[0], operands[1], operands[2], operands[3], operands[4],
                                    operands[5], use.real("scale"), use.integer("causal") != 0, use.integer("window"));
  llvm::append_range(results, op->getResults());
  return success();
}
