//===- EquivalenceChecker.cpp - Whether a pass kept the results of a program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/EquivalenceChecker.h"
#include "compiler/Equivalence/CreateProgram.h"
#include "compiler/Equivalence/GradientCheck.h"
#include "compiler/Interp/Residues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;
using Variable = RunnableProgram::Variable;

//===----------------------------------------------------------------------===//
// Interpretation
//===----------------------------------------------------------------------===//

/// The names of the callables that callers may run: entries, and functions that none of them runs.
static std::vector<std::string> outermost(const RunnableProgram &program) {
  std::vector<std::string> names;
  for (const RunnableProgram::Callable &callable : program.callables())
    if (!callable.isCalled)
      names.push_back(callable.name);
  return names;
}

static std::set<std::string> entriesOf(const RunnableProgram &program) {
  std::set<std::string> names;
  for (const RunnableProgram::Callable &callable : program.callables())
    if (callable.isEntry)
      names.insert(callable.name);
  return names;
}

static std::string numberText(const char *format, double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(format, value);
  return text;
}

static LogicalResult checkSize(ModuleOp module, const RunnableProgram &program) {
  if (program.work() <= EquivalenceChecker::kMaxWork)
    return success();
  return emitError(module.getLoc())
         << "is too large to be interpreted before and after every pass: one run takes "
         << numberText("%.0f", program.work() / 1e6) << " million operations on all ranks together, and "
         << numberText("%.0f", EquivalenceChecker::kMaxWork / 1e6)
         << " million are the limit; take smaller sizes or fewer ranks; bowline-compile --verify-each=equiv shrinks a "
            "model by itself if it gets the model's directory";
}

/// Where the first NaN was seen, as in "result 'y'[0, 2] after @f"; empty where there is none.
static std::string findNaN(const Observation &seen);

/// Says which values a program got that cannot be run, which may be the reason.
static void describeInputs(ModuleOp module, const RunnableProgram &program) {
  std::string inputs;
  for (const RunnableProgram::Callable &callable : program.callables())
    for (const RunnableProgram::Input &input : callable.inputs)
      if (std::string name = "'" + input.name + "'";
          !callable.isCalled && !isa<FloatType>(input.element) && !StringRef(inputs).contains(name)) {
        inputs += (inputs.empty() ? "" : ", ") + name;
        if (input.data.rows)
          inputs += " ascends from 0 to " + std::to_string(*input.data.rows);
        else
          inputs += " is from 0 to " + std::to_string(input.data.limit.value_or(2) - 1);
      }
  emitError(module.getLoc())
      << "to compare the program before and after each step, it was run on inputs and parameters drawn at random"
      << (inputs.empty() ? "" : ": ") << inputs
      << "; if the program cannot take these, give its inputs a lower 'graph.limit', or leave out --verify-each=equiv "
         "(an input gets valid row numbers or offsets only if the program uses it as such without computing with it)";
}

