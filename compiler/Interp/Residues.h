//===- Residues.h - Numbers modulo a prime, with opaque functions -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_RESIDUES_H
#define BOWLINE_COMPILER_INTERP_RESIDUES_H

#include <cstdint>

/// Arithmetic modulo 2^31 - 1. Residues are stored in doubles, like the elements of the interpreters' tensors.
///
/// Sums, products and quotients are those of the field. So they obey all laws of rational numbers in any order of
/// evaluation, and no rounding hides a difference. x / 0 is 0.
///
/// Other functions are fixed and look random. They keep only these laws: exp(0) = 1, log(exp(x)) = x, 1/rsqrt(x) =
/// sqrt(x). Odd and even functions stay odd and even, and functions that are zero at zero stay zero there.
///
/// Infinities and NaN have no residue. -inf stands for a number whose exponential is zero, +inf for its negative. They
/// absorb finite summands and cancel each other. NaN is the result of undefined operations, such as 2 * inf.
namespace bowline::residues {

constexpr uint64_t kPrime = (uint64_t{1} << 31) - 1;

/// Doubles of at least this magnitude count as infinite.
constexpr double kInfinite = 1e29;

/// Returns the residue of a finite double, which has the form m 2^e.
double of(double value);

double add(double a, double b);
double negative(double a);
double subtract(double a, double b);
double multiply(double a, double b);
double divide(double a, double b);

double exp(double x);
double log(double x);
double sqrt(double x);
double abs(double x);

enum class Odd : uint64_t { Tanh = 1, Erf, Sin };
double odd(Odd function, double x);
double cos(double x);

/// Other functions: of one number, with value zero at zero, or of two numbers.
double opaque(uint64_t function, double x);
double opaque(uint64_t function, double x, double y);

} // namespace bowline::residues

#endif // BOWLINE_COMPILER_INTERP_RESIDUES_H
