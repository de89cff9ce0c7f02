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

/// Runs all roles of a program (passes/Analysis/Roles.h) together: each role on all ranks with its coordinate along the
/// axis of the stages, or a single role on all ranks without stages. Callers pass and get global tensors.
///
/// Follows the timeline of an entry: a rank takes the functions in order. A function that only sends or
/// receives goes to the queue of its channel, which runs in order; any other one runs before the rank takes
/// the next. A function waits for earlier ones that use its slots, unless both only read them. A send ends
/// when the other rank has received; no message is buffered. So the interpreter detects programs that hang or
/// need more slots than they have.
class PipelinedInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = Interpreter::Tensors;
  using Arguments = llvm::StringMap<HostTensor>;

  /// `module` must be verified and outlive the interpreter; `axis` is the axis of the stages, or empty.
  PipelinedInterpreter(mlir::ModuleOp module, llvm::StringRef axis,
                       const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  /// Runs the entry of kind `init` on every rank.
  llvm::LogicalResult initialize();

  /// Returns the global value of a variable, as DistributedInterpreter does. Fails with a diagnostic where pipeline
  /// stages that both hold it disagree.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  /// Sets a variable on every pipeline stage that has it. Fails with a diagnostic if none has it.
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);

  /// Runs an entry. `arguments` are keyed by input name; those of several microbatches have a leading dimension. Fails
  /// with a diagnostic if ranks wait forever, naming all that wait, or if ranks return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef entry, const Arguments &arguments);

private:
  /// One value for each rank with the same coordinate along the axis of the stages.
  using Values = std::vector<HostTensor>;
  using Slot = std::pair<std::string, int64_t>; // variable, slot

  /// One call of a function in the timeline.
  struct Task {
    graph::FuncOp function;
    int64_t microbatch = 0;
    std::string queue; ///< the channel, if the function only sends or receives; else empty
    std::vector<Slot> reads, writes;
    mlir::Operation *next = nullptr; ///< the operation to run next; null before the task starts
    DistributedInterpreter::Environments environments;
    bool posted = false; ///< the next operation waits for another rank
    bool done = false;
  };
  struct Rank {
    mlir::ModuleOp module;
    DistributedInterpreter interpreter;
    std::map<Slot, Values> stashes;
    std::list<Task> tasks;
  };
  /// A collective over the stages: the operands of a rank that has reached it, and the results once all have.
  struct Meeting {
    mlir::Operation *op = nullptr;
    std::vector<Values> operands;
    std::optional<std::vector<Values>> results;
  };
  using Link = std::tuple<int64_t, int64_t, std::string>; // sender, receiver, channel

  llvm::LogicalResult addTasks(Rank &rank, graph::EntryOp entry, const Arguments &arguments);
  bool mayRun(const Rank &rank, const Task &task) const;
  /// Advances every task of a rank as far as possible; sets `moved` if any task advanced.
  llvm::LogicalResult advance(int64_t coordinate, bool &moved);
  llvm::LogicalResult advance(int64_t coordinate, Task &task, bool &moved);
  /// Executes an operation. Returns false if it must wait for another rank.
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
