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

/// Blocks of threads that a kernel is launched with, both in one dimension.
struct KernelGrid {
  int64_t blocks = 1, threads = 1;
  llvm::SmallVector<int64_t, 1> constants = {}; ///< values of the arguments that follow the addresses
};

struct KernelInfo {
  std::string symbol;
  /// The kernel is called on sub-ranges of [0, parallelExtent); 0 where it is launched by grid.
  int64_t parallelExtent = 0;
  /// The grid that the kernel is launched with; none where it is called on ranges.
  std::optional<KernelGrid> grid;
  /// (output index, input index): these two may be exactly the same bytes. Any set of pairs in which no output and no
  /// input occurs twice can be used at once.
  llvm::SmallVector<std::pair<int, int>> inPlace;
};

/// An attribute of a function whose code leaves rows out: the number of its argument whose last element is the number
/// of rows, an i64. All results have these rows. Code generation alone sets the attribute, right before it emits code,
/// from the program's declaration of the kernel.
inline constexpr llvm::StringLiteral kRowCountAttr = "row_count";

/// Collects kernels and compiles them into one image. A kernel is a `func.func` on static tensors; CpuCodegen.h says
/// which operations it may hold.
class KernelCodegen {
public:
  virtual ~KernelCodegen() = default;

  /// Generates code for `kernel`, which is called `symbol` in the image, or as the function is if that is empty. All
  /// kernels come from one context. Fails with a diagnostic where an operation has no code generation, the name is
  /// taken or the target is unknown.
  virtual llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol = "") = 0;

  /// Generates the code that follows a matrix product. Fails with a diagnostic where the target has no such code.
  virtual llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef symbol = "") = 0;

  /// The image: the same bytes for the same kernels, always. Call once, after the last `add`. Empty without code.
  virtual llvm::FailureOr<std::vector<char>> finish() = 0;

  /// The format of the image's bytes, by the name that a plan gives it.
  virtual llvm::StringRef imageFormat() const = 0;
};

/// Fails with a diagnostic unless arguments and results of a kernel are tensors that code can be generated for.
llvm::LogicalResult checkKernelSignature(mlir::func::FuncOp kernel);

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_KERNELCODEGEN_H
