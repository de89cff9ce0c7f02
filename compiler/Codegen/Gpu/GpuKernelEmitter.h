//===- Gpu/GpuKernelEmitter.h - Nests as threads of a GPU
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H
#define BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H

#include "compiler/Codegen/KernelCodegen.h"
#include "compiler/Codegen/KernelEmitter.h"
#include "mlir/IR/OwningOpRef.h"

namespace bowline::codegen {

/// Builds the function of one kernel for a GPU:
///
///   kernel void SYMBOL(pointer to each input, then to each output)
///
/// for a grid and blocks of one dimension. Each nest has blocks of its own, in one of three forms:
///
///   elements    a thread computes a vector of elements of the inner dimension, with loops over what is reduced, or
///   some
///               lanes of a warp do, between which these loops are divided
///   warp rows   a warp computes a unit of the nest: its lanes share the row, and what is reduced over the row
///   block rows  a block does
///
/// Sums are made in the same order in every run: each thread in strides over the row, then pairs of lanes, then warps
/// (EmitGpuReductions.cpp).
class GpuKernelEmitter : public KernelEmitter {
public:
  GpuKernelEmitter(func::FuncOp kernel, Location loc, const TargetCpu &arithmetic)
      : KernelEmitter(kernel, loc, arithmetic) {}

  llvm::FailureOr<KernelGrid> emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests);

protected:
  SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) override;
  unsigned alignmentOf(const Argument &argument, AffineExpr index) override;

private:
  static constexpr int64_t kWarp = 32;

  enum class Form { Elements, WarpRows, BlockRows };

  /// What a range of blocks computes.
  struct Part {
    const Nest *nest;
    Form form;
    /// Of a nest whose form is Elements: the one segment that this part computes.
    unsigned segment = 0;
    /// Threads of a block that suit it best.
    int64_t threads;
    int64_t firstBlock = 0, blocks = 0;
    /// Of Elements: how many a thread computes, and how many lanes of a warp share the terms of their sums.
    int64_t vector = 1, lanes = 1;
  };

  void addParts(const Nest &planned);
  /// How many lanes share the terms of the sums of one element, so that enough threads have something to do.
  int64_t lanesOfElement(ArrayRef<const Expr *> roots, unsigned inner, int64_t items);
  void placeParts();
  /// `block` counts from the part's first.
  void emitPart(const Part &part, Value block);
  void emitThreadOfElements(const Part &part, Value block);
  void emitRows(const Part &part, Value block);
  void emitUnitRow(const Part &part);
  /// Runs `body` for the vectors of the segment that this thread has.
  void emitSegment(const Nest::Segment &segment, llvm::function_ref<void()> body);

  /// Sums of elements whose terms several lanes share.
  SmallVector<Value> reduceInLanes(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);
  /// Gives `dims` the values of the element with the row-major number `item`.
  void setDims(ArrayRef<unsigned> dims, Value item);

  /// How many elements along `dim`, of `size`, a thread computes at once.
  int64_t vectorOf(ArrayRef<const Expr *> roots, ArrayRef<Nest::Store> stores, unsigned dim, int64_t size);

  using CountedBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;
  SmallVector<Value> emitCounted(Value from, Value to, Value step, ValueRange initial, CountedBody body);
  void emitWhere(Value condition, llvm::function_ref<void()> body);

  /// The same value in all threads that share a row: what each has, combined.
  SmallVector<Value> combineThreads(ArrayRef<const Expr *> group, SmallVector<Value> values, bool ofBlock);
  Value combineLanesOfWarp(const Expr *reduction, Value value);
  Value shuffle(Value value, int64_t distance);
  void barrier();
  /// Of the threads that share a row.
  void emitRowBarrier();
  Value sharedAddress(int64_t slot, Value warp);

  Value intrinsic(StringRef name, Type type, ValueRange operands = {});
  Value i32(int64_t number) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(number)); }
  Value toI64(Value value) { return arith::ExtUIOp::create(b, b.getI64Type(), value); }

  std::vector<Part> parts;
  int64_t blockThreads = 32, blockCount = 0;
  /// This thread in its block, i32, and its lane, warp and number as i64.
  Value thread, lane, warp, threadNumber;
  /// Scopes from the outermost on in which all threads of a block are together, and those in which all of a warp are.
  size_t blockScopes = 0, rowScopes = 0;
  /// Whether a row belongs to a block; otherwise to a warp.
  bool rowOfBlock = false;
  /// Lanes that share terms, where sums in scope `termScope` are concerned, and this one's place among them.
  int64_t termLanes = 1;
  size_t termScope = 0;
  Value termLane;
  /// Values of each warp that combineThreads keeps in shared memory at most.
  int64_t sharedSlots = 0;
  std::string sharedName;
};

/// The threads of one kernel.
struct GpuKernel {
  /// One function, in the dialects that lowerToLLVM takes.
  mlir::OwningOpRef<ModuleOp> module;
  KernelGrid grid;
  /// As in KernelInfo.
  SmallVector<std::pair<int, int>> inPlace;
};

/// The function `symbol` that computes `kernel` on a GPU. Fails with a diagnostic where an operation has no code
/// generation.
llvm::FailureOr<GpuKernel> emitGpuKernel(func::FuncOp kernel, StringRef symbol);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H
