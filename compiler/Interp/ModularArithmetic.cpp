//===- ModularArithmetic.cpp - Reference semantics modulo a prime
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/ModularArithmetic.h"
#include "compiler/Interp/Residues.h"
#include "llvm/ADT/STLExtras.h"

using namespace bowline;

/// Numbers the functions of two numbers among those that Residues.h calls opaque.
static constexpr uint64_t kPow = 1;

double ModularArithmetic::number(double value) const { return residues::of(value); }
double ModularArithmetic::add(double a, double b) const { return residues::add(a, b); }
double ModularArithmetic::subtract(double a, double b) const { return residues::subtract(a, b); }
double ModularArithmetic::multiply(double a, double b) const { return residues::multiply(a, b); }
double ModularArithmetic::divide(double a, double b) const { return residues::divide(a, b); }
double ModularArithmetic::negative(double a) const { return residues::negative(a); }
double ModularArithmetic::abs(double x) const { return residues::abs(x); }
double ModularArithmetic::cos(double x) const { return residues::cos(x); }
double ModularArithmetic::erf(double x) const { return residues::odd(residues::Odd::Erf, x); }
double ModularArithmetic::exp(double x) const { return residues::exp(x); }
double ModularArithmetic::log(double x) const { return residues::log(x); }
double ModularArithmetic::pow(double x, double y) const { return residues::opaque(kPow, x, y); }
double ModularArithmetic::sin(double x) const { return residues::odd(residues::Odd::Sin, x); }
double ModularArithmetic::sqrt(double x) const { return residues::sqrt(x); }
double ModularArithmetic::tanh(double x) const { return residues::odd(residues::Odd::Tanh, x); }
double ModularArithmetic::maximum(double, double) const { return 0; }
std::optional<double> ModularArithmetic::truncated(double) const { return std::nullopt; }

double ModularArithmetic::sumOfProducts(const double *a, llvm::ArrayRef<int64_t> aOffsets, const double *b,
                                        llvm::ArrayRef<int64_t> bOffsets) const {
  double sum = 0;
  for (auto [i, j] : llvm::zip_equal(aOffsets, bOffsets))
    sum = residues::add(sum, residues::multiply(a[i], b[j]));
  return sum;
}
