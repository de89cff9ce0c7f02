//===- GradientCheck.cpp - Gradients against central differences
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/GradientCheck.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;
using Variable = RunnableProgram::Variable;

/// The distance between the points of a difference, along a direction of length one. With five points the error is of
/// the order of its fourth power.
static constexpr double kDistance = 1e-3;

static const HostTensor *find(const SeenTensors &tensors, const std::string &name) {
  for (const auto &[key, tensor] : tensors)
    if (key == name)
      return &tensor.value;
  return nullptr;
}

namespace {

/// Central differences of the loss around the values that ObservedValues gives to parameters.
class Differences {
public:
  Differences(RunnableProgram &program, ObservedValues &values, const RunnableProgram::Callable &loss,
              const RunnableProgram::Callable &microbatch)
      : program(program), values(values), loss(loss.name) {
    for (const RunnableProgram::Input &input : microbatch.inputs)
      inputs.try_emplace(input.name, values.inputOf(microbatch.name, input));
  }

  /// Gives all parameters these values.
  LogicalResult reset() {
    for (const Variable &variable : program.variables())
      if (variable.has(StateFlags::Weight) && failed(program.setVariable(variable.name, values.valueOf(variable))))
        return failure();
    return success();
  }

  /// The derivative of the loss by `param` along `direction`, by five points. Leaves `param` as it was.
  FailureOr<double> along(const Variable &param, const HostTensor &direction) {
    double sum = 0;
    for (auto [steps, weight] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
      FailureOr<double> loss = lossAt(param, direction, steps * kDistance);
      if (failed(loss))
        return failure();
      sum += weight * *loss;
    }
    if (failed(lossAt(param, direction, 0)))
      return failure();
    return sum / (12 * kDistance);
  }

private:
  /// The loss where `param` is `distance` away from its value along `direction`; it stays there.
  FailureOr<double> lossAt(const Variable &param, const HostTensor &direction, double distance) {
    HostTensor moved = values.valueOf(param);
    for (auto [value, step] : llvm::zip_equal(moved.data, direction.data))
      value += distance * step;
    for (const Variable &variable : program.variables())
      if ((variable.name == param.name || variable.mirrorOf == param.name) &&
          failed(program.setVariable(variable.name, moved)))
        return failure();
    FailureOr<SmallVector<HostTensor>> results = program.run(loss, inputs);
    if (failed(results))
      return failure();
    return results->front().data[0];
  }

  RunnableProgram &program;
  ObservedValues &values;
  std::string loss;
  RunnableProgram::Inputs inputs;
};

} // namespace

/// The sum of the gradients of a parameter and of its mirrors; without elements where there is none.
static HostTensor gradientOf(const Variable &param, ArrayRef<Variable> variables, const SeenTensors &tensors) {
  HostTensor gradient;
  for (const Variable &variable : variables) {
    if (variable.name != param.name && variable.mirrorOf != param.name)
      continue;
    auto accumulator = llvm::find_if(
        variables, [&](const Variable &other) { return other.isAccumulator && other.of == variable.name; });
    const HostTensor *part = accumulator == variables.end() ? nullptr : find(tensors, accumulator->name);
    if (!part)
      return HostTensor();
    if (gradient.data.empty())
      gradient = *part;
    else
      for (auto [sum, value] : llvm::zip_equal(gradient.data, part->data))
        sum += value;
  }
  return gradient;
}

FailureOr<int64_t> bowline::checkNewGradients(StringRef step, ModuleOp module, RunnableProgram &program,
                                              ObservedValues &values, const Observation &before,
                                              const Observation &after, double bound, double floor) {
  const RunnableProgram::Callable *loss = program.findCallable(graph::FunctionPart::Loss);
  const RunnableProgram::Callable *microbatch = program.findCallable(graph::FunctionPart::Microbatch);
  if (!loss || !microbatch)
    return 0;
  auto run = after.runs.find(microbatch->name);
  if (run == after.runs.end() || before.runs.count(microbatch->name))
    return 0;
  int64_t compared = 0;
  Differences differences(program, values, *loss, *microbatch);
  if (failed(differences.reset()))
    return failure();
  for (const Variable &param : program.variables()) {
    if (!param.has(StateFlags::Trained) || !param.mirrorOf.empty())
      continue;
    HostTensor gradient = gradientOf(param, program.variables(), run->second);
    if (gradient.data.empty())
      continue;
    HostTensor direction = values.directionOf(param);
    FailureOr<double> expected = differences.along(param, direction);
    if (failed(expected))
      return failure();
    double actual = 0;
    for (auto [slope, part] : llvm::zip_equal(gradient.data, direction.data))
      actual += slope * part;
    if (!(std::fabs(actual - *expected) <= bound * std::max(std::fabs(*expected), floor))) {
      std::string numbers;
      llvm::raw_string_ostream(numbers) << llvm::format("%.9g", actual) << " along a random direction, where central "
                                        << "differences of the loss are " << llvm::format("%.9g", *expected);
      return emitError(module.getLoc()) << "step '" << step << "' gives parameter @" << param.name
                                        << " a wrong gradient: it is " << numbers;
    }
    ++compared;
  }
  return compared;
}