/// An operation that has no meaning in an arithmetic that cannot convert numbers to whole ones; null: there is none.
static Operation *findUnmeant(ModuleOp module, const graph::Arithmetic &arithmetic) {
  if (arithmetic.truncated(0))
    return nullptr;
  Operation *found = nullptr;
  module.walk([&](arith::FPToSIOp op) {
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

LogicalResult EquivalenceChecker::begin(ModuleOp module) {
  fingerprint.emplace(module);
  bodies.learn(module);
  for (World &world : worlds) {
    if (Operation *op = findUnmeant(module, *world.arithmetic)) {
      world.isLeftOut = true;
      total.unmeant = op->getName().getStringRef().str();
      continue;
    }
    FailureOr<std::unique_ptr<RunnableProgram>> program = createProgram(module, bodies, *world.arithmetic);
    if (failed(program))
      return failure();
    if (failed(checkSize(module, **program)))
      return failure();
    auto seen = observe(**program, *world.arithmetic, values, outermost(**program));
    if (failed(seen)) {
      describeInputs(module, **program);
      return failure();
    }
    world.before = std::move(*seen);
    if (std::string nan = world.isReal ? findNaN(world.before) : ""; !nan.empty())
      return emitError(module.getLoc()) << "computes NaN, in f64: " << nan
                                        << "; nothing can be said about a program that does so on the inputs and "
                                           "parameters that are tried, which are of the order of one";
    hadInit = (*program)->hasInit();
    entries = entriesOf(**program);
  }
  return success();
}

LogicalResult EquivalenceChecker::check(StringRef step, ModuleOp module) {
  OperationFingerPrint now(module);
  if (now == *fingerprint) {
    ++total.unchanged;
    return success();
  }
  fingerprint = now;
  bodies.learn(module);
  for (World &world : worlds)
    if (!world.isLeftOut && failed(check(world, step, module)))
      return failure();
  auto program = createProgram(module, bodies, *worlds[0].arithmetic);
  hadInit = (*program)->hasInit();
  entries = entriesOf(**program);
  total.steps.push_back(step.str());
  return success();
}

LogicalResult EquivalenceChecker::check(World &world, StringRef step, ModuleOp module) {
  FailureOr<std::unique_ptr<RunnableProgram>> program = createProgram(module, bodies, *world.arithmetic);
  if (failed(program))
    return failure();
  if (failed(checkSize(module, **program)))
    return failure();
  // Runs every callable that can run now, and those that ran before the step and that the program still has.
  std::vector<std::string> own = outermost(**program), names = own;
  for (const auto &[name, tensors] : world.before.runs)
    if ((*program)->findCallable(name) && !llvm::is_contained(names, name))
      names.push_back(name);
  std::string reason;
  FailureOr<Observation> seen = failure();
  {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      reason += (reason.empty() ? "" : "; ") + diagnostic.str();
      return success();
    });
    seen = observe(**program, *world.arithmetic, values, names);
  }
  if (failed(seen)) {
    refuted = true;
    return emitError(module.getLoc()) << "step '" << step << "' breaks the program: " << reason;
  }
  After after{step, module, **program, std::move(*seen)};
  if (failed(examine(world, after))) {
    refuted = true;
    return failure();
  }
  for (auto it = after.seen.runs.begin(); it != after.seen.runs.end();)
    it = llvm::is_contained(own, it->first) ? std::next(it) : after.seen.runs.erase(it);
  world.before = std::move(after.seen);
  return success();
}

/// Compares the tensors of the program before, and checks new tensors.
LogicalResult EquivalenceChecker::examine(const World &world, const After &after) {
  if (failed(compare(world, after)))
    return failure();
  if (!world.isReal)
    return success();
  if (std::string nan = findNaN(after.seen); !nan.empty())
    return after.emitError() << "makes the program compute NaN, in f64: " << nan;
  FailureOr<GradientCounts> gradients = checkNewGradients(after.step, after.module, after.program, values, world.before,
                                                          after.seen, kGradientBound, kRealFloor);
  if (failed(gradients))
    return failure();
  total.gradients += gradients->right;
  total.undecided += gradients->undecided;
  return success();
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

InFlightDiagnostic EquivalenceChecker::After::emitError() const {
  return mlir::emitError(ModuleOp(module).getLoc()) << "step '" << step << "' ";
}

LogicalResult EquivalenceChecker::compare(const World &world, const After &after) {
  // Without an entry of kind init the program states no initial values.
  if (hadInit && failed(compare(world, after, "after initialisation", world.before.initial, after.seen.initial)))
    return failure();
  bool any = false;
  for (const auto &[name, tensors] : world.before.runs) {
    auto run = after.seen.runs.find(name);
    if (run == after.seen.runs.end()) {
      if (entries.count(name))
        return after.emitError() << "removes entry @" << name;
      continue;
    }
    any = true;
    if (failed(compare(world, after, "after @" + name, tensors, run->second)))
      return failure();
  }
  if (!any && !world.before.runs.empty())
    return after.emitError() << "leaves nothing that could be run before it";
  return success();
}

LogicalResult EquivalenceChecker::compare(const World &world, const After &after, const std::string &where,
                                          const SeenTensors &expected, const SeenTensors &actual) {
  auto find = [&](StringRef name) -> const SeenTensor * {
    for (const auto &[key, tensor] : actual)
      if (key == name)
        return &tensor;
    return nullptr;
  };
  for (const auto &[name, tensor] : expected) {
    if (const SeenTensor *now = find(name)) {
      if (failed(compare(world, after, where, *now, tensor.value, "was")))
        return failure();
    } else if (!StringRef(tensor.what).starts_with("accumulator")) {
      return after.emitError() << "removes " << tensor.what << ", seen " << where;
    }
  }
  for (const Variable &variable : after.program.variables())
    if (const SeenTensor *mirror = variable.mirrorOf.empty() ? nullptr : find(variable.name))
      if (const SeenTensor *owner = find(variable.mirrorOf))
        if (failed(compare(world, after, where, *mirror, owner->value, "and in @" + variable.mirrorOf + " is")))
          return failure();
  return success();
}

static std::string indexText(const HostTensor &tensor, size_t element) {
  std::string text;
  for (auto [size, stride] : llvm::zip_equal(tensor.shape, tensor.strides()))
    text += (text.empty() ? "" : ", ") + std::to_string(static_cast<int64_t>(element) / stride % size);
  return "[" + text + "]";
}

static std::string findNaN(const Observation &seen) {
  auto find = [](const SeenTensors &tensors, const std::string &where) -> std::string {
    for (const auto &[name, tensor] : tensors)
      for (auto [index, value] : llvm::enumerate(tensor.value.data))
        if (std::isnan(value))
          return tensor.what + indexText(tensor.value, index) + " " + where;
    return "";
  };
  std::string found = find(seen.initial, "after initialisation");
  for (const auto &[name, tensors] : seen.runs)
    if (found.empty())
      found = find(tensors, "after @" + name);
  return found;
}

LogicalResult EquivalenceChecker::compare(const World &world, const After &after, const std::string &where,
                                          const SeenTensor &tensor, const HostTensor &expected, StringRef relation) {
  const HostTensor &actual = tensor.value;
  auto fails = [&]() -> InFlightDiagnostic {
    return after.emitError() << "changes what is computed: " << where << " " << tensor.what;
  };
  ++total.tensors;
  if (actual.shape != expected.shape)
    return fails() << " has another shape";
  double scale = kRealFloor;
  for (double value : expected.data)
    scale = std::isfinite(value) ? std::max(scale, std::fabs(value)) : scale;
  if (!world.isReal)
    total.elements += expected.count();
  for (auto [index, was, is] : llvm::enumerate(expected.data, actual.data)) {
    if (was == is || (world.isReal && std::fabs(was - is) <= kRealBound * scale))
      continue;
    if (!world.isReal && std::isnan(was) && std::isnan(is)) {
      ++total.undefined;
      continue;
    }
    const char *format = world.isReal ? "%.17g" : "%.0f";
    InFlightDiagnostic diagnostic = fails() << indexText(actual, index) << " is " << numberText(format, is) << " "
                                            << relation << " " << numberText(format, was);
    if (world.isReal)
      return diagnostic << ", in f64; the bound is " << numberText("%.2g", kRealBound * scale);
    return diagnostic << ", modulo " << std::to_string(residues::kPrime) << "; f64 shows no difference beyond rounding";
  }
  return success();
}
