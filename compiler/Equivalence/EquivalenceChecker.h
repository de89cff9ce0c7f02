//===- EquivalenceChecker.h - Whether a pass kept the results of a program -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_EQUIVALENCECHECKER_H
#define BOWLINE_COMPILER_EQUIVALENCE_EQUIVALENCECHECKER_H

#include "compiler/Equivalence/Observation.h"
#include "compiler/Interp/ModularArithmetic.h"
#include "mlir/IR/OperationSupport.h"

#include <set>
#include <string>
#include <vector>

namespace bowline {

/// Interprets a program before and after each pass, with equal inputs and equal values of variables, and with all ranks
/// in lockstep. Uses two arithmetics: f64, and integers modulo a prime (ModularArithmetic.h).
///
/// Each tensor of the program before a pass must exist and be equal after it: results of every entry and of every
/// function without an entry, initial values if there is an entry of kind `init`, and the final parameters, optimizer
/// states and gradients, all as whole tensors like those of a checkpoint. In f64, equal means within kRealBound of the
/// tensor's largest element, or of kRealFloor if all are smaller; modulo the prime it means identical. Only gradients
/// may disappear, together with the operations that accumulate them.
///
/// Conversions of floating-point numbers to integers have no meaning modulo the prime. A program with such operations
/// is compared only in f64, and the summary names one of them.
///
/// NaN equals nothing, so that a program which computes NaN in f64 is refused. Modulo the prime some elements have no
/// value; the summary counts those without one on both sides.
///
/// A tensor that a pass adds has no counterpart, with two exceptions. New gradients are compared with central
/// differences of the loss, in f64 within kGradientBound. A mirror of a parameter is compared with the parameter.
class EquivalenceChecker {
public:
  static constexpr double kRealBound = 1e-9, kRealFloor = 1e-3, kGradientBound = 1e-5;
  /// The largest RunnableProgram::work for which programs are interpreted; it takes a few minutes.
  static constexpr double kMaxWork = 1e9;

  struct Summary {
    std::vector<std::string> steps; ///< steps that changed the module without changing results
    int64_t unchanged = 0;          ///< number of steps that did not change the module
    int64_t tensors = 0;            ///< compared pairs of tensors, summed over both arithmetics
    int64_t elements = 0;           ///< elements compared modulo the prime
    int64_t undefined = 0;          ///< of these, pairs that have no value in that arithmetic
    int64_t gradients = 0;          ///< gradients compared with differences of the loss
    int64_t undecided = 0;          ///< gradients that differences could not decide; warnings name them
    std::string unmeant;            ///< an operation because of which nothing is compared modulo the prime; else empty
  };

  EquivalenceChecker() : values(kSeedOfValues) {}

  /// Interprets the program before the first step. Fails with diagnostics if it is too large to interpret, or if the
  /// interpreter fails on the random inputs.
  llvm::LogicalResult begin(mlir::ModuleOp module);

  /// Compares the program after a step with the one before. Fails with a diagnostic at the module that names the step
  /// and the first tensor that differs, an index and both values. The next check compares with this program.
  llvm::LogicalResult check(llvm::StringRef step, mlir::ModuleOp module);

  const Summary &summary() const { return total; }

  /// Returns whether a check failed because a step changed results, and not because interpretation failed.
  bool isRefuted() const { return refuted; }

private:
  static constexpr uint64_t kSeedOfValues = 20261121;

  /// One of the arithmetics, and the observation of the last program in it.
  struct World {
    const graph::Arithmetic *arithmetic;
    bool isReal;
    Observation before;
    bool isLeftOut = false;
  };
  /// The program after a step, with that step.
  struct After {
    llvm::StringRef step;
    mlir::ModuleOp module;
    RunnableProgram &program;
    Observation seen;
    /// Emits a diagnostic at the module that begins with "step 'NAME' ".
    mlir::InFlightDiagnostic emitError() const;
  };

  llvm::LogicalResult check(World &world, llvm::StringRef step, mlir::ModuleOp module);
  llvm::LogicalResult examine(const World &world, const After &after);
  llvm::LogicalResult compare(const World &world, const After &after);
  /// Compares the tensors observed in one place.
  llvm::LogicalResult compare(const World &world, const After &after, const std::string &where,
                              const SeenTensors &expected, const SeenTensors &actual);
  /// Compares one tensor. The message has \p relation, such as "was", between both values.
  llvm::LogicalResult compare(const World &world, const After &after, const std::string &where,
                              const SeenTensor &tensor, const graph::HostTensor &expected, llvm::StringRef relation);

  ObservedValues values;
  KernelBodies bodies;
  ModularArithmetic modular;
  World worlds[2] = {{&graph::Arithmetic::reals(), true, {}}, {&modular, false, {}}};
  std::optional<mlir::OperationFingerPrint> fingerprint;
  /// Names of the last program's entries, and whether one of them was of kind init.
  bool hadInit = false;
  std::set<std::string> entries;
  Summary total;
  bool refuted = false;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_EQUIVALENCECHECKER_H
