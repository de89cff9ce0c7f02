//===- RunnableProgram.h - A program of any phase, seen from outside -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_RUNNABLEPROGRAM_H
#define BOWLINE_COMPILER_EQUIVALENCE_RUNNABLEPROGRAM_H

#include "compiler/Equivalence/CheckedData.h"
#include "compiler/Equivalence/SequenceInputs.h"
#include "compiler/Interp/KernelBodies.h"
#include "dialects/Graph/Arithmetic.h"
#include "dialects/Graph/GraphAttrs.h"
#include "dialects/Graph/HostTensor.h"
#include "dialects/Program/ProgramEnums.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// A copy of a module that the reference interpreters can run, whichever of these it is:
///
///   - a program on whole tensors, with or without shardings, padding and stages;
///   - the program of every rank, on local tensors, before it is a role: all ranks run in lockstep;
///   - roles (passes/Analysis/Roles.h): all of them run together, in the order of their timelines;
///   - roles that are programs of commands on buffers, with or without places in the arena. Without a module of their
///     own, as people write them, they are put into one.
///
/// All values are whole tensors as a checkpoint has them (dist/Layout.h), so that programs of different kinds compare.
class RunnableProgram {
public:
  using HostTensor = graph::HostTensor;
  using Inputs = llvm::StringMap<HostTensor>;

  struct Variable {
    std::string name;
    StateFlags flags = StateFlags::None;
    bool isAccumulator = false;
    std::vector<int64_t> shape;
    mlir::Type element;
    double fill = 0; ///< initial value of all elements, 0 where they are drawn
    /// Whether the entry of kind init sets it, if there is one: weights that are only read it leaves alone.
    bool isInitialised = false;
    std::string mirrorOf; ///< the parameter whose value it has at all times, else empty
    std::string of;       ///< the parameter whose gradient or optimizer state it is, else empty
    CheckedData data;     ///< bounds of its elements

    bool has(StateFlags flag) const { return bitEnumContainsAny(flags, flag); }
  };
  struct Input {
    std::string name;
    std::vector<int64_t> shape;
    mlir::Type element;
    CheckedData data;                       ///< bounds of its elements
    std::optional<SequenceInput> sequences; ///< the promise that its elements keep together with other inputs
    bool isLabels = false;                  ///< may be negative, which means none
    int64_t microbatches = 1;               ///< these are the first dimension where there are several
  };
  struct Callable {
    std::string name;
    bool isEntry = true;
    bool isCalled = false;                   ///< a function that is run by entries
    std::optional<graph::FunctionPart> part; ///< which part of a step a function is; none for entries
    std::vector<Input> inputs;
    std::vector<std::string> results;
  };

  /// Arithmetic and bodies outlive the program; the latter have learned the module. Fails with a diagnostic at the
  /// module where the interpreters have no meaning for it.
  static llvm::FailureOr<std::unique_ptr<RunnableProgram>> create(mlir::ModuleOp module, const KernelBodies &bodies,
                                                                  const graph::Arithmetic &arithmetic);
  virtual ~RunnableProgram();

  /// Everything but stashes, in the order of the module.
  llvm::ArrayRef<Variable> variables() const { return allVariables; }
  /// Entries, and the functions of a program that is not in roles; without the initialisation.
  llvm::ArrayRef<Callable> callables() const { return allCallables; }
  const Variable *findVariable(llvm::StringRef name) const;
  const Callable *findCallable(llvm::StringRef name) const;
  const Callable *findCallable(graph::FunctionPart part) const;
  bool hasInit() const { return initialises; }

  /// Elements computed and arithmetic operations of one run of each callable and of the initialisation, on all ranks.
  double work() const { return totalWork; }

  /// Gives variables their initial values: those of the entry of kind `init`; without it, zeros.
  llvm::LogicalResult initialize();
  virtual llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name) = 0;
  virtual llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value) = 0;
  virtual llvm::FailureOr<llvm::SmallVector<HostTensor>> run(llvm::StringRef name, const Inputs &inputs) = 0;

protected:
  /// Bytes of blocks of bits have scales in f16, which are to be numbers: bytes below this are no infinity and no NaN.
  static void restrictBytes(Variable &variable) {
    constexpr int64_t kBytes = 60;
    if (variable.element.isUnsignedInteger(8))
      variable.data.restrict({kBytes, std::nullopt});
  }

  explicit RunnableProgram(mlir::OwningOpRef<mlir::ModuleOp> module) : module(std::move(module)) {}

  /// Runs the entry of kind `init`, which is there.
  virtual llvm::LogicalResult runInit() = 0;

  void addVariables(mlir::ModuleOp of);
  void addCallables(mlir::ModuleOp of, bool functionsToo);
  double workOf(mlir::ModuleOp of) const;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Variable> allVariables;
  std::vector<Callable> allCallables;
  bool initialises = false;
  double totalWork = 0;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_RUNNABLEPROGRAM_H
