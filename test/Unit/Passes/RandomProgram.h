//===- RandomProgram.h - Graph programs nobody would write by hand
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_PASSES_RANDOMPROGRAM_H
#define BOWLINE_TEST_UNIT_PASSES_RANDOMPROGRAM_H

#include "test/Unit/Interp/OpHarness.h"

namespace bowline::test {

/// A module with parameters, states and accumulators, and the entry `@run`: a function that fills the accumulators, one
/// that runs several times, and one that returns results. Each reads and writes variables in any order, writes values
/// that it has just read, and returns arguments, variables, constants and one value several times. Floating-point
/// values stay of the order of one, so that f32 and f64 agree.
std::string randomProgram(Random &random);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_PASSES_RANDOMPROGRAM_H
