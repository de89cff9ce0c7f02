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

/// These are numbers modulo 2^31 - 1. They are held in a double, as tensors of the interpreters hold theirs.
///
/// Sums, products and quotients are those of the field, so that they obey every law that rational numbers obey, in any
/// order of evaluation, and no rounding hides a difference. x / 0 is 0.
///
/// Functions that are not rational are fixed functions that look random. They keep these laws, and no others: exp(0) =
/// 1, log(exp(x)) = x, 1/rsqrt(x) = sqrt(x); odd and even functions stay odd and even, zeros at zero stay zeros.
///
/// Two numbers have no residue. -inf is a number so low that its exponential is zero, +inf its negative: they absorb
/// numbers that are added to them, and cancel each other. NaN is where nothing is defined, as in 2 * inf.
namespace bowline::residues {

constexpr uint64_t kPrime = (uint64_t{1} << 31) - 1;

/// Numbers from there on count as infinite.
constexpr double kInfinite = 1e29;

/// The residue of m 2^e, which every finite double is.
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

/// Any other function of one number that is zero at zero, or of two.
double opaque(uint64_t function, double x);
double opaque(uint64_t function, double x, double y);

} // namespace bowline::residues

#endif // BOWLINE_COMPILER_INTERP_RESIDUES_H
