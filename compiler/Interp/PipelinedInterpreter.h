//===- PipelinedInterpreter.h - Reference execution of the programs of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_PIPELINEDINTERPRETER_H
#define BOWLINE_COMPILER_INTERP_PIPELINEDINTERPRETER_H

#include "compiler/Interp/DistributedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"

#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace bowline {

/// Runs the roles of a program (passes/Analysis/Roles.h) together, each on all ranks with its coordinate along the axis
/// of the stages; without stages there is one, on all ranks. Callers see global tensors.
///
/// Works as a timeline is executed: a rank takes the functions of an entry in order. One that does nothing but send or
/// receive is handed to the queue of its channel, which works in order; any other runs before the next is taken. A
/// function waits for those before it that use the slots which it uses, unless both only read. A send ends when the
/// other rank has received, and nothing is buffered in between. So a program that hangs, or that needs more slots than
/// it has, is found out.
class PipelinedInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = Interpreter::Tensors;
  using Arguments = llvm::StringMap<HostTensor>;

  /// `module` is verified and outlives the interpreter; `axis` is that of the stages.
  PipelinedInterpreter(mlir::ModuleOp module, llvm::StringRef axis,
                       const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  /// Runs the entry of kind `init` on every rank.
  llvm::LogicalResult initialize();

  /// A variable of all ranks, as DistributedInterpreter gives it. Fails with a diagnostic where ranks of the pipeline
  /// that both have it do not agree.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  /// Sets a variable on every rank of the pipeline that has it. Fails with a diagnostic where none has.
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);

  /// Runs an entry. `arguments` has the inputs by name; those of several microbatches have a leading dimension. Fails
  /// with a diagnostic where a rank waits forever, naming all that wait, and where ranks return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef entry, const Arguments &arguments);

private:
  /// One value for each rank with one coordinate along the axis of the stages.
  using Values = std::vector<HostTensor>;
  using Slot = std::pair<std::string, int64_t>; // variable, slot

  /// One call of a function.
  struct Task {
    graph::FuncOp function;
    int64_t microbatch = 0;
    std::string queue; ///< the channel of a function that only sends or receives, else empty
    std::vector<Slot> reads, writes;
    mlir::Operation *next = nullptr; ///< the operation to run next; null before the task starts
    DistributedInterpreter::Environments environments;
    bool posted = false; ///< its next operation waits for another rank
    bool done = false;
  };
  struct Rank {
    mlir::ModuleOp module;
    DistributedInterpreter interpreter;
    std::map<Slot, Values> stashes;
    std::list<Task> tasks;
  };
  /// The operands of a collective over the stages that a rank came to, and its results once all came to it.
  struct Meeting {
    mlir::Operation *op = nullptr;
    std::vector<Values> operands;
    std::optional<std::vector<Values>> results;
  };
  using Link = std::tuple<int64_t, int64_t, std::string>; // sender, receiver, channel

  llvm::LogicalResult addTasks(Rank &rank, graph::EntryOp entry, const Arguments &arguments);
  bool mayRun(const Rank &rank, const Task &task) const;
  /// Takes every task of a rank as far as it comes; sets `moved` if one came further.
  llvm::LogicalResult advance(int64_t coordinate, bool &moved);
  llvm::LogicalResult advance(int64_t coordinate, Task &task, bool &moved);
  /// Runs an operation. Returns false where it waits for another rank.
  llvm::FailureOr<bool> execute(int64_t coordinate, Task &task, bool &moved);
  bool send(int64_t coordinate, Task &task, stage::SendOp op, bool &moved);
  llvm::FailureOr<bool> receive(int64_t coordinate, Task &task, stage::ReceiveOp op);
  llvm::FailureOr<bool> meet(int64_t coordinate, Task &task, bool &moved);
  llvm::LogicalResult combine();
  llvm::LogicalResult reportDeadlock();
  llvm::FailureOr<Tensors> results(llvm::StringRef entry);
  bool isOverStages(mlir::Operation *op) const;

  mlir::ModuleOp module;
  std::string axis;
  std::vector<std::unique_ptr<Rank>> ranks; ///< index: coordinate
  std::map<Link, std::vector<Values>> messages;
  std::vector<Meeting> meetings; ///< index: coordinate
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PIPELINEDINTERPRETER_H
