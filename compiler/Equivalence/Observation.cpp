//===- Observation.cpp - Tensors that can be seen after a program ran
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/Observation.h"
#include "kernels/registry/philox.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;

static constexpr double kDeviation = 0.2;
static constexpr double kStep = 3;
static constexpr double kNoLabel = -100;

/// Draws numbers: normal ones, or, where there is a limit, their magnitudes up to it and zeros among them.
static void drawNumbers(HostTensor &tensor, PhiloxKey key, std::optional<int64_t> limit) {
  for (auto [i, value] : llvm::enumerate(tensor.data)) {
    value = NormalBlock(key, i / 4)[i % 4];
    if (limit)
      value = value < -1 ? 0 : std::min(std::fabs(value), static_cast<double>(*limit));
  }
}

static PhiloxKey keyOf(uint64_t seed, StringRef name) { return MixKey(seed, llvm::xxh3_64bits(name)); }

/// Draws integers from 0 to below the limit, 2 where there is none, or offsets that ascend in each of `parts` parts.
static void drawIntegers(HostTensor &tensor, PhiloxKey key, const CheckedData &data, int64_t parts) {
  int64_t limit = data.limit.value_or(data.rows ? *data.rows + 1 : 2);
  if (data.rows)
    limit = std::min(limit, *data.rows + 1);
  for (auto [i, value] : llvm::enumerate(tensor.data))
    value = std::floor(UniformBlock(key, i / 4)[i % 4] * static_cast<double>(limit));
  auto part = static_cast<ptrdiff_t>(tensor.count() / parts);
  for (auto begin = tensor.data.begin(); data.rows && begin != tensor.data.end(); begin += part)
    std::sort(begin, begin + part);
}

const HostTensor &ObservedValues::valueOf(const RunnableProgram::Variable &variable) {
  auto [it, isNew] = variables.try_emplace(variable.name, variable.shape);
  HostTensor &tensor = it->second;
  if (!isNew)
    return tensor;
  PhiloxKey key = keyOf(seed, variable.mirrorOf.empty() ? variable.name : variable.mirrorOf);
  if (variable.data.limit || variable.data.rows) {
    drawIntegers(tensor, key, variable.data, /*parts=*/1);
    return tensor;
  }
  for (auto [i, value] : llvm::enumerate(tensor.data)) {
    double normal = NormalBlock(key, i / 4)[i % 4];
    value = variable.has(StateFlags::Step)     ? kStep
            : variable.has(StateFlags::Weight) ? variable.fill + kDeviation * normal
                                               : std::fabs(normal) + 0.1; // as second moments are
  }
  return tensor;
}

HostTensor ObservedValues::directionOf(const RunnableProgram::Variable &variable) const {
  HostTensor tensor(variable.shape);
  PhiloxKey key = keyOf(seed, variable.name + "/direction");
  double squares = 0;
  for (auto [i, value] : llvm::enumerate(tensor.data)) {
    value = NormalBlock(key, i / 4)[i % 4];
    squares += value * value;
  }
  for (double &value : tensor.data)
    value /= std::sqrt(squares);
  return tensor;
}

const HostTensor &ObservedValues::inputOf(StringRef callable, const RunnableProgram::Input &input) {
  auto [it, isNew] = inputs.try_emplace((callable + "/" + input.name).str());
  HostTensor &tensor = it->second;
  if (!isNew)
    return tensor;
  tensor = HostTensor(input.shape);
  PhiloxKey key = keyOf(seed, it->first), absent = keyOf(seed, it->first + "/absent");
  if (isa<FloatType>(input.element)) {
    drawNumbers(tensor, key, input.data.limit);
    return tensor;
  }
  if (input.sequences) {
    DrawnSequences drawn = drawSequences(input.sequences->sizes, keyOf(seed, (callable + "/sequences").str()));
    using Which = SequenceInput::Which;
    const std::vector<int32_t> &values = input.sequences->which == Which::Rows      ? drawn.rows
                                         : input.sequences->which == Which::Lengths ? drawn.lengths
                                                                                    : drawn.blocks;
    tensor.data.assign(values.begin(), values.end());
    return tensor;
  }
  drawIntegers(tensor, key, input.data, input.microbatches);
  for (auto [i, value] : llvm::enumerate(tensor.data))
    if (input.isLabels && UniformBlock(absent, i / 4)[i % 4] < 0.2)
      value = kNoLabel;
  return tensor;
}

namespace {

class Observer {
public:
  Observer(RunnableProgram &program, const graph::Arithmetic &arithmetic, ObservedValues &values)
      : program(program), arithmetic(arithmetic), values(values) {}

  FailureOr<Observation> observe(ArrayRef<std::string> names) {
    Observation result;
    if (failed(program.initialize()) || failed(addVariables(result.initial, /*initial=*/true)))
      return failure();
    for (const std::string &name : names)
      if (failed(run(name, result.runs[name])))
        return failure();
    return result;
  }

private:
  HostTensor converted(HostTensor tensor, Type element) const {
    for (double &value : tensor.data)
      value = arithmetic.of(element).number(value);
    return tensor;
  }

  LogicalResult run(const std::string &name, SeenTensors &seen) {
    for (const RunnableProgram::Variable &variable : program.variables())
      if (!variable.isAccumulator &&
          failed(program.setVariable(variable.name, converted(values.valueOf(variable), variable.element))))
        return failure();
    const RunnableProgram::Callable *callable = program.findCallable(name);
    RunnableProgram::Inputs inputs;
    for (const RunnableProgram::Input &input : callable->inputs)
      inputs.try_emplace(input.name, converted(values.inputOf(name, input), input.element));
    FailureOr<SmallVector<HostTensor>> results = program.run(name, inputs);
    if (failed(results))
      return failure();
    for (auto [label, value] : llvm::zip_equal(callable->results, *results))
      seen.push_back({"result " + label, {"result '" + label + "'", std::move(value)}});
    return addVariables(seen, /*initial=*/false);
  }

  /// Gradients first: they are computed first.
  LogicalResult addVariables(SeenTensors &seen, bool initial) {
    for (bool accumulators : {true, false})
      for (const RunnableProgram::Variable &variable : program.variables()) {
        if (variable.isAccumulator != accumulators || (initial && (accumulators || !variable.isInitialised)))
          continue;
        FailureOr<HostTensor> value = program.getVariable(variable.name);
        if (failed(value))
          return failure();
        const char *kind = variable.isAccumulator             ? "accumulator @"
                           : variable.has(StateFlags::Weight) ? "parameter @"
                                                              : "state @";
        seen.push_back({variable.name, {kind + variable.name, std::move(*value)}});
      }
    return success();
  }

  RunnableProgram &program;
  const graph::Arithmetic &arithmetic;
  ObservedValues &values;
};

} // namespace

FailureOr<Observation> bowline::observe(RunnableProgram &program, const graph::Arithmetic &arithmetic,
                                        ObservedValues &values, ArrayRef<std::string> names) {
  return Observer(program, arithmetic, values).observe(names);
}
