//===- ModularArithmetic.h - Reference semantics modulo a prime --*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H
#define BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H

#include "compiler/Interp/Arithmetic.h"

namespace bowline {

/// Residues.h instead of f64: two programs that only differ in the order of sums and products give equal numbers, and
/// two that differ in anything else give different ones, but for a chance of the order of 2^-31 per number.
///
/// A comparison, `maximumf` and `minimumf` order residues as whole numbers, which keeps the laws of a total order and
/// nothing else. A maximum over a dimension, or over ranks, is zero: programs need it to shift exponents, which changes
/// no result, and no shift is as good as any. Conversions between floating-point types change nothing; a conversion to
/// integers has no meaning.
class ModularArithmetic final : public Arithmetic {
public:
  llvm::LogicalResult interpret(mlir::Operation *op, Operands operands, Results results) const override;
  double number(double value, mlir::Type element) const override;
  double sum(double a, double b, mlir::Type element) const override;
  double maximum(double a, double b, mlir::Type element) const override;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_MODULARARITHMETIC_H
