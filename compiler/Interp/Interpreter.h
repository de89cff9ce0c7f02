//===- Interpreter.h - Reference execution of graph programs -----*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes `graph` programs as the dialect documents them, one operation after the other. Floating-point values are f64
// in every type, or the numbers of another Arithmetic; integers are exact. It is the oracle that gradients, passes and
// executed plans are compared with, and is written to be read, not to be fast. Calls of kernels are executed as the
// operations that they stand for.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_INTERPRETER_H
#define BOWLINE_COMPILER_INTERP_INTERPRETER_H

#include "compiler/Interp/KernelInterpreter.h"
#include "dialects/Graph/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <memory>

namespace bowline {

namespace graph {
class EntryOp;
class FuncOp;
} // namespace graph

class Interpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = llvm::SmallVector<HostTensor>;
  /// The stream of random numbers that initialises a variable, by its symbol name.
  using StreamOf = std::function<uint64_t(llvm::StringRef variable)>;

  /// `module` must be verified; it and the arithmetic outlive the interpreter. Variables have no value yet.
  explicit Interpreter(mlir::ModuleOp module, const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  /// Gives every `graph.param` and `graph.state` its initial value, then runs the entry of kind `init` if the
  /// module has one and `runInit` says so. Values of `#graph.normal` are those of `graph.random` with `seed` and the
  /// variable's stream: its position among the variables of the module, unless `streamOf` says otherwise. A parameter
  /// with `mirror_of` gets the value of the one that it mirrors, and takes no position.
  llvm::LogicalResult initializeVariables(int64_t seed = 0, const StreamOf &streamOf = nullptr, bool runInit = true);

  /// Gives every accumulator its initial value, as before each run of an entry.
  void clearAccumulators();

  /// The value of a variable; null where it does not exist or has no value yet.
  const HostTensor *getVariable(llvm::StringRef name) const;

  /// Fails with a diagnostic where no variable has that name or its type has another shape.
  llvm::LogicalResult setVariable(llvm::StringRef name, HostTensor value);

  /// Runs the `graph.func` or `graph.entry` called `name` and returns its results.
  ///
  /// An entry takes the arguments of its functions one after the other. An argument of a function that is repeated
  /// R > 1 times has a leading dimension of size R, one slice per repetition. Accumulators get their initial value
  /// before the first function. Results are those of the last repetition of the last function.
  ///
  /// Fails with a diagnostic where the arguments do not fit, or at the first operation that has no reference semantics
  /// or no defined result; variables written before it keep their new values.
  llvm::FailureOr<Tensors> run(llvm::StringRef name, llvm::ArrayRef<HostTensor> arguments);

  /// The types of the arguments that `run` expects; fails with a diagnostic where nothing has that name.
  llvm::FailureOr<llvm::SmallVector<mlir::RankedTensorType>> argumentTypes(llvm::StringRef name);

private:
  friend class DistributedInterpreter;
  friend class PipelinedInterpreter;
  using Environment = llvm::DenseMap<mlir::Value, HostTensor>;

  /// Binds `arguments` to the block's, executes it and returns the operands of its terminator.
  llvm::FailureOr<Tensors> runBlock(mlir::Block &body, llvm::ArrayRef<HostTensor> arguments);
  llvm::FailureOr<Tensors> runEntry(graph::EntryOp entry, llvm::ArrayRef<HostTensor> arguments);
  llvm::LogicalResult execute(mlir::Operation *op, Environment &environment);
  graph::FuncOp lookupFunction(llvm::StringRef name);

  mlir::ModuleOp module;
  const graph::Arithmetic *arithmetic;
  mlir::SymbolTable symbols;
  std::shared_ptr<KernelInterpreter> kernels;
  llvm::StringMap<HostTensor> variables;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_INTERPRETER_H
