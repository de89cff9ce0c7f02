//===- Arithmetic.cpp - Numbers of the reference semantics
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Arithmetic.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace bowline::graph;

namespace {

class Reals final : public Arithmetic {
public:
  StringRef where() const override { return "in f64"; }
  double number(double value) const override { return value; }
  double add(double a, double b) const override { return a + b; }
  double subtract(double a, double b) const override { return a - b; }
  double multiply(double a, double b) const override { return a * b; }
  double divide(double a, double b) const override { return a / b; }
  double negative(double a) const override { return -a; }
  double abs(double x) const override { return std::fabs(x); }
  double cos(double x) const override { return std::cos(x); }
  double erf(double x) const override { return std::erf(x); }
  double exp(double x) const override { return std::exp(x); }
  double log(double x) const override { return std::log(x); }
  double pow(double x, double y) const override { return std::pow(x, y); }
  double sin(double x) const override { return std::sin(x); }
  double sqrt(double x) const override { return std::sqrt(x); }
  double tanh(double x) const override { return std::tanh(x); }
  double maximum(double a, double b) const override { return b <= a || std::isnan(a) ? a : b; }
  std::optional<double> truncated(double x) const override { return std::trunc(x); }
  double sumOfProducts(const double *a, ArrayRef<int64_t> aOffsets, const double *b,
                       ArrayRef<int64_t> bOffsets) const override {
    double sum = 0;
    for (auto [i, j] : llvm::zip_equal(aOffsets, bOffsets))
      sum += a[i] * b[j];
    return sum;
  }
};

} // namespace

const Arithmetic &Arithmetic::reals() {
  static const Reals arithmetic;
  return arithmetic;
}

const Arithmetic &Arithmetic::of(Type elementType) const { return isa<FloatType>(elementType) ? *this : reals(); }
