//===- Arithmetic.h - What numbers are while a program is interpreted -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_ARITHMETIC_H
#define BOWLINE_COMPILER_INTERP_ARITHMETIC_H

#include "dialects/Graph/HostTensor.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"

namespace bowline {

/// The numbers that tensors of floating-point type hold, and what operations do with them. Integers and booleans are
/// themselves in every arithmetic.
class Arithmetic {
public:
  using HostTensor = graph::HostTensor;
  using Operands = llvm::ArrayRef<HostTensor>;
  using Results = llvm::MutableArrayRef<HostTensor>;

  virtual ~Arithmetic() = default;

  /// As graph::Interpretable::interpret. Fails with a diagnostic where the operation has no meaning.
  virtual llvm::LogicalResult interpret(mlir::Operation *op, Operands operands, Results results) const = 0;

  /// A number that the program states or draws, as an element of type `element`.
  virtual double number(double value, mlir::Type element) const = 0;

  /// Of two elements of that type.
  virtual double sum(double a, double b, mlir::Type element) const = 0;
  virtual double maximum(double a, double b, mlir::Type element) const = 0;

  /// f64, as the dialects document their operations.
  static const Arithmetic &reals();
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_ARITHMETIC_H
