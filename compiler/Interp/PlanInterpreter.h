//===- PlanInterpreter.h - Reference execution of plan programs --*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_PLANINTERPRETER_H
#define BOWLINE_COMPILER_INTERP_PLANINTERPRETER_H

#include "compiler/Interp/KernelBodies.h"
#include "compiler/Interp/KernelInterpreter.h"
#include "compiler/Interp/PlanMemory.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <memory>
#include <optional>

namespace bowline {

/// Executes the commands of `plan.program` operations on every rank of the mesh, before or after buffers have offsets
/// in the arena. Callers pass and get global tensors.
///
/// A rank executes its commands in the order of issue, and a communication ends when all its members have reached it.
/// So streams and events are ignored here: the checker proves that every other order that these allow gives the same
/// values.
///
/// Memory is laid out as in the plan: a value lies at the bytes of its buffer and slot, and a write to any of
/// these bytes destroys it. Reading bytes that hold no element of the right size fails. Buffers without
/// offsets get bytes of their own.
class PlanInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = llvm::SmallVector<HostTensor>;
  using Inputs = llvm::StringMap<HostTensor>;

  /// `module` must contain a mesh (of one rank, if need be) and roles (passes/Analysis/Roles.h), one per coordinate
  /// along the axis that they name. It must be verified and, like `bodies` and `arithmetic`, outlive the interpreter.
  PlanInterpreter(mlir::ModuleOp module, const KernelBodies &bodies, const graph::Arithmetic &arithmetic);

  /// Fills constants. Fails with a diagnostic if the arithmetic cannot represent one.
  llvm::LogicalResult load();

  /// Returns the global value of a parameter or state, given the name of its buffer. Fails with a diagnostic where
  /// ranks that should hold equal pieces disagree.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  /// Sets a parameter or state on all ranks that have it. Fails with a diagnostic if `value` lacks the global shape or
  /// no rank has the buffer.
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);

  /// Runs an entry. Before any entry other than those of kind `init`, runs the one of kind `prepare`, if there is one
  /// (passes/Analysis/PrepareProgram.h). `inputs` are keyed by name; those of several microbatches have a leading
  /// dimension. Fails with a diagnostic if ranks wait forever, read unwritten bytes, or return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef entry, const Inputs &inputs);

  int64_t getRankCount() const { return grid.count(); }
  /// Returns the layout of a buffer on the ranks of `grid`.
  static dist::Layout layoutOf(plan::BufferOp buffer, const RankGrid &grid);

private:
  struct Command {
    mlir::Operation *op = nullptr;
    int64_t slot = 0;
  };
  struct Rank {
    PlanRole *role = nullptr;
    std::optional<PlanMemory> memory; ///< set once the rank's role is known
    size_t next = 0;                  ///< index of the next command
  };

  /// Returns the first role's entry of this kind, whose name all roles use; null if there is none.
  plan::EntryOp findEntry(EntryKind kind) const;
  llvm::FailureOr<Tensors> runEntry(llvm::StringRef entry, const Inputs &inputs);
  static std::vector<Command> expand(plan::ProgramOp program);
  llvm::LogicalResult setInputs(PlanRole &role, plan::EntryOp entry, const Inputs &inputs);
  llvm::FailureOr<Tensors> outputs(llvm::StringRef entry);
  /// Joins the parts of a buffer on all ranks of the role into the global tensor.
  llvm::FailureOr<HostTensor> join(PlanRole &role, plan::BufferOp buffer);
  /// Writes each rank's shard of a global tensor, which must have the global shape of the buffer's layout.
  void divide(PlanRole &role, plan::BufferOp buffer, int64_t slot, const HostTensor &whole);

  /// Executes the rank's next command. Returns false if it must wait for another rank.
  llvm::FailureOr<bool> step(int64_t rank);
  llvm::LogicalResult launch(Rank &rank, plan::LaunchOp op, int64_t slot);
  llvm::FailureOr<bool> collect(int64_t rank, plan::CollectiveOp op);
  llvm::FailureOr<bool> transfer(int64_t rank, plan::SendOp op);
  llvm::SmallVector<mlir::StringAttr> axesOf(const Rank &rank, llvm::StringRef communicator) const;
  const Command *head(int64_t rank) const;
  llvm::LogicalResult reportDeadlock();

  mlir::ModuleOp module;
  const KernelBodies &bodies;
  const graph::Arithmetic *arithmetic;
  KernelInterpreter kernels;
  RankGrid grid;
  std::vector<std::unique_ptr<PlanRole>> roles;
  std::vector<Rank> ranks;
  /// By role: the commands of the running entry with segment calls expanded. Rank::next is an index into them.
  std::map<const PlanRole *, std::vector<Command>> commands;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PLANINTERPRETER_H
