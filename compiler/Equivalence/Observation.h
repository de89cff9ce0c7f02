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

/// A tensor with its description for messages, such as "parameter @embed".
struct SeenTensor {
  std::string what;
  graph::HostTensor value;
};

/// Tensors by unique names: results, then gradients, then variables.
using SeenTensors = std::vector<std::pair<std::string, SeenTensor>>;

struct Observation {
  /// Initial values of variables.
  SeenTensors initial;
  /// By callable: its results, and the variables after a run that began with the values of ObservedValues.
  std::map<std::string, SeenTensors> runs;
};

/// Draws the inputs and the values of variables for runs of programs. Equal names get equal values in every program and
/// every arithmetic.
class ObservedValues {
public:
  explicit ObservedValues(uint64_t seed) : seed(seed) {}

  /// Returns the value of a variable before every run. Elements of a parameter are normal with deviation 0.2
  /// around its fill value, or around 0 if it is drawn; elements of an optimizer state are positive, like second
  /// moments; a step counter is 3. Row numbers and offsets are valid. Shape and flags are those of the first
  /// program that asks for the name.
  const graph::HostTensor &valueOf(const RunnableProgram::Variable &variable);
  /// Returns a random direction of length one with the shape of a variable.
  graph::HostTensor directionOf(const RunnableProgram::Variable &variable) const;
  /// Returns the value of an input: normal numbers, or magnitudes up to its limit, or integers in [0, limit), with
  /// limit 2 by default. One fifth of all labels is -100, which means no label. Offsets of groups of rows ascend in
  /// each microbatch. Inputs that locate sequences keep the promises of callers. Shape and type are those of the first
  /// program that asks for the input.
  const graph::HostTensor &inputOf(llvm::StringRef callable, const RunnableProgram::Input &input);

private:
  uint64_t seed;
  std::map<std::string, graph::HostTensor> variables, inputs;
};

/// Runs the initialisation and each callable in `names`, always from the same values of variables. Fails with a
/// diagnostic if the interpreter fails.
llvm::FailureOr<Observation> observe(RunnableProgram &program, const graph::Arithmetic &arithmetic,
                                     ObservedValues &values, llvm::ArrayRef<std::string> names);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_OBSERVATION_H
