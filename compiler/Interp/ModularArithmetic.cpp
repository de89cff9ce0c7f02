//===- ModularArithmetic.cpp - Reference semantics modulo a prime
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/ModularArithmetic.h"
#include "compiler/Interp/Residues.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

using Operands = Arithmetic::Operands;
using Results = Arithmetic::Results;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

static double sumOf(ArrayRef<double> values) {
  double sum = 0;
  for (double value : values)
    sum = residues::add(sum, value);
  return sum;
}

static double residueOf(const APFloat &value) { return residues::of(value.convertToDouble()); }

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

static bool compare(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
  case P::UEQ:
    return a == b;
  case P::ONE:
  case P::UNE:
    return a != b;
  case P::OGT:
  case P::UGT:
    return a > b;
  case P::OGE:
  case P::UGE:
    return a >= b;
  case P::OLT:
  case P::ULT:
    return a < b;
  case P::OLE:
  case P::ULE:
    return a <= b;
  case P::ORD:
  case P::AlwaysTrue:
    return true;
  case P::UNO:
  case P::AlwaysFalse:
    return false;
  }
  llvm_unreachable("unknown predicate");
}

/// A function of one element of each operand; null for operations that are none, or move elements without change.
static std::function<double(ArrayRef<double>)> scalarFunction(Operation *op) {
  using Scalars = ArrayRef<double>;
  using Function = std::function<double(Scalars)>;
  constexpr uint64_t kPow = 1, kGelu = 2;
  return TypeSwitch<Operation *, Function>(op)
      .Case([](arith::AddFOp) { return [](Scalars x) { return residues::add(x[0], x[1]); }; })
      .Case([](arith::SubFOp) { return [](Scalars x) { return residues::subtract(x[0], x[1]); }; })
      .Case([](arith::MulFOp) { return [](Scalars x) { return residues::multiply(x[0], x[1]); }; })
      .Case([](arith::DivFOp) { return [](Scalars x) { return residues::divide(x[0], x[1]); }; })
      .Case([](arith::NegFOp) { return [](Scalars x) { return residues::negative(x[0]); }; })
      .Case([](arith::MaximumFOp) { return [](Scalars x) { return std::max(x[0], x[1]); }; })
      .Case([](arith::MinimumFOp) { return [](Scalars x) { return std::min(x[0], x[1]); }; })
      .Case([](arith::CmpFOp op) {
        return [predicate = op.getPredicate()](Scalars x) -> double { return compare(predicate, x[0], x[1]); };
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return [](Scalars x) { return x[0]; }; })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([](auto) { return [](Scalars x) { return residues::of(x[0]); }; })
      .Case([](math::AbsFOp) { return [](Scalars x) { return residues::abs(x[0]); }; })
      .Case([](math::CosOp) { return [](Scalars x) { return residues::cos(x[0]); }; })
      .Case([](math::SinOp) { return [](Scalars x) { return residues::odd(residues::Odd::Sin, x[0]); }; })
      .Case([](math::ErfOp) { return [](Scalars x) { return residues::odd(residues::Odd::Erf, x[0]); }; })
      .Case([](math::TanhOp) { return [](Scalars x) { return residues::odd(residues::Odd::Tanh, x[0]); }; })
      .Case([](math::ExpOp) { return [](Scalars x) { return residues::exp(x[0]); }; })
      .Case([](math::LogOp) { return [](Scalars x) { return residues::log(x[0]); }; })
      .Case([](math::SqrtOp) { return [](Scalars x) { return residues::sqrt(x[0]); }; })
      .Case([](math::RsqrtOp) { return [](Scalars x) { return residues::divide(1, residues::sqrt(x[0])); }; })
      .Case([](math::PowFOp) { return [](Scalars x) { return residues::opaque(kPow, x[0], x[1]); }; })
      .Case([](LogisticOp) { return [](Scalars x) { return residues::logistic(x[0]); }; })
      .Case([](SiluOp) { return [](Scalars x) { return residues::multiply(x[0], residues::logistic(x[0])); }; })
      .Case([](GeluOp op) {
        return [function = kGelu + static_cast<uint64_t>(op.getKind())](Scalars x) {
          return residues::opaque(function, x[0]);
        };
      })
      .Default([](Operation *) { return Function(); });
}

//===----------------------------------------------------------------------===//
// Sums and products
//===----------------------------------------------------------------------===//

