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

/// Interprets a program before and after each pass, all ranks in lockstep, on equal inputs and equal values of
/// variables, in two arithmetics: f64, and whole numbers modulo a prime (ModularArithmetic.h).
///
/// A tensor of the program before a pass must be in the program after it, and be equal: initial values, where the
/// program has an entry of kind `init`, results of every entry and of every function without an entry, and the
/// parameters, optimizer states and gradients that it leaves, each as the whole tensor that a checkpoint would have. In
/// f64 equal means: within kRealBound of the tensor's largest element, or of kRealFloor where all are smaller. Modulo
/// the prime it means equal. Only gradients may disappear, with the operations that accumulate them.
///
/// An operation that converts numbers to whole ones has no meaning modulo the prime. A program with such operations is
/// compared in f64 alone, and the summary names one.
///
/// NaN equals nothing: a program that computes NaN in f64 is refused, because nothing could be said about it. Modulo
/// the prime some elements have no value; the summary counts those that have none on both sides.
///
/// A tensor that a pass adds has nothing to be equal to, with two exceptions. Gradients that appear are compared with
/// central differences of the loss, in f64 within kGradientBound. A mirror of a parameter has the parameter's value.
class EquivalenceChecker {
public:
  static constexpr double kRealBound = 1e-9, kRealFloor = 1e-3, kGradientBound = 1e-5;
  /// The largest RunnableProgram::work of a program that is interpreted; it takes a few minutes.
  static constexpr double kMaxWork = 1e9;

  struct Summary {
    std::vector<std::string> steps; ///< steps that changed the module, and nothing that can be seen
    int64_t unchanged = 0;          ///< steps that left the module as it was
    int64_t tensors = 0;            ///< pairs that were compared, in either arithmetic
    int64_t elements = 0;           ///< elements that were compared modulo the prime
    int64_t undefined = 0;          ///< of these, pairs that have no value there
    int64_t gradients = 0;          ///< gradients that were compared with differences
    int64_t undecided = 0;          ///< gradients that could not be, which warnings name
    std::string unmeant;            ///< an operation for which nothing was compared modulo the prime; else empty
  };

  EquivalenceChecker() : values(kSeedOfValues) {}

  /// Takes the program before the first step. Fails with diagnostics if the program is too large to interpret, or if
  /// the interpreter fails on the random inputs.
  llvm::LogicalResult begin(mlir::ModuleOp module);

  /// Checks the program after a step. Fails with a diagnostic at the module that names the step and the first tensor
  /// that differs, with an index and both values. The next check compares with this program.
  llvm::LogicalResult check(llvm::StringRef step, mlir::ModuleOp module);

  const Summary &summary() const { return total; }

  /// Whether a check failed because a step changed the program, rather than because it could not be interpreted.
  bool isRefuted() const { return refuted; }

private:
  static constexpr uint64_t kSeedOfValues = 20261121;

  /// One arithmetic, with the observation of the last program in it.
  struct World {
    const graph::Arithmetic *arithmetic;
    bool isReal;
    Observation before;
    bool isLeftOut = false;
  };
  /// A program after a step, and the step.
  struct After {
    llvm::StringRef step;
    mlir::ModuleOp module;
    RunnableProgram &program;
    Observation seen;
    /// A diagnostic at the module that begins with "step 'NAME' ".
    mlir::InFlightDiagnostic emitError() const;
  };

  llvm::LogicalResult check(World &world, llvm::StringRef step, mlir::ModuleOp module);
  llvm::LogicalResult examine(const World &world, const After &after);
  llvm::LogicalResult compare(const World &world, const After &after);
  /// Compares the tensors that were seen in one place.
  llvm::LogicalResult compare(const World &world, const After &after, const std::string &where,
                              const SeenTensors &expected, const SeenTensors &actual);
  /// Compares one tensor. \p relation stands between the values in the message, as in "was".
  llvm::LogicalResult compare(const World &world, const After &after, const std::string &where,
                              const SeenTensor &tensor, const graph::HostTensor &expected, llvm::StringRef relation);

  ObservedValues values;
  KernelBodies bodies;
  ModularArithmetic modular;
  World worlds[2] = {{&graph::Arithmetic::reals(), true, {}}, {&modular, false, {}}};
  std::optional<mlir::OperationFingerPrint> fingerprint;
  /// Whether the last program had an entry of kind init, and the names of its entries.
  bool hadInit = false;
  std::set<std::string> entries;
  Summary total;
  bool refuted = false;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_EQUIVALENCECHECKER_H
