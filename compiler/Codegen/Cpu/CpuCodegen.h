//===- CpuCodegen.h - Machine code for regions of graph operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A kernel is a `func.func` on static tensors whose body holds elementwise `arith` and `math` operations (constants
// with one value for all elements included) and graph.{reduce, broadcast, transpose, reshape, slice, pad, concat, iota,
// logistic, silu, gelu, rms_norm, layer_norm, rope, softmax_cross_entropy, softmax_cross_entropy_grad}. It becomes
//
//   extern "C" void SYMBOL(void *const *arguments, int64_t begin, int64_t end);
//
// `arguments` holds the addresses, multiples of 64, of the dense row-major inputs, then of the outputs. i1 is one byte,
// 0 or 1. The caller covers [0, parallelExtent) with disjoint ranges, from any number of threads; results are the same
// bits however it is divided. The code allocates nothing, writes nothing but the outputs and calls nothing but the C
// library's f64 functions cos, erf, exp, log, pow, sin and tanh, which are undefined symbols of the image.
//
// bf16 and f16 are storage types: values are computed in f32 and rounded where they are stored.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_CPU_CPUCODEGEN_H
#define BOWLINE_COMPILER_CODEGEN_CPU_CPUCODEGEN_H

#include "compiler/Codegen/KernelCache.h"
#include "compiler/Codegen/KernelCodegen.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace bowline {

struct CpuTarget {
  /// A name that `targetCpu` knows; "native" is the most that this machine runs.
  std::string cpu = "native";
  /// Where set, the IR of every kernel is printed to it after each stage.
  llvm::raw_ostream *dump = nullptr;
  /// Where set, kernels that are in it are not compiled again.
  std::shared_ptr<KernelCache> cache;
  /// Results of this many bytes or more are written past the caches where that saves reading their lines first. Written
  /// and then read once, a result takes 7 % longer with 8 MiB (beside 32 MiB of third-level cache), and 13 % less time
  /// with 16.
  int64_t streamedBytes = int64_t{16} << 20;
  /// When false, kernels are planned, but no machine code is generated; the results of `add` do not change.
  bool hasCode = true;
};

class CpuCodegen : public KernelCodegen {
public:
  explicit CpuCodegen(CpuTarget target);
  ~CpuCodegen() override;

  llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol = "") override;

  /// Generates the code that follows a matrix product, on one tile of it:
  ///
  ///   extern "C" void SYMBOL(void *const *arguments, const float *tile, int64_t stride,
  ///                          int64_t m0, int64_t m1, int64_t n0, int64_t n1);
  ///
  /// The first argument of `epilogue` is the product, tensor<MxNxf32>; others have the product's shape, one value per
  /// row or column or one value; results have the product's shape; all are f32, bf16 or f16. The body is elementwise,
  /// broadcasts and constants of one value. `arguments` holds the addresses of the other arguments, then of the
  /// results: whole dense row-major tensors. `tile[(m - m0) * stride + n - n0]` is element (m, n) of the product. The
  /// elements with m0 <= m < m1 and n0 <= n < n1 of all results are computed, in f32, and nothing else is read or
  /// written. `inPlace` counts the product as argument 0; `parallelExtent` is the number of rows. Fails with a
  /// diagnostic where the body is not of this form, and where `add` does.
  llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef symbol = "") override;

  /// An ELF shared object with all kernels: the same bytes for the same kernels, always. Call once, after the last
  /// `add`. Empty without code. Fails with a diagnostic where the linker, ld.lld, is missing or fails.
  llvm::FailureOr<std::vector<char>> finish() override;

  llvm::StringRef imageFormat() const override;

  /// The target with "native" resolved; empty if it is unknown.
  llvm::StringRef cpu() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_CPU_CPUCODEGEN_H
