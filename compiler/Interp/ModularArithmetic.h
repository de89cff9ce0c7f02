//===- ModularArithmetic.h - Reference semantics modulo a prime --*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H
#define BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H

#include "dialects/Graph/Arithmetic.h"

namespace bowline {

/// Computes with the residues of Residues.h instead of f64. Programs that differ only in the order of sums and products
/// give equal numbers. Programs that differ in any other way give different numbers, except with a probability of about
/// 2^-31 per number.
///
/// Comparisons, `maximumf` and `minimumf` order residues as integers, which keeps the laws of a total order
/// and no others. A maximum over a dimension or over ranks is zero: programs use it only to shift exponents,
/// where any shift gives the same result. Conversions between floating-point types change nothing; a
/// conversion to integers has no meaning.
class ModularArithmetic final : public graph::Arithmetic {
public:
  llvm::StringRef where() const override { return "modulo a prime"; }
  double number(double value) const override;
  double add(double a, double b) const override;
  double subtract(double a, double b) const override;
  double multiply(double a, double b) const override;
  double divide(double a, double b) const override;
  double negative(double a) const override;
  double abs(double x) const override;
  double cos(double x) const override;
  double erf(double x) const override;
  double exp(double x) const override;
  double log(double x) const override;
  double pow(double x, double y) const override;
  double sin(double x) const override;
  double sqrt(double x) const override;
  double tanh(double x) const override;
  double maximum(double a, double b) const override;
  std::optional<double> truncated(double x) const override;
  double sumOfProducts(const double *a, llvm::ArrayRef<int64_t> aOffsets, const double *b,
                       llvm::ArrayRef<int64_t> bOffsets) const override;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H
