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
// `arguments` holds the addresses of the inputs, then of the outputs: dense row-major tensors at multiples of 64 bytes.
// An i1 is one byte, 0 or 1. Callers divide [0, parallelExtent) into disjoint ranges, for any number of threads; every
// division gives the same bits. The code allocates nothing, writes only the outputs, and calls only the C library's f64
// functions cos, erf, exp, log, pow, sin and tanh, which the image leaves undefined.
//
// bf16 and f16 are storage types: the code computes in f32 and rounds when it stores.
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
  /// A name for `targetCpu`; "native" is the highest level that this machine runs.
  std::string cpu = "native";
  /// If set, receives the IR of every kernel after each stage.
  llvm::raw_ostream *dump = nullptr;
  /// If set, provides kernels that it has, and stores new ones.
  std::shared_ptr<KernelCache> cache;
  /// Results of at least this many bytes are written with non-temporal stores, where this avoids reading their cache
  /// lines first. For a result that is written and then read once, measurements gave 7 % more time at 8 MiB (with a
  /// third-level cache of 32 MiB), and 13 % less at 16 MiB.
  int64_t streamedBytes = int64_t{16} << 20;
  /// If false, kernels are planned, but no machine code is generated; `add` returns the same results.
  bool hasCode = true;
};

class CpuCodegen : public KernelCodegen {
public:
  explicit CpuCodegen(CpuTarget target);
  ~CpuCodegen() override;

  llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol = "") override;

  /// Generates code that processes one tile of a matrix product:
  ///
  ///   extern "C" void SYMBOL(void *const *arguments, const float *tile, int64_t stride,
  ///                          int64_t m0, int64_t m1, int64_t n0, int64_t n1);
  ///
  /// The first argument of `epilogue` is the product, tensor<MxNxf32>. Other arguments have the product's shape, one
  /// value per row or column, or one value; results have the product's shape. All are f32, bf16 or f16. The body has
  /// elementwise operations, broadcasts and splat constants. `arguments` holds the addresses of the other arguments,
  /// then of the results: whole dense row-major tensors. `tile[(m - m0) * stride + n - n0]` is element (m, n) of the
  /// product. The code computes, in f32, the elements with m0 <= m < m1 and n0 <= n < n1 of all results, and accesses
  /// no others. In the returned info `inPlace` counts the product as argument 0, and `parallelExtent` is the number of
  /// rows. Fails with a diagnostic for other bodies, and where `add` does.
  llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef symbol = "") override;

  /// Returns an ELF shared object with all kernels; equal kernels give equal bytes. Call once, after the last `add`.
  /// Empty without code. Fails with a diagnostic where the linker, ld.lld, is missing or fails.
  llvm::FailureOr<std::vector<char>> finish() override;

  llvm::StringRef imageFormat() const override;

  /// Returns the CPU of the target, with "native" resolved; empty if it is unknown.
  llvm::StringRef cpu() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_CPU_CPUCODEGEN_H
