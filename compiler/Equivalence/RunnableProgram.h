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
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/HostTensor.h"
#include "dialects/Program/ProgramEnums.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// A copy of a module that one of the reference interpreters can run. The module is one of these:
///
///   - a program on whole tensors, with or without shardings, padding and stages;
///   - one program of local tensors for all ranks, before it is divided into roles: all ranks run in lockstep;
///   - roles (passes/Analysis/Roles.h): all of them run together, in the order of their timelines;
///   - roles with programs of commands on buffers, with or without offsets in the arena. If the commands are written
///     without a module for the role, one is added.
///
/// All values are whole tensors, like those of a checkpoint (dist/Layout.h), so that programs of all kinds compare.
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
    double fill = 0; ///< initial value of all elements; 0 if they are drawn
    /// Whether the entry of kind init, if there is one, sets it. That entry leaves weights alone that are only read.
    bool isInitialised = false;
    std::string mirrorOf; ///< the parameter that this one mirrors; else empty
    std::string of;       ///< the parameter that a gradient or optimizer state belongs to; else empty
    CheckedData data;     ///< bounds of the elements

    bool has(StateFlags flag) const { return bitEnumContainsAny(flags, flag); }
  };
  struct Input {
    std::string name;
    std::vector<int64_t> shape;
    mlir::Type element;
    CheckedData data;                       ///< bounds of the elements
    std::optional<SequenceInput> sequences; ///< the promise about sequences that the input is part of
    bool isLabels = false;                  ///< elements may be negative, which means no label
    int64_t microbatches = 1;               ///< if several: the size of the first dimension, which they form
  };
  struct Callable {
    std::string name;
    bool isEntry = true;
    bool isCalled = false;                   ///< a function that entries call
    std::optional<graph::FunctionPart> part; ///< the part of a step that a function is; absent for entries
    std::vector<Input> inputs;
    std::vector<std::string> results;
  };

  virtual ~RunnableProgram();

  /// Returns whether the types in `module` are local ones, of the shards of one rank.
  static bool isLocal(mlir::ModuleOp module);
  /// Returns the functions that `entry` calls, each once per call.
  static llvm::SmallVector<graph::FuncOp> functionsOf(graph::EntryOp entry);

  /// All variables except stashes, in the order of the module.
  llvm::ArrayRef<Variable> variables() const { return allVariables; }
  /// All entries except the initialisation, and the functions of a program without roles.
  llvm::ArrayRef<Callable> callables() const { return allCallables; }
  const Variable *findVariable(llvm::StringRef name) const;
  const Callable *findCallable(llvm::StringRef name) const;
  const Callable *findCallable(graph::FunctionPart part) const;
  bool hasInit() const { return initialises; }

  /// Elements and arithmetic operations that one run of every callable and of initialize() computes on all ranks.
  double work() const { return totalWork; }

  /// Sets variables to their initial values: runs the entry of kind `init`, or sets zeros if there is none.
  llvm::LogicalResult initialize();
  virtual llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name) = 0;
  virtual llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value) = 0;
  virtual llvm::FailureOr<llvm::SmallVector<HostTensor>> run(llvm::StringRef name, const Inputs &inputs) = 0;

protected:
  /// Quantised blocks have f16 scales. Limits their bytes to values for which no scale is an infinity or NaN.
  static void restrictBytes(Variable &variable) {
    constexpr int64_t kBytes = 60;
    if (variable.element.isUnsignedInteger(8))
      variable.data.restrict({kBytes, std::nullopt});
  }

  explicit RunnableProgram(mlir::OwningOpRef<mlir::ModuleOp> module) : module(std::move(module)) {}

  /// Runs the entry of kind `init`, which must exist.
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