/// One step along each of `dims`, for all indices within their sizes.
static SmallVector<int64_t> offsetsAlong(const HostTensor &tensor, ArrayRef<int64_t> dims) {
  std::vector<int64_t> sizes, strides = tensor.strides();
  for (int64_t dim : dims)
    sizes.push_back(tensor.shape[dim]);
  SmallVector<int64_t> offsets;
  forEachIndex(sizes, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [at, dim] : llvm::zip_equal(index, dims))
      offset += at * strides[dim];
    offsets.push_back(offset);
  });
  return offsets;
}

static void interpret(DotGeneralOp op, Operands operands, Results results) {
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  SmallVector<int64_t> lhsInner = offsetsAlong(lhs, op.getLhsContract()), lhsOuter = offsetsAlong(lhs, op.getLhsFree());
  SmallVector<int64_t> rhsInner = offsetsAlong(rhs, op.getRhsContract()), rhsOuter = offsetsAlong(rhs, op.getRhsFree());
  auto next = results[0].data.begin();
  for (auto [l, r] : llvm::zip_equal(offsetsAlong(lhs, op.getLhsBatch()), offsetsAlong(rhs, op.getRhsBatch())))
    for (int64_t row : lhsOuter)
      for (int64_t column : rhsOuter) {
        double sum = 0;
        for (auto [a, b] : llvm::zip_equal(lhsInner, rhsInner))
          sum = residues::add(sum, residues::multiply(lhs.data[l + row + a], rhs.data[r + column + b]));
        *next++ = sum;
      }
}

static void interpret(ReduceOp op, Operands operands, Results results) {
  const HostTensor &input = operands[0];
  llvm::fill(results[0].data, 0.0);
  if (op.getKind() != ReduceKind::Sum)
    return; // as ModularArithmetic documents
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < input.rank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim))
      kept.push_back(dim);
  SmallVector<int64_t> inner = offsetsAlong(input, op.getDims());
  for (auto [result, offset] : llvm::zip_equal(results[0].data, offsetsAlong(input, kept)))
    for (int64_t step : inner)
      result = residues::add(result, input.data[offset + step]);
}

static LogicalResult interpret(ScatterAddOp op, Operands operands, Results results) {
  const HostTensor &updates = operands[0], &indices = operands[1];
  HostTensor &result = results[0];
  llvm::fill(result.data, 0.0);
  int64_t rows = result.shape[0], rowSize = rows == 0 ? 0 : result.count() / rows;
  for (auto [i, index] : llvm::enumerate(indices.data)) {
    if (index < 0 || index >= static_cast<double>(rows))
      return op.emitOpError("index ") << static_cast<int64_t>(index) << " is outside of the table's " << rows
                                      << " rows";
    for (int64_t d = 0; d < rowSize; ++d) {
      double &sum = result.data[static_cast<int64_t>(index) * rowSize + d];
      sum = residues::add(sum, updates.data[i * rowSize + d]);
    }
  }
  return success();
}

static void interpret(stage::SumOp, Operands operands, Results results) {
  results[0].data[0] = 0;
  for (const HostTensor &operand : operands)
    results[0].data[0] = residues::add(results[0].data[0], operand.data[0]);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

static void interpret(RmsNormOp op, Operands operands, Results results) {
  const HostTensor &input = operands[0], &scale = operands[1];
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.count(); row += width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i)
      squares = residues::add(squares, residues::multiply(input.data[row + i], input.data[row + i]));
    double mean = residues::divide(squares, static_cast<double>(width));
    double root = residues::sqrt(residues::add(mean, residueOf(op.getEps())));
    for (int64_t i = 0; i < width; ++i)
      results[0].data[row + i] = residues::multiply(residues::divide(input.data[row + i], root), scale.data[i]);
  }
}

static void interpret(LayerNormOp op, Operands operands, Results results) {
  const HostTensor &input = operands[0], &scale = operands[1], &bias = operands[2];
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.count(); row += width) {
    ArrayRef<double> values(input.data.data() + row, width);
    double mean = residues::divide(sumOf(values), static_cast<double>(width)), squares = 0;
    for (double value : values) {
      double centred = residues::subtract(value, mean);
      squares = residues::add(squares, residues::multiply(centred, centred));
    }
    double variance = residues::divide(squares, static_cast<double>(width));
    double root = residues::sqrt(residues::add(variance, residueOf(op.getEps())));
    for (int64_t i = 0; i < width; ++i) {
      double normal = residues::divide(residues::subtract(values[i], mean), root);
      results[0].data[row + i] = residues::add(residues::multiply(normal, scale.data[i]), bias.data[i]);
    }
  }
}

