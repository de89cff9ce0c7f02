//===- ProgramBuilder.h - Programs of commands from functions on values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SCHEDULING_PROGRAMBUILDER_H
#define BOWLINE_PASSES_SCHEDULING_PROGRAMBUILDER_H

#include "dialects/Dist/Layout.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace bowline {

/// Builds a module's plan buffers and programs from functions that hold only kernel calls, reads, writes, reshapes and
/// collectives along leading dimensions.
class ProgramBuilder {
public:
  explicit ProgramBuilder(mlir::ModuleOp module);

  /// Builds a persistent buffer and a plan.state for each parameter and persistent state. Fails with a diagnostic at a
  /// variable whose attributes contradict each other.
  llvm::LogicalResult buildVariables();

  /// Builds the program and the plan.entry of a graph.entry. Fails with a diagnostic at an operation without a command.
  llvm::LogicalResult buildEntry(graph::EntryOp entry);

private:
  /// Buffers of one program, by value and by accumulator.
  struct ProgramState {
    plan::ProgramOp program;
    std::string name;
    llvm::DenseMap<mlir::Value, mlir::Value> bufferOf;
    llvm::StringMap<mlir::Value> accumulators;
    llvm::SmallVector<std::string> streams = {"compute"};
    llvm::SmallVector<mlir::Value> inputs;
    llvm::SmallVector<std::string> inputNames;
    llvm::SmallVector<int64_t> inputLimits;
    llvm::SmallVector<mlir::Value> outputs;
    llvm::SmallVector<std::string> outputNames;
  };

  mlir::Value createBuffer(mlir::Location loc, const llvm::Twine &name, plan::BufferKind kind,
                           mlir::RankedTensorType type, int64_t slots = 1, plan::LayoutAttr layout = {});
  mlir::Value variableBuffer(ProgramState &state, llvm::StringRef symbol);
  /// Creates an input buffer for each argument. With \p share, an argument uses the input that an argument of another
  /// function with the same name has already.
  void bindArguments(ProgramState &state, graph::FuncOp function, int64_t repeat, bool share);
  void moveToChannel(ProgramState &state, plan::SegmentOp segment);
  llvm::StringRef channelOf(llvm::StringRef name);
  mlir::Value bindReceived(ProgramState &state, mlir::OpResult result);
  llvm::LogicalResult buildSegment(ProgramState &state, graph::FuncOp function);
  llvm::LogicalResult buildCommand(ProgramState &state, mlir::OpBuilder &commands, mlir::Operation *op);
  void buildCall(ProgramState &state, mlir::OpBuilder &commands, plan::CallOp call);
  void buildRead(ProgramState &state, mlir::OpBuilder &commands, graph::ReadOp read);
  void buildConstant(ProgramState &state, mlir::Operation *constant);
  void buildCoordinate(ProgramState &state, dist::CoordinateOp coordinate);
  void buildCollective(ProgramState &state, mlir::OpBuilder &commands, dist::Collective op);
  llvm::StringRef communicatorAlong(mlir::ArrayAttr axes);
  void buildOutputs(ProgramState &state, graph::FuncOp function, plan::SegmentOp segment);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  /// New buffers go before this marker: after all older ones, before the programs.
  mlir::Operation *firstFunction;
  llvm::StringMap<mlir::Value> variables;
  /// The writes of each variable in the block of the last read.
  llvm::StringMap<llvm::SmallVector<graph::WriteOp, 1>> writes;
  mlir::Block *writesBlock = nullptr;
  /// Buffers of coordinates, and communicators, by their axes.
  llvm::DenseMap<mlir::ArrayAttr, mlir::Value> coordinates;
  llvm::DenseMap<mlir::ArrayAttr, plan::CommunicatorOp> communicators;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SCHEDULING_PROGRAMBUILDER_H
