//===- Interpreter.h - Reference execution of graph programs -----*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes `graph` programs as the dialect documents them, one operation after the other. All floating-point values are
// f64, or numbers of another Arithmetic; integers are exact. The interpreter is the oracle for gradients, passes and
// executed plans, and is written for clarity, not for speed. It executes calls of kernels as the operations that these
// stand for.
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
  /// Returns the number of the random stream that initialises a variable, given the variable's symbol name.
  using StreamOf = std::function<uint64_t(llvm::StringRef variable)>;

  /// `module` must be verified. It and `arithmetic` must outlive the interpreter. Variables have no value yet.
  explicit Interpreter(mlir::ModuleOp module, const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  /// Sets every `graph.param` and `graph.state` to its initial value. Then, if `runInit`, runs the entry of kind
  /// `init`, if there is one. `#graph.normal` draws like `graph.random` with `seed` and the stream of the variable: its
  /// position among the module's variables, or the result of `streamOf`. A parameter with `mirror_of` gets the value of
  /// the parameter that it mirrors and does not count in positions.
  llvm::LogicalResult initializeVariables(int64_t seed = 0, const StreamOf &streamOf = nullptr, bool runInit = true);

  /// Sets every accumulator to its initial value. Call before each run of an entry.
  void clearAccumulators();

  /// Returns the value of a variable; null if it does not exist or has no value yet.
  const HostTensor *getVariable(llvm::StringRef name) const;

  /// Fails with a diagnostic if there is no variable of that name or its type has another shape.
  llvm::LogicalResult setVariable(llvm::StringRef name, HostTensor value);

  /// Runs the `graph.func` or `graph.entry` called `name` and returns its results.
  ///
  /// The arguments of an entry are those of its functions, one function after the other. If a function is repeated
  /// R > 1 times, its arguments have a leading dimension of size R with one slice per repetition. Accumulators are
  /// reset before the first function. The results are those of the last repetition of the last function.
  ///
  /// Fails with a diagnostic if the arguments do not fit, or at the first operation without reference semantics or
  /// without a defined result. Variables written before that keep their new values.
  llvm::FailureOr<Tensors> run(llvm::StringRef name, llvm::ArrayRef<HostTensor> arguments);

  /// Returns the types of the arguments for `run`. Fails with a diagnostic if no callee has that name.
  llvm::FailureOr<llvm::SmallVector<mlir::RankedTensorType>> argumentTypes(llvm::StringRef name);

private:
  friend class DistributedInterpreter;
  friend class PipelinedInterpreter;
  using Environment = llvm::DenseMap<mlir::Value, HostTensor>;

  /// Binds `arguments` to the arguments of the block, executes it, and returns the operands of its terminator.
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
