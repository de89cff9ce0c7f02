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

/// The widest memory access of one thread, in bytes.
inline constexpr int64_t kAccessBytes = 16;

/// Returns the expressions of all values that a nest stores.
SmallVector<const Expr *> rootsOf(const Nest &nest);

/// Returns how many elements along `dim`, of size `size`, one thread of `kernel` computes at once.
int64_t vectorOf(func::FuncOp kernel, ArrayRef<const Expr *> roots, ArrayRef<Nest::Store> stores, unsigned dim,
                 int64_t size);

/// A range of blocks of the grid that computes one nest, or one segment of it, in one of three forms:
///
///   elements    a thread computes a vector of elements of the inner dimension, with loops for reductions; or
///               several lanes of a warp compute it and share the terms of each sum
///   warp rows   a warp computes a unit of the nest: its lanes share the row and the reductions over it
///   block rows  a block computes a unit of the nest in the same way
struct GridRange {
  enum class Form { Elements, WarpRows, BlockRows };

  const Nest *nest;
  Form form;
  /// The segment of the nest that the range computes, if the form is Elements.
  unsigned segment = 0;
  /// The number of threads per block that suits the range best.
  int64_t threads;
  int64_t firstBlock = 0, blocks = 0;
  /// If the form is Elements: how many elements a thread computes, and how many lanes share the terms of each sum.
  int64_t vector = 1, lanes = 1;
};

/// The blocks of a kernel's grid.
struct GridPlan {
  std::vector<GridRange> ranges;
  /// The number of threads per block, for all ranges.
  int64_t threads = 32;
  int64_t blocks = 0;
};

/// Plans the grid, with separate blocks for each nest.
GridPlan planGrid(func::FuncOp kernel, ArrayRef<std::unique_ptr<Nest>> nests);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_GRIDPLAN_H
