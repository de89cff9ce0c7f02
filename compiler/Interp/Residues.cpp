//===- Residues.cpp - Numbers modulo a prime, with opaque functions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Residues.h"

#include <cmath>
#include <limits>

using namespace bowline;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static uint64_t times(uint64_t a, uint64_t b) { return a * b % residues::kPrime; }

static uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = times(base, base))
    if (exponent & 1)
      result = times(result, base);
  return result;
}

static uint64_t inverse(uint64_t a) { return power(a, residues::kPrime - 2); }

static uint64_t residue(double value) { return static_cast<uint64_t>(value); }

double residues::of(double value) {
  if (std::isnan(value))
    return kNaN;
  if (std::fabs(value) >= kInfinite)
    return std::copysign(kInfinity, value);
  int exponent = 0;
  double mantissa = std::ldexp(std::frexp(std::fabs(value), &exponent), 53); // a whole number
  int shift = (exponent - 53) % 31;                                          // 2^31 = 1
  auto result = static_cast<double>(
      times(static_cast<uint64_t>(mantissa) % kPrime, uint64_t{1} << (shift < 0 ? shift + 31 : shift)));
  return std::signbit(value) ? negative(result) : result;
}

double residues::add(double a, double b) {
  if (std::isinf(a) && std::isinf(b) && a != b)
    return 0;
  if (!std::isfinite(a) || !std::isfinite(b))
    return a + b;
  double sum = a + b;
  return sum >= static_cast<double>(kPrime) ? sum - static_cast<double>(kPrime) : sum;
}

double residues::negative(double a) { return std::isfinite(a) && a != 0 ? static_cast<double>(kPrime) - a : -a + 0.0; }

double residues::subtract(double a, double b) { return add(a, negative(b)); }

double residues::multiply(double a, double b) {
  if (a == 0 || b == 0)
    return std::isnan(a) || std::isnan(b) ? kNaN : 0;
  if (!std::isfinite(a) || !std::isfinite(b))
    return kNaN; // residues have no sign
  return static_cast<double>(times(residue(a), residue(b)));
}

double residues::divide(double a, double b) {
  if (std::isinf(b))
    return std::isfinite(a) ? 0 : kNaN;
  return std::isnan(b) ? kNaN : multiply(a, static_cast<double>(inverse(residue(b))));
}

//===----------------------------------------------------------------------===//
// Opaque functions
//===----------------------------------------------------------------------===//

/// SplitMix64 (Steele, Lea, Flood 2014), as a function of two words.
static uint64_t mixed(uint64_t seed, uint64_t value) {
  uint64_t z = (seed + 1) * 0x9E3779B97F4A7C15 + value * 0xD1B54A32D192ED03;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

static uint64_t hashed(uint64_t seed, uint64_t value) { return mixed(seed, value) % residues::kPrime; }

// A permutation of the residues, of three rounds of a fifth power, which 1/5 modulo p - 1 undoes.
static constexpr uint64_t kFifth = 5, kFifthRoot = (4 * (residues::kPrime - 1) + 1) / 5;
static constexpr uint64_t kRounds[][2] = {{1103515245, 12345}, {69621, 1812433253 % residues::kPrime}, {48271, 16807}};

static uint64_t permuted(uint64_t x) {
  for (auto [factor, addend] : kRounds)
    x = power(times(x, factor) + addend, kFifth);
  return x;
}

static uint64_t unpermuted(uint64_t y) {
  for (int round = 2; round >= 0; --round) {
    auto [factor, addend] = kRounds[round];
    y = times(power(y, kFifthRoot) + residues::kPrime - addend, inverse(factor));
  }
  return y;
}

static uint64_t atZero() {
  static const uint64_t value = permuted(0);
  return value;
}

double residues::exp(double x) {
  if (!std::isfinite(x))
    return x < 0 ? 0 : kNaN;
  static const uint64_t scale = inverse(atZero());
  return static_cast<double>(times(permuted(residue(x)), scale));
}

double residues::log(double x) {
  if (!std::isfinite(x))
    return kNaN;
  return x == 0 ? -kInfinity : static_cast<double>(unpermuted(times(residue(x), atZero())));
}

double residues::abs(double x) { return std::isfinite(x) ? std::fmin(x, negative(x)) : std::fabs(x); }

double residues::opaque(uint64_t function, double x) {
  return std::isfinite(x) ? multiply(x, static_cast<double>(hashed(function, residue(x)))) : kNaN;
}

double residues::opaque(uint64_t function, double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y))
    return kNaN;
  return static_cast<double>(hashed(mixed(function, residue(x)), residue(y)));
}

double residues::sqrt(double x) { return opaque(100, x); }

double residues::odd(Odd function, double x) {
  if (!std::isfinite(x))
    return kNaN;
  return multiply(x, static_cast<double>(hashed(200 + static_cast<uint64_t>(function), residue(abs(x)))));
}

double residues::cos(double x) { return add(1, opaque(300, multiply(x, x))); }
