//===- Arithmetic.cpp - What numbers are while a program is interpreted
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Arithmetic.h"
#include "dialects/Graph/GraphOpInterfaces.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;

namespace {

class Reals final : public Arithmetic {
public:
  LogicalResult interpret(Operation *op, Operands operands, Results results) const override {
    return cast<graph::Interpretable>(op).interpret(operands, results);
  }
  double number(double value, Type) const override { return value; }
  double sum(double a, double b, Type) const override { return a + b; }
  double maximum(double a, double b, Type) const override { return std::max(a, b); }
};

} // namespace

const Arithmetic &Arithmetic::reals() {
  static const Reals arithmetic;
  return arithmetic;
}