static void interpret(RopeOp op, Operands operands, Results results) {
  const HostTensor &input = operands[0], &cosine = operands[1], &sine = operands[2];
  int64_t length = input.shape[1], heads = input.shape[2], width = input.shape[3], half = width / 2;
  for (int64_t row = 0; row < input.count() / width; ++row) {
    int64_t position = row / heads % length;
    for (int64_t i = 0; i < half; ++i) {
      double c = cosine.data[position * half + i], s = sine.data[position * half + i];
      if (op.getInverse())
        s = residues::negative(s);
      double low = input.data[row * width + i], high = input.data[row * width + i + half];
      results[0].data[row * width + i] = residues::subtract(residues::multiply(low, c), residues::multiply(high, s));
      results[0].data[row * width + i + half] = residues::add(residues::multiply(high, c), residues::multiply(low, s));
    }
  }
}

static LogicalResult checkLabel(Operation *op, double label, int64_t classes) {
  if (label <= static_cast<double>(classes))
    return success();
  return op->emitOpError("label ") << static_cast<int64_t>(label) << " is outside of the " << classes << " classes";
}

static LogicalResult interpret(SoftmaxCrossEntropyOp op, Operands operands, Results results) {
  const HostTensor &logits = operands[0], &labels = operands[1];
  int64_t classes = logits.shape.back();
  for (auto [row, label] : llvm::enumerate(labels.data)) {
    if (failed(checkLabel(op, label, classes)))
      return failure();
    ArrayRef<double> scores(logits.data.data() + row * classes, classes);
    double sum = 0;
    for (double score : scores)
      sum = residues::add(sum, residues::exp(score));
    double logsumexp = residues::log(sum);
    double logit = label < 0 || label == static_cast<double>(classes) ? 0 : scores[static_cast<size_t>(label)];
    results[0].data[row] = label < 0 ? 0 : residues::subtract(logsumexp, logit);
    results[1].data[row] = logsumexp;
  }
  return success();
}

static LogicalResult interpret(SoftmaxCrossEntropyGradOp op, Operands operands, Results results) {
  const HostTensor &logits = operands[0], &labels = operands[1], &logsumexp = operands[2], &grad = operands[3];
  int64_t classes = logits.shape.back();
  for (auto [row, label] : llvm::enumerate(labels.data)) {
    if (failed(checkLabel(op, label, classes)))
      return failure();
    for (int64_t i = 0; i < classes; ++i) {
      double probability = residues::exp(residues::subtract(logits.data[row * classes + i], logsumexp.data[row]));
      double difference = residues::subtract(probability, label == static_cast<double>(i) ? 1 : 0);
      results[0].data[row * classes + i] = label < 0 ? 0 : residues::multiply(difference, grad.data[row]);
    }
  }
  return success();
}

namespace {
/// The pairs of a query and a key that attention looks at.
struct Attention {
  const HostTensor &query, &key;
  int64_t queries, heads, width, keys, keyHeads;
  bool causal;
  double scale;

  Attention(const HostTensor &query, const HostTensor &key, bool causal, double scale)
      : query(query), key(key), queries(query.shape[1]), heads(query.shape[2]), width(query.shape[3]),
        keys(key.shape[1]), keyHeads(key.shape[2]), causal(causal), scale(scale) {}

  double dot(const HostTensor &x, int64_t xRow, const HostTensor &y, int64_t yRow) const {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum = residues::add(sum, residues::multiply(x.data[xRow + d], y.data[yRow + d]));
    return sum;
  }
  double score(int64_t q, int64_t k) const { return residues::multiply(scale, dot(query, q, key, k)); }

  /// Calls body(first element of a query, its place in the statistics, first elements of the keys that it sees).
  void forEachQuery(function_ref<void(int64_t, int64_t, ArrayRef<int64_t>)> body) const {
    for (int64_t b = 0; b < query.shape[0]; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t s = 0; s < queries; ++s) {
          SmallVector<int64_t> rows;
          for (int64_t t = 0; t < (causal ? s + keys - queries + 1 : keys); ++t)
            rows.push_back(((b * keys + t) * keyHeads + h / (heads / keyHeads)) * width);
          body(((b * queries + s) * heads + h) * width, (b * heads + h) * queries + s, rows);
        }
  }
};

void accumulate(HostTensor &into, int64_t at, double factor, const HostTensor &from, int64_t row, int64_t width) {
  for (int64_t d = 0; d < width; ++d)
    into.data[at + d] = residues::add(into.data[at + d], residues::multiply(factor, from.data[row + d]));
}
} // namespace

