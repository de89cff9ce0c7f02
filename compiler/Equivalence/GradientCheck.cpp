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
#include <optional>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;
using Variable = RunnableProgram::Variable;

/// The distance between the points of a difference, along a direction of length one. With five points the error is of
/// the order of its fourth power. A loss that bends within this distance is looked at in half of it, several times if
/// need be; rounding of f64 stays far below the bound on differences of gradients.
static constexpr double kDistance = 1e-3;
static constexpr int kHalvings = 8;

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

  /// The derivative of the loss by `param` along `direction`, by five points at multiples of `distance`. Leaves `param`
  /// as it was.
  FailureOr<double> along(const Variable &param, const HostTensor &direction, double distance) {
    double sum = 0;
    for (auto [steps, weight] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
      FailureOr<double> loss = lossAt(param, direction, steps * distance);
      if (failed(loss))
        return failure();
      sum += weight * *loss;
    }
    if (failed(lossAt(param, direction, 0)))
      return failure();
    return sum / (12 * distance);
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

namespace {
/// The verdict of differences of the loss on a number that should be a derivative of the loss.
struct Verdict {
  enum { Right, Wrong, Undecided } kind;
  double difference; ///< the last one
};
} // namespace

/// Compares `slope` with differences over ever smaller distances. Where two of them agree with each other and not with
/// `slope`, `slope` is wrong. Their error goes with the fourth power of the distance, which gives a better estimate.
static FailureOr<Verdict> judge(double slope, Differences &differences, const Variable &param,
                                const HostTensor &direction, double bound, double floor) {
  auto agree = [&](double a, double b) { return std::fabs(a - b) <= bound * std::max(std::fabs(b), floor); };
  std::optional<double> before;
  double distance = kDistance;
  for (int halvings = 0;; ++halvings, distance /= 2) {
    FailureOr<double> measured = differences.along(param, direction, distance);
    if (failed(measured))
      return failure();
    double difference = *measured;
    if (agree(slope, difference) || (before && agree(slope, difference + (difference - *before) / 15)))
      return Verdict{Verdict::Right, difference};
    if (before && agree(*before, difference))
      return Verdict{Verdict::Wrong, difference};
    if (halvings == kHalvings)
      return Verdict{Verdict::Undecided, difference};
    before = difference;
  }
}

FailureOr<GradientCounts> bowline::checkNewGradients(StringRef step, ModuleOp module, RunnableProgram &program,
                                                     ObservedValues &values, const Observation &before,
                                                     const Observation &after, double bound, double floor) {
  const RunnableProgram::Callable *loss = program.findCallable(graph::FunctionPart::Loss);
  const RunnableProgram::Callable *microbatch = program.findCallable(graph::FunctionPart::Microbatch);
  if (!loss || !microbatch)
    return GradientCounts();
  auto run = after.runs.find(microbatch->name);
  if (run == after.runs.end() || before.runs.count(microbatch->name))
    return GradientCounts();
  GradientCounts counts;
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
    double slope = 0;
    for (auto [element, part] : llvm::zip_equal(gradient.data, direction.data))
      slope += element * part;
    FailureOr<Verdict> verdict = judge(slope, differences, param, direction, bound, floor);
    if (failed(verdict))
      return failure();
    std::string numbers;
    llvm::raw_string_ostream(numbers) << llvm::format("%.9g", slope) << " along a random direction, where central "
                                      << "differences of the loss are " << llvm::format("%.9g", verdict->difference);
    switch (verdict->kind) {
    case Verdict::Right:
      ++counts.right;
      break;
    case Verdict::Undecided:
      ++counts.undecided;
      emitWarning(module.getLoc()) << "step '" << step << "' gives parameter @" << param.name
                                   << " a gradient that could not be compared: it is " << numbers
                                   << " over the smallest distance, and others over larger ones";
      break;
    case Verdict::Wrong:
      return emitError(module.getLoc()) << "step '" << step << "' gives parameter @" << param.name
                                        << " a wrong gradient: it is " << numbers;
    }
  }
  return counts;
}
