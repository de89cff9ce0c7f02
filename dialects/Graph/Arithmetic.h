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

/// The numbers that tensors of floating-point type hold, and the functions of these numbers. Each operation writes its
/// formula once, in terms of these; f64 and residues modulo a prime are two such arithmetics. Integers and booleans are
/// themselves in each of them.
class Arithmetic {
public:
  virtual ~Arithmetic() = default;

  /// The arithmetic of f64, in which the dialects document their operations.
  static const Arithmetic &reals();
  /// This arithmetic for elements of floating-point type, and f64, which holds integers exactly, for others.
  const Arithmetic &of(mlir::Type elementType) const;

  /// The end of a sentence that begins with "has no meaning".
  virtual llvm::StringRef where() const = 0;

  /// A number that the program states or draws. Only zero, one and other small whole numbers are themselves without it.
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

  /// The maximum of elements that are reduced, over a dimension or over ranks. An arithmetic without an order gives
  /// zero: programs need it to shift exponents, which changes no result, and no shift is as good as any. A NaN wins.
  virtual double maximum(double a, double b) const = 0;

  /// The whole number that is left without the fraction; none where numbers have no fraction to leave out.
  virtual std::optional<double> truncated(double x) const = 0;

  /// The sum of a[aOffsets[i]] b[bOffsets[i]] over i, in order.
  virtual double sumOfProducts(const double *a, llvm::ArrayRef<int64_t> aOffsets, const double *b,
                               llvm::ArrayRef<int64_t> bOffsets) const = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_ARITHMETIC_H
