//===- KernelCodegen.h - Code for regions of graph operations, for any target
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_KERNELCODEGEN_H
#define BOWLINE_COMPILER_CODEGEN_KERNELCODEGEN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// The launch configuration of a GPU kernel: numbers of blocks and of threads per block, both in one dimension.
struct KernelGrid {
  int64_t blocks = 1, threads = 1;
  llvm::SmallVector<int64_t, 1> constants = {}; ///< values of the arguments after the addresses
};

struct KernelInfo {
  std::string symbol;
  /// Callers divide [0, parallelExtent) into ranges and call the kernel on each; 0 if it has a grid.
  int64_t parallelExtent = 0;
  /// The grid with which the kernel is launched; absent if it is called on ranges.
  std::optional<KernelGrid> grid;
  /// Pairs (output index, input index) that may be exactly the same bytes. Callers may combine any pairs in which no
  /// output and no input occurs twice.
  llvm::SmallVector<std::pair<int, int>> inPlace;
};

/// Attribute of a function that computes only the first rows of its results: the index of the i64 argument whose last
/// element is the number of rows. Only code generation sets it, right before it emits code, from the program's
/// declaration of the kernel.
inline constexpr llvm::StringLiteral kRowCountAttr = "row_count";

/// Collects kernels and compiles them into one image. A kernel is a `func.func` on static tensors; CpuCodegen.h lists
/// the supported operations.
class KernelCodegen {
public:
  virtual ~KernelCodegen() = default;

  /// Generates code for `kernel` under the name `symbol`, or under its own name if `symbol` is empty. All kernels must
  /// belong to one context. Fails with a diagnostic where an operation is not supported, the name is taken, or the
  /// target is unknown.
  virtual llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol = "") = 0;

  /// Generates code that processes the result of a matrix product. Fails with a diagnostic if the target has none.
  virtual llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef symbol = "") = 0;

  /// Returns the image; equal kernels give equal bytes. Call once, after the last `add`. Empty without code.
  virtual llvm::FailureOr<std::vector<char>> finish() = 0;

  /// Returns the name of the image's format, as plans state it.
  virtual llvm::StringRef imageFormat() const = 0;
};

/// Fails with a diagnostic unless all arguments and results are tensors for which code can be generated.
llvm::LogicalResult checkKernelSignature(mlir::func::FuncOp kernel);

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_KERNELCODEGEN_H
