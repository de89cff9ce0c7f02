//===- Gpu/GridPlan.h - Division of a kernel's work among the blocks of a GPU's grid
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_GRIDPLAN_H
#define BOWLINE_COMPILER_CODEGEN_GPU_GRIDPLAN_H

#include "compiler/Codegen/KernelCodegen.h"
#include "compiler/Codegen/Loops/KernelFrame.h"

namespace bowline::codegen {

/// The number of threads in a warp.
inline constexpr int64_t kWarp = 32;

/// Accesses of one thread are this wide at most, in bytes.
inline constexpr int64_t kAccessBytes = 16;

/// The expressions of all values that a nest stores.
SmallVector<const Expr *> rootsOf(const Nest &nest);

/// How many elements along `dim`, which has `size`, a thread of `kernel` computes at once.
int64_t vectorOf(func::FuncOp kernel, ArrayRef<const Expr *> roots, ArrayRef<Nest::Store> stores, unsigned dim,
                 int64_t size);

/// A range of blocks of the grid and its computation, in one of three forms:
///
///   elements    a thread computes a vector of elements of the inner dimension, with reduction loops, or
///               some lanes of a warp do, among which the terms are divided
///   warp rows   a warp computes a unit of the nest: its lanes share the row, and the reductions over it
///   block rows  a block computes a unit of the nest in the same way
struct GridRange {
  enum class Form { Elements, WarpRows, BlockRows };

  const Nest *nest;
  Form form;
  /// The segment that is computed, where the form is Elements.
  unsigned segment = 0;
  /// The number of threads in a block that suits the range best.
  int64_t threads;
  int64_t firstBlock = 0, blocks = 0;
  /// Where the form is Elements: how many elements a thread computes, and how many lanes share the terms of each sum.
  int64_t vector = 1, lanes = 1;
};

/// The blocks of a kernel's grid.
struct GridPlan {
  std::vector<GridRange> ranges;
  /// The number of threads in a block.
  int64_t threads = 32;
  int64_t blocks = 0;
};

/// Gives each of the kernel's nests blocks of its own.
GridPlan planGrid(func::FuncOp kernel, ArrayRef<std::unique_ptr<Nest>> nests);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_GRIDPLAN_H
