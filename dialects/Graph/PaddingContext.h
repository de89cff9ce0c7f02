//===- PaddingContext.h - Contents of padding, as an operation sees them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_PADDINGCONTEXT_H
#define BOWLINE_DIALECTS_GRAPH_PADDINGCONTEXT_H

#include "dialects/Graph/FactorRule.h"

#include <optional>

namespace bowline::graph {

/// The view of an operation while one factor of its rule grows by padding. Each dimension that is this factor has its
/// original elements first and padding behind them.
class PaddingContext {
public:
  using Number = std::optional<double>;

  virtual ~PaddingContext() = default;

  virtual FactorRule::Kind kind() const = 0;
  /// The dimension of an operand or result that is the factor; none if the tensor lacks the factor.
  virtual std::optional<int64_t> dimOfOperand(unsigned operand) const = 0;
  virtual std::optional<int64_t> dimOfResult(unsigned result) const = 0;
  /// The number in every element of an operand's padding, or in every element of a constant. None if it is not known
  /// or the operand lacks the factor.
  virtual Number numberIn(unsigned operand) const = 0;
  /// Sets every element in the padding of an operand to `number`. If `number` is negative, padding that already holds a
  /// lower value stays as it is.
  virtual void require(unsigned operand, double number) = 0;
};

/// The logit of padding: a finite number x of the type, so low that exp(x - logit) is zero for every real logit.
double absentLogit(mlir::Type elementType);

/// Evaluates an elementwise operation on the numbers in its operands' padding; none if one of them is not known.
PaddingContext::Number paddingByEvaluation(mlir::Operation *op, const PaddingContext &context);

/// The default of PaddingModel::resultPadding: paddingByEvaluation for an elementwise operation, none for any
/// other.
PaddingContext::Number paddingByTraits(mlir::Operation *op, const PaddingContext &context);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_PADDINGCONTEXT_H