static void interpret(AttentionOp op, Operands operands, Results results) {
  Attention a(operands[0], operands[1], op.getCausal(), residueOf(op.getScale()));
  llvm::fill(results[0].data, 0.0);
  a.forEachQuery([&](int64_t q, int64_t statistic, ArrayRef<int64_t> keys) {
    double sum = 0;
    for (int64_t k : keys)
      sum = residues::add(sum, residues::exp(a.score(q, k)));
    double logsumexp = results[1].data[statistic] = residues::log(sum);
    for (int64_t k : keys)
      accumulate(results[0], q, residues::exp(residues::subtract(a.score(q, k), logsumexp)), operands[2], k, a.width);
  });
}

static void interpret(AttentionGradOp op, Operands operands, Results results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2], &output = operands[3],
                   &logsumexp = operands[4], &grad = operands[5];
  Attention a(query, key, op.getCausal(), residueOf(op.getScale()));
  for (HostTensor &result : results)
    llvm::fill(result.data, 0.0);
  a.forEachQuery([&](int64_t q, int64_t statistic, ArrayRef<int64_t> keys) {
    double delta = a.dot(output, q, grad, q);
    for (int64_t k : keys) {
      double probability = residues::exp(residues::subtract(a.score(q, k), logsumexp.data[statistic]));
      double slope = residues::subtract(a.dot(grad, q, value, k), delta);
      double scoreGrad = residues::multiply(residues::multiply(probability, slope), a.scale);
      accumulate(results[0], q, scoreGrad, key, k, a.width);
      accumulate(results[1], k, scoreGrad, query, q, a.width);
      accumulate(results[2], k, probability, grad, q, a.width);
    }
  });
}

//===----------------------------------------------------------------------===//
// ModularArithmetic
//===----------------------------------------------------------------------===//

LogicalResult ModularArithmetic::interpret(Operation *op, Operands operands, Results results) const {
  if (llvm::none_of(op->getOperands(), isFloat) && !isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    // Whole numbers as ever, and constants, random numbers and tables of angles.
    if (failed(cast<Interpretable>(op).interpret(operands, results)))
      return failure();
    for (auto [value, result] : llvm::zip_equal(op->getResults(), results))
      if (isFloat(value))
        llvm::transform(result.data, result.data.begin(), residues::of);
    return success();
  }
  if (auto function = scalarFunction(op)) {
    SmallVector<double, 3> scalars(operands.size());
    for (size_t i = 0; i < results[0].data.size(); ++i) {
      for (auto [scalar, operand] : llvm::zip_equal(scalars, operands))
        scalar = operand.data[operand.data.size() == 1 ? 0 : i];
      results[0].data[i] = function(scalars);
    }
    return success();
  }
  auto compute = [&](auto op) {
    if constexpr (std::is_void_v<decltype(::interpret(op, operands, results))>) {
      ::interpret(op, operands, results);
      return success();
    } else {
      return ::interpret(op, operands, results);
    }
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<DotGeneralOp, ReduceOp, ScatterAddOp, stage::SumOp, RmsNormOp, LayerNormOp, RopeOp, SoftmaxCrossEntropyOp,
            SoftmaxCrossEntropyGradOp, AttentionOp, AttentionGradOp>(compute)
      // These only move elements.
      .Case<BroadcastOp, TransposeOp, ReshapeOp, SliceOp, PadOp, ConcatOp, GatherOp, arith::SelectOp, stage::TransferOp,
            stage::BroadcastOp>([&](auto) { return cast<Interpretable>(op).interpret(operands, results); })
      .Default([](Operation *op) { return op->emitOpError("has no meaning modulo a prime"); });
}

double ModularArithmetic::number(double value, Type element) const {
  return isa<FloatType>(element) ? residues::of(value) : value;
}

double ModularArithmetic::sum(double a, double b, Type element) const {
  return isa<FloatType>(element) ? residues::add(a, b) : a + b;
}

double ModularArithmetic::maximum(double a, double b, Type element) const {
  return isa<FloatType>(element) ? 0 : std::max(a, b);
}
