//===- ValidRowsTest.cpp - Kernels that leave rows out
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr char kGuard = static_cast<char>(0xA5);

/// A kernel as a fusion becomes it: `rows` are the numbers of its count and of the inputs with rows.
struct RowKernel {
  std::string source;
  std::vector<int64_t> rows;
};

/// silu(x) * u in `element`, and the same rounded.
RowKernel gated(int64_t rows, int64_t columns, const char *element) {
  std::string type = formatv("tensor<{0}x{1}x{2}>", rows, columns, element);
  return {formatv(R"(func.func @gated(%x: {0}, %u: {0}, %n: tensor<4xi32>) -> ({0}, {0})
                     attributes {{row_count = 2 : i64} {{
    %s = graph.silu %x : {0}
    %y = arith.mulf %s, %u : {0}
    %z = arith.addf %y, %x : {0}
    return %y, %z : {0}, {0}
  })",
                  type),
          {2, 0, 1}};
}

/// A norm of each row, with a scale that all rows share.
RowKernel norm(int64_t rows, int64_t columns) {
  return {formatv(R"(func.func @norm(%n: tensor<1xi32>, %x: tensor<{0}x{1}xf32>, %w: tensor<{1}xf32>)
                     -> tensor<{0}x{1}xf32> attributes {{row_count = 0 : i64} {{
    %squares = arith.mulf %x, %x : tensor<{0}x{1}xf32>
    %sum = graph.reduce sum %squares dims [1] : (tensor<{0}x{1}xf32>) -> tensor<{0}xf32>
    %one = arith.constant dense<1.0> : tensor<{0}xf32>
    %more = arith.addf %sum, %one : tensor<{0}xf32>
    %root = math.rsqrt %more : tensor<{0}xf32>
    %along = graph.broadcast %root dims [0] : (tensor<{0}xf32>) -> tensor<{0}x{1}xf32>
    %scaled = arith.mulf %x, %along : tensor<{0}x{1}xf32>
    %scale = graph.broadcast %w dims [1] : (tensor<{1}xf32>) -> tensor<{0}x{1}xf32>
    %y = arith.mulf %scaled, %scale : tensor<{0}x{1}xf32>
    return %y : tensor<{0}x{1}xf32>
  })",
                  rows, columns),
          {0, 1}};
}

/// Rows of three dimensions, one of which is read in another order: such a kernel would be tiled.
RowKernel turned(int64_t rows, int64_t a, int64_t b) {
  return {formatv(R"(func.func @turned(%x: tensor<{0}x{1}x{2}xf32>, %n: tensor<2xi32>) -> tensor<{0}x{2}x{1}xf32>
                     attributes {{row_count = 1 : i64} {{
    %y = graph.transpose %x perm [0, 2, 1] : (tensor<{0}x{1}x{2}xf32>) -> tensor<{0}x{2}x{1}xf32>
    %z = arith.addf %y, %y : tensor<{0}x{2}x{1}xf32>
    return %z : tensor<{0}x{2}x{1}xf32>
  })",
                  rows, a, b),
          {1, 0}};
}

/// Arguments of which the rows behind the count do not exist: whoever touches them meets a page that traps, or bytes
/// that are compared afterwards.
class Truncated {
public:
  Truncated(mlir::FunctionType type, llvm::ArrayRef<int64_t> withRows, const std::vector<HostTensor> &inputs,
            int64_t valid)
      : type(type) {
    for (auto [number, inputType] : llvm::enumerate(type.getInputs())) {
      std::vector<char> bytes(bytesOf(inputType));
      encode(inputs[number], inputType, bytes.data());
      if (llvm::is_contained(withRows.drop_front(), static_cast<int64_t>(number)))
        bytes.resize(validBytes(inputType, valid));
      buffers.emplace_back(bytes.size());
      buffers.back().assign(bytes);
    }
    for (mlir::Type result : type.getResults()) {
      buffers.emplace_back(validBytes(result, valid));
      std::vector<char> guard(buffers.back().size(), kGuard);
      buffers.back().assign(guard);
    }
    for (Buffer &buffer : buffers)
      addresses.push_back(buffer.data());
  }

  static size_t validBytes(mlir::Type type, int64_t valid) {
    int64_t rows = mlir::cast<mlir::RankedTensorType>(type).getDimSize(0);
    return bytesOf(type) / rows * std::clamp<int64_t>(valid, 0, rows);
  }

  std::vector<std::vector<char>> results() const {
    std::vector<std::vector<char>> results;
    for (const Buffer &buffer : llvm::drop_begin(buffers, type.getNumInputs()))
      results.push_back(buffer.copy());
    return results;
  }

  void expectRowsOf(const std::vector<std::vector<char>> &whole) const {
    for (auto [got, all] : llvm::zip_equal(results(), whole))
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
  }

  std::vector<void *> addresses;

private:
  mlir::FunctionType type;
  std::vector<Buffer> buffers;
};

void checkRows(const RowKernel &kernel, uint64_t seed) {
  SCOPED_TRACE(kernel.source);
  Kernels kernels(kernel.source);
  ASSERT_TRUE(kernels.isLoaded());
  mlir::func::FuncOp function = kernels.function(0);
  int64_t rows = mlir::cast<mlir::RankedTensorType>(function.getResultTypes()[0]).getDimSize(0);
  std::mt19937_64 generator(seed);
  std::vector<HostTensor> inputs;
  for (mlir::Type type : function.getArgumentTypes())
    inputs.push_back(Kernels::random(type, generator));
  auto setCount = [&](int64_t count) { inputs[kernel.rows[0]].data.back() = static_cast<double>(count); };
  // All rows: as the reference has them, on processors and GPUs.
  setCount(rows);
  kernels.check(0, inputs, 1e-2, 1e-2);
  auto whole = kernels.run(0, inputs);
  EmulatedKernel onGpu(function);
  ASSERT_TRUE(onGpu.isLoaded());
  Truncated all(function.getFunctionType(), kernel.rows, inputs, rows);
  onGpu.run(all.addresses, seed);
  std::vector<std::vector<char>> wholeOnGpu = all.results();
  int64_t extent = kernels.info(0).parallelExtent;
  for (int64_t count : {int64_t{0}, int64_t{1}, rows / 20, rows / 2, rows - 1, rows, rows + 1, int64_t{-1},
                        int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    SCOPED_TRACE(count);
    setCount(count);
    Truncated onCpu(function.getFunctionType(), kernel.rows, inputs, count);
    int64_t cut = std::uniform_int_distribution<int64_t>(0, extent)(generator);
    kernels.entry(0)(onCpu.addresses.data(), cut, extent);
    kernels.entry(0)(onCpu.addresses.data(), 0, cut);
    onCpu.expectRowsOf(whole);
    Truncated emulated(function.getFunctionType(), kernel.rows, inputs, count);
    onGpu.run(emulated.addresses, seed);
    emulated.expectRowsOf(wholeOnGpu);
  }
}

TEST(ValidRows, Elementwise) {
  // Rows of a part of a vector, of several blocks, and of bytes that end with a page.
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{40, 3}, {33, 24}, {20, 1000}, {64, 64}, {3, 40000}})
    for (const char *element : {"f32", "bf16"})
      checkRows(gated(rows, columns, element), 1);
}

TEST(ValidRows, Norms) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{40, 7}, {24, 64}, {9, 3000}, {300, 16}})
    checkRows(norm(rows, columns), 2);
}

TEST(ValidRows, RowsThatAreReadInAnotherOrder) {
  for (auto [rows, a, b] : {std::array<int64_t, 3>{40, 7, 5}, {12, 32, 48}, {5, 64, 4}})
    checkRows(turned(rows, a, b), 3);
}

} // namespace
