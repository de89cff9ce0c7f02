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

/// Facts about an operation one factor of which has grown: the dimensions that are this factor have padding behind
/// the elements that they had before.
class PaddingContext {
public:
  using Number = std::optional<double>;

  virtual ~PaddingContext() = default;

  virtual FactorRule::Kind kind() const = 0;
  /// The dimension of a tensor that is the factor; none where the tensor lacks it.
  virtual std::optional<int64_t> dimOfOperand(unsigned operand) const = 0;
  virtual std::optional<int64_t> dimOfResult(unsigned result) const = 0;
  /// The one number that the padding of an operand holds, or all of a constant. None where it is not known, or the
  /// operand has no padding of the factor.
  virtual Number numberIn(unsigned operand) const = 0;
  /// Makes every element in the padding of an operand equal `number`. If `number` is negative, a lower value serves as
  /// well.
  virtual void require(unsigned operand, double number) = 0;
};

/// A finite number x of the type such that exp(x - logit) is zero for every logit.
double absentLogit(mlir::Type elementType);

/// The number that an elementwise operation gives for the numbers that its operands' padding holds.
PaddingContext::Number paddingByEvaluation(mlir::Operation *op, const PaddingContext &context);

/// The default of the interface PaddingModel: an elementwise operation is evaluated, of others the padding is not
/// known.
PaddingContext::Number paddingByTraits(mlir::Operation *op, const PaddingContext &context);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_PADDINGCONTEXT_H
