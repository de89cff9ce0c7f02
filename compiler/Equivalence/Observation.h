//===- Observation.h - Tensors that can be seen after a program ran -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_OBSERVATION_H
#define BOWLINE_COMPILER_EQUIVALENCE_OBSERVATION_H

#include "compiler/Equivalence/RunnableProgram.h"

#include <map>
#include <string>
#include <vector>

namespace bowline {

/// A tensor with the words for it, such as "parameter @embed".
struct SeenTensor {
  std::string what;
  graph::HostTensor value;
};

/// Tensors by name, results before gradients before variables; each name is there once.
using SeenTensors = std::vector<std::pair<std::string, SeenTensor>>;

struct Observation {
  /// Initial values of variables.
  SeenTensors initial;
  /// For each callable, its results, and the variables after it ran from the values of ObservedValues.
  std::map<std::string, SeenTensors> runs;
};

/// Draws the inputs and the values of variables that programs are run on. Equal names get equal values, in every
/// program and every arithmetic.
class ObservedValues {
public:
  explicit ObservedValues(uint64_t seed) : seed(seed) {}

  /// The value that a variable has before every run. Elements of a parameter are normal with deviation 0.2 around the
  /// value that it is filled with, or around 0 where it is drawn; those of an optimizer state are positive, as second
  /// moments are; a step counter is 3. Numbers of rows and offsets are right. Shape and flags are those of the first
  /// program that asks by this name.
  const graph::HostTensor &valueOf(const RunnableProgram::Variable &variable);
  /// A random direction of length one, of the shape of a variable.
  graph::HostTensor directionOf(const RunnableProgram::Variable &variable) const;
  /// The value of an input: normal numbers, magnitudes up to its limit where it has one, or integers from 0 to below
  /// its limit, 2 where it has none; a fifth of all labels is -100, which means that there is none. Offsets of groups
  /// of rows ascend in each microbatch. Inputs that give the places of sequences keep the promises of callers. Shape
  /// and type are those of the first program that asks for the input.
  const graph::HostTensor &inputOf(llvm::StringRef callable, const RunnableProgram::Input &input);

private:
  uint64_t seed;
  std::map<std::string, graph::HostTensor> variables, inputs;
};

/// Runs the initialisation and each of `names`, from the same values of variables every time. Fails with a diagnostic
/// where the interpreter does.
llvm::FailureOr<Observation> observe(RunnableProgram &program, const graph::Arithmetic &arithmetic,
                                     ObservedValues &values, llvm::ArrayRef<std::string> names);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_OBSERVATION_H
