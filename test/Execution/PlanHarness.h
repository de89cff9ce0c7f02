//===- PlanHarness.h - Functions compiled to a plan, run, and compared with the reference
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_PLANHARNESS_H
#define BOWLINE_TEST_EXECUTION_PLANHARNESS_H

#include "compiler/Driver/Compile.h"
#include "runtime/executor/session.h"
#include "runtime/plan/sequences.h"
#include "test/Unit/Interp/OpHarness.h"

namespace bowline::test {

/// How far a result in f32 may be from the reference in f64: |got - want| <= relative * |want| + absolute.
struct Bound {
  double relative = 1e-6, absolute = 1e-6;
};

/// An argument and the range of its elements: reals of [low, high], rounded to f32, or integers of [low, high].
struct Argument {
  Shape shape;
  std::string element = "f32";
  double low = -2, high = 2;
  bool ascends = false;

  std::string type() const;
  HostTensor draw(Random &random) const;
};

/// A function of its arguments %0, %1, ... whose results are the values %r0, %r1, ... of `body`, or %r alone.
struct Case {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<std::string> results; // types
  std::string body;
  Bound bound = {};
  std::string variables = {};                  // declared for the body, with names that no other case has
  std::optional<SequenceSizes> sequences = {}; // of the last three arguments: rows, lengths and blocks
};

/// "tensor<3x5xf32>"
std::string tensorType(const Shape &shape, const std::string &element = "f32");

/// A size beside, at or above the width of a vector; one; a prime.
int64_t pickSize(Random &random);
/// Of such sizes, at most 4000 elements.
Shape pickShape(Random &random, int64_t rank);

/// A module with every case as an entry `case<i>`.
mlir::OwningOpRef<mlir::ModuleOp> moduleOf(const std::vector<Case> &cases);

/// Compiles `module`, which it changes, and loads the plan. Null after a test failure.
std::unique_ptr<Session> sessionOf(mlir::ModuleOp module, const CompileOptions &options,
                                   const SessionOptions &how = {});

/// The bytes of a tensor of the session as numbers, and back.
HostTensor read(const Session &session, const TensorRef &from);
void write(const HostTensor &tensor, Session &session, const TensorRef &to);

/// A test failure for the first elements that differ by more than `bound`.
void expectWithin(const HostTensor &got, const HostTensor &want, Bound bound);

/// Compiles all cases into one plan, with fusions merged and not, proves it sound, runs every entry on random inputs
/// and compares the results with the reference interpreter's. Variables begin with random values.
void checkCases(Random &random, const std::vector<Case> &cases);

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_PLANHARNESS_H
