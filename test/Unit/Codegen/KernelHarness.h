//===- KernelHarness.h - Kernels compiled, loaded and compared with their reference
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_CODEGEN_KERNELHARNESS_H
#define BOWLINE_TEST_UNIT_CODEGEN_KERNELHARNESS_H

#include <random>
#include <string>
#include <vector>

#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "dialects/Graph/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "test/Unit/Codegen/GpuEmulator.h"

namespace bowline::test {

using graph::HostTensor;

/// The targets whose code this machine runs.
std::vector<std::string> runnableTargets();

/// 64-byte aligned bytes, followed by a page that traps where they are written or read past their end.
class Buffer {
public:
  explicit Buffer(size_t bytes);
  Buffer(Buffer &&other) noexcept;
  ~Buffer();

  void *data() const { return start; }
  size_t size() const { return bytes; }
  std::vector<char> copy() const;
  void assign(const std::vector<char> &from);

private:
  char *mapping;
  size_t mappingBytes, bytes;
  char *start;
};

/// A module of kernels, their machine code, loaded as the runtime loads it.
class Kernels {
public:
  /// `source` holds func.func operations only. Adds a test failure where it does not compile. `streamedBytes` as in
  /// CpuTarget.
  explicit Kernels(const std::string &source, const std::string &cpu = "native",
                   int64_t streamedBytes = CpuTarget().streamedBytes);
  ~Kernels();

  bool isLoaded() const { return handle != nullptr; }
  mlir::func::FuncOp function(size_t index);
  const KernelInfo &info(size_t index) const { return infos[index]; }
  const std::vector<char> &image() const { return bytes; }

  using Entry = void (*)(void *const *, int64_t, int64_t);
  Entry entry(size_t index) const;

  /// Random values that `type` holds exactly: floats of `scale` times a normal number, integers in [low, high).
  static HostTensor random(mlir::Type type, std::mt19937_64 &generator, double scale = 1, int64_t low = -5,
                           int64_t high = 100);

  /// The reference semantics, in f64.
  std::vector<HostTensor> evaluate(size_t index, const std::vector<HostTensor> &inputs);

  /// Runs ranges that cover the parallel extent, on fresh buffers. Where `inPlace` names a pair, the output is the
  /// input's buffer. Returns the outputs' bytes.
  std::vector<std::vector<char>> run(size_t index, const std::vector<HostTensor> &inputs,
                                     const std::vector<int64_t> &cuts = {},
                                     llvm::ArrayRef<std::pair<int, int>> inPlace = {});

  /// Runs and compares with the reference: |got - want| <= relative * |want| + absolute * max(1, largest |want|). Runs
  /// again in pieces and in place, and compares the bits. Does the same with the code for GPUs.
  void check(size_t index, const std::vector<HostTensor> &inputs, double relative, double absolute);

  /// `check` with random inputs.
  void checkRandom(size_t index, uint64_t seed, double relative, double absolute, double scale = 1);

private:
  /// Outputs of the emulated code for GPUs.
  std::vector<std::vector<char>> runOnGpu(const EmulatedKernel &kernel, size_t index,
                                          const std::vector<HostTensor> &inputs,
                                          llvm::ArrayRef<std::pair<int, int>> inPlace, uint64_t seed);
  void compare(size_t index, const std::vector<std::vector<char>> &outputs, const std::vector<HostTensor> &expected,
               double relative, double absolute);

  mlir::MLIRContext context;
  bool isNative;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<KernelInfo> infos;
  std::vector<char> bytes;
  void *handle = nullptr;
  int file = -1;
};

/// Largest bytes of one tensor of `type` in memory.
size_t bytesOf(mlir::Type type);
void encode(const HostTensor &tensor, mlir::Type type, void *to);
HostTensor decode(const void *from, mlir::Type type);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_CODEGEN_KERNELHARNESS_H
