//===- Arithmetic.h - Numbers of the reference semantics --------*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_ARITHMETIC_H
#define BOWLINE_DIALECTS_GRAPH_ARITHMETIC_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace bowline::graph {

/// A number system for the elements of floating-point tensors, and its functions. The reference semantics of each
/// operation is written once, in terms of this interface. Two implementations are f64 and residues modulo a prime.
/// Integers and booleans stand for themselves in all of them.
class Arithmetic {
public:
  virtual ~Arithmetic() = default;

  /// The arithmetic of f64, in which the dialects document their operations.
  static const Arithmetic &reals();
  /// This arithmetic for elements of floating-point type, and f64, which holds integers exactly, for others.
  const Arithmetic &of(mlir::Type elementType) const;

  /// Names the number system for diagnostics, as the end of a sentence "... has no meaning", such as "in f64".
  virtual llvm::StringRef where() const = 0;

  /// Converts a constant or random number of the program. Only 0, 1 and other small integers need no conversion.
  virtual double number(double value) const = 0;

  virtual double add(double a, double b) const = 0;
  virtual double subtract(double a, double b) const = 0;
  virtual double multiply(double a, double b) const = 0;
  virtual double divide(double a, double b) const = 0;
  virtual double negative(double a) const = 0;

  virtual double abs(double x) const = 0;
  virtual double cos(double x) const = 0;
  virtual double erf(double x) const = 0;
  virtual double exp(double x) const = 0;
  virtual double log(double x) const = 0;
  virtual double pow(double x, double y) const = 0;
  virtual double sin(double x) const = 0;
  virtual double sqrt(double x) const = 0;
  virtual double tanh(double x) const = 0;
  double logistic(double x) const { return divide(1, add(1, exp(negative(x)))); }

  /// The maximum of two elements, for reductions over a dimension or over ranks; NaN if one is NaN. An arithmetic
  /// without an order returns zero: programs use the maximum to shift exponents, which does not change the result.
  virtual double maximum(double a, double b) const = 0;

  /// Rounds toward zero to an integer; none if the numbers of the arithmetic have no fraction.
  virtual std::optional<double> truncated(double x) const = 0;

  /// The sum of a[aOffsets[i]] b[bOffsets[i]] over i, in order.
  virtual double sumOfProducts(const double *a, llvm::ArrayRef<int64_t> aOffsets, const double *b,
                               llvm::ArrayRef<int64_t> bOffsets) const = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_ARITHMETIC_H
