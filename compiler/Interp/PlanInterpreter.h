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

/// Runs the commands of `plan.program` operations on every rank of the mesh, before or after buffers have their places
/// in the arena. Callers see global tensors.
///
/// A rank takes its commands in the order of issue; a communication is over when all its members have come to it. So
/// streams and events count for nothing here: the checker proves that commands may also run in any other order that
/// streams and events allow.
///
/// Memory is as the plan lays it out: a value lies at the bytes of its buffer and slot, and is gone when one of them
/// is written. A read of bytes that hold no element of its size fails. Buffers without a place get bytes of their
/// own.
class PlanInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = llvm::SmallVector<HostTensor>;
  using Inputs = llvm::StringMap<HostTensor>;

  /// `module` holds roles (passes/Analysis/Roles.h), one per coordinate along the axis that they name, and a mesh (of
  /// one rank, if need be). It is verified and outlives the interpreter, as do the other two.
  PlanInterpreter(mlir::ModuleOp module, const KernelBodies &bodies, const graph::Arithmetic &arithmetic);

  /// Fills constants. Fails with a diagnostic where one has no value in this arithmetic.
  llvm::LogicalResult load();

  /// The value of a buffer of parameters or state, by its name, as a checkpoint has it. Fails with a diagnostic where
  /// ranks that hold equal pieces do not agree.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  /// Sets such a buffer on all ranks that have it. Fails with a diagnostic where `value` has not the shape of the whole
  /// tensor, or no rank has the buffer.
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);

  /// Runs an entry, and before any but those of kind `init` the one of kind `prepare`, where there is one
  /// (passes/Analysis/PrepareProgram.h). `inputs` are by name; those of several microbatches have a leading dimension.
  /// Fails with a diagnostic where ranks wait for each other, read unwritten bytes, or return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef entry, const Inputs &inputs);

  int64_t getRankCount() const { return grid.count(); }
  /// The layout of a buffer on the ranks that have it.
  static dist::Layout layoutOf(plan::BufferOp buffer, const RankGrid &grid);

private:
  struct Command {
    mlir::Operation *op = nullptr;
    int64_t slot = 0;
  };
  struct Rank {
    PlanRole *role = nullptr;
    std::optional<PlanMemory> memory; ///< set once the rank has its role
    size_t next = 0;                  ///< index of the next command
  };

  /// The first role's entry of this kind, which names those of all; null where there is none.
  plan::EntryOp findEntry(EntryKind kind) const;
  llvm::FailureOr<Tensors> runEntry(llvm::StringRef entry, const Inputs &inputs);
  static std::vector<Command> expand(plan::ProgramOp program);
  llvm::LogicalResult setInputs(PlanRole &role, plan::EntryOp entry, const Inputs &inputs);
  llvm::FailureOr<Tensors> outputs(llvm::StringRef entry);
  /// Joins the parts of a buffer that all ranks of the role hold into the global tensor.
  llvm::FailureOr<HostTensor> join(PlanRole &role, plan::BufferOp buffer);
  /// Gives each rank of the role its shard of a global tensor, whose shape must be the layout's.
  void divide(PlanRole &role, plan::BufferOp buffer, int64_t slot, const HostTensor &whole);

  /// Runs the rank's next command. Returns false where it waits for another rank.
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
  /// By role, the commands of the entry that is running, its timeline expanded; Rank::next is an index into them.
  std::map<const PlanRole *, std::vector<Command>> commands;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PLANINTERPRETER_H
