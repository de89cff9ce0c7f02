//===- TemporaryBlocks.h - The temporary memory of a program, and its size in an arena
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_TEMPORARYBLOCKS_H
#define BOWLINE_PASSES_ANALYSIS_TEMPORARYBLOCKS_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/ArenaPacker.h"

namespace bowline {

/// The bytes of all slots of a buffer together, at least one, rounded up to the buffer's alignment and to the alignment
/// of the module's device.
int64_t alignedBytes(plan::BufferOp buffer);

/// Returns whether a buffer is neither temporary nor scratch, so that it shares memory with no other buffer.
bool isPersistent(plan::BufferOp buffer);

/// The temporary memory of one program in one memory space. Buffers that alias by in-place commands form one block.
class TemporaryBlocks {
public:
  TemporaryBlocks(plan::ProgramOp program, mlir::SymbolTable &symbols,
                  plan::MemorySpace space = plan::MemorySpace::Device);

  /// Finds a place for every block.
  PackedArena pack();

  /// Finds a place for every block, and sets the buffers' offsets to these places, counted from `base`.
  PackedArena place(int64_t base);

private:
  void takeOver(plan::LaunchOp launch, plan::KernelOp kernel, int64_t position);
  void takeOver(plan::CollectiveOp allReduce, int64_t position);
  /// Merges the blocks of an output that begins and an input that ends at `position`. `taken` has the blocks that
  /// outputs of this command have already.
  void merge(mlir::Value output, mlir::Value input, int64_t position, llvm::DenseSet<size_t> &taken);

  Lifetimes lifetimes;
  llvm::MapVector<mlir::Value, size_t> blockOf;
  std::vector<MemoryBlock> blocks;
};

/// The size in bytes of the device arena that pack-arena would make for the module in its present form. May exceed it
/// by the padding behind the last buffer.
int64_t arenaBytes(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_TEMPORARYBLOCKS_H
