//===- EpilogueTest.cpp - Epilogues of matrix products, computed tile by tile
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/LowerToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/Support/FormatVariadic.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

using Tile = void (*)(void *const *, const float *, int64_t, int64_t, int64_t, int64_t, int64_t);

struct Range {
  int64_t begin, end;
};

/// One epilogue, compiled and loaded. The same body as an ordinary kernel is its reference.
class Epilogue {
public:
  Epilogue(const std::string &source, const std::string &cpu) : reference(source, cpu) {
    if (!reference.isLoaded())
      return;
    CpuCodegen codegen({.cpu = cpu});
    auto added = codegen.addEpilogue(reference.function(0), "tile");
    auto image = mlir::succeeded(added) ? codegen.finish() : llvm::FailureOr<std::vector<char>>(mlir::failure());
    if (mlir::failed(image)) {
      ADD_FAILURE() << "no code for\n" << source;
      return;
    }
    info = *added;
    int fd = memfd_create("epilogue", MFD_CLOEXEC);
    EXPECT_EQ(write(fd, image->data(), image->size()), static_cast<ssize_t>(image->size()));
    // A number of its own: the reference was loaded under the name that the first free one gives.
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    close(fd);
    handle = dlopen(("/proc/self/fd/" + std::to_string(own)).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(own);
    if (handle)
      run = reinterpret_cast<Tile>(dlsym(handle, "tile"));
    EXPECT_TRUE(run) << dlerror();
  }
  ~Epilogue() {
    if (handle)
      dlclose(handle);
  }

  /// The outputs after the tiles rows x columns, each from a buffer of its own with rows further apart than they are
  /// long; bytes outside of the tiles are 0xA5. With `inPlace`, all pairs that can be at once.
  std::vector<std::vector<char>> outputs(const std::vector<HostTensor> &inputs, const std::vector<Range> &rows,
                                         const std::vector<Range> &columns, bool inPlace = false) {
    mlir::FunctionType type = reference.function(0).getFunctionType();
    std::vector<Buffer> buffers;
    std::vector<void *> arguments;
    for (size_t i = 1; i < inputs.size(); ++i) {
      buffers.emplace_back(bytesOf(type.getInput(i)));
      encode(inputs[i], type.getInput(i), buffers.back().data());
      arguments.push_back(buffers.back().data());
    }
    std::vector<bool> isTaken(inputs.size());
    for (auto [i, result] : llvm::enumerate(type.getResults())) {
      buffers.emplace_back(bytesOf(result));
      std::memset(buffers.back().data(), 0xA5, bytesOf(result));
      arguments.push_back(buffers.back().data());
      for (auto [output, input] : info.inPlace)
        if (inPlace && output == static_cast<int>(i) && !isTaken[input]) {
          isTaken[input] = true;
          arguments.back() = arguments[input - 1];
          break;
        }
    }
    int64_t width = inputs[0].shape[1];
    for (Range m : rows)
      for (Range n : columns) {
        int64_t height = m.end - m.begin, length = n.end - n.begin, stride = length + 5;
        Buffer tile(std::max<int64_t>(1, (height - 1) * stride + length) * sizeof(float));
        float *values = static_cast<float *>(tile.data());
        for (int64_t i = 0; i < height; ++i)
          for (int64_t k = 0; k < length; ++k)
            values[i * stride + k] = inputs[0].data[(m.begin + i) * width + n.begin + k];
        run(arguments.data(), values, stride, m.begin, m.end, n.begin, n.end);
      }
    std::vector<std::vector<char>> result;
    for (auto [i, output] : llvm::enumerate(type.getResults())) {
      const char *data = static_cast<const char *>(arguments[inputs.size() - 1 + i]);
      result.emplace_back(data, data + bytesOf(output));
    }
    return result;
  }

  void check(double relative, double absolute) {
    ASSERT_TRUE(run);
    mlir::FunctionType type = reference.function(0).getFunctionType();
    std::mt19937_64 generator(23);
    std::vector<HostTensor> inputs;
    for (mlir::Type input : type.getInputs())
      inputs.push_back(Kernels::random(input, generator));
    int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1];
    auto whole = outputs(inputs, {{0, rows}}, {{0, columns}});
    for (auto [i, want] : llvm::enumerate(reference.evaluate(0, inputs))) {
      HostTensor got = decode(whole[i].data(), type.getResult(i));
      for (size_t k = 0; k < want.data.size(); ++k)
        ASSERT_LE(std::fabs(got.data[k] - want.data[k]), relative * std::fabs(want.data[k]) + absolute)
            << "output " << i << " element " << k << " is " << got.data[k] << ", not " << want.data[k];
    }
    std::vector<Range> someRows = {{rows / 2, rows}, {0, rows / 2}, {rows, rows}};
    std::vector<Range> someColumns = {
        {columns / 3, columns / 3 + columns / 2}, {0, columns / 3}, {columns / 3 + columns / 2, columns}, {0, 0}};
    EXPECT_EQ(outputs(inputs, someRows, someColumns), whole) << "depends on the tiles";
    EXPECT_EQ(outputs(inputs, someRows, someColumns, /*inPlace=*/true), whole) << "differs in place";
    checkNothingElseIsWritten(inputs, whole);
  }

  KernelInfo info;

private:
  void checkNothingElseIsWritten(const std::vector<HostTensor> &inputs, const std::vector<std::vector<char>> &whole) {
    int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1];
    Range m{rows / 3, rows - rows / 4}, n{columns / 4, columns - columns / 3};
    auto part = outputs(inputs, {m}, {n});
    for (auto [i, bytes] : llvm::enumerate(part)) {
      int64_t size = bytes.size() / (rows * columns);
      for (size_t at = 0; at < bytes.size(); ++at) {
        int64_t row = at / size / columns, column = at / size % columns;
        bool isInside = row >= m.begin && row < m.end && column >= n.begin && column < n.end;
        ASSERT_EQ(bytes[at], isInside ? whole[i][at] : static_cast<char>(0xA5)) << row << ", " << column;
      }
    }
  }

  Kernels reference;
  void *handle = nullptr;
  Tile run = nullptr;
};

const std::vector<std::pair<int, int>> kSizes = {{1, 1},  {1, 100}, {7, 1},   {5, 16},
                                                 {9, 33}, {13, 17}, {6, 257}, {16, 16}};

const std::vector<std::pair<int, int>> kFewSizes = {{1, 1}, {13, 17}, {6, 257}};

/// `$T`: the product; `$S`: its shape in `type`; `$N`, `$M`: one value per column, row.
std::string instantiate(std::string text, std::pair<int, int> size, const std::string &type) {
  std::pair<std::string, std::string> names[] = {
      {"$T", formatv("tensor<{0}x{1}xf32>", size.first, size.second)},
      {"$S", formatv("tensor<{0}x{1}x{2}>", size.first, size.second, type)},
      {"$N", formatv("tensor<{0}xf32>", size.second)},
      {"$M", formatv("tensor<{0}xf32>", size.first)},
  };
  for (auto &[name, value] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, 2, value);
  return text;
}

void checkAll(const std::string &source, const std::string &type, size_t pairs) {
  double relative = type == "f32" ? 2e-6 : type == "f16" ? 0x1p-11 + 2e-6 : 0x1p-8;
  for (const char *cpu : {"native", "x86-64-v3", "x86-64-v2"})
    for (auto size : cpu == std::string("native") ? kSizes : kFewSizes) {
      SCOPED_TRACE(formatv("{0} x {1} {2}, {3}", size.first, size.second, type, cpu).str());
      Epilogue epilogue(instantiate(source, size, type), cpu);
      epilogue.check(relative, 1e-6);
      EXPECT_EQ(epilogue.info.inPlace.size(), pairs);
    }
}

TEST(Epilogue, BiasAndGelu) {
  checkAll(R"(func.func @k(%c: $T, %bias: $N) -> ($S, $S) {
    %b = graph.broadcast %bias dims [1] : ($N) -> $T
    %s = arith.addf %c, %b : $T
    %g = graph.gelu tanh %s : $T
    return %s, %g : $S, $S })",
           "f32", 0);
}

TEST(Epilogue, ResidualTakesThePlaceOfTheStream) {
  checkAll(R"(func.func @k(%c: $T, %r: $S) -> $S {
    %s = arith.addf %r, %c : $T
    return %s : $S })",
           "f32", 1);
}

TEST(Epilogue, ResidualInBf16) {
  checkAll(R"(func.func @k(%c: $T, %r: $S) -> $S {
    %w = arith.extf %r : $S to $T
    %s = arith.addf %w, %c : $T
    %n = arith.truncf %s : $T to $S
    return %n : $S })",
           "bf16", 1);
}

TEST(Epilogue, ResidualInF16) {
  checkAll(R"(func.func @k(%c: $T, %r: $S) -> $S {
    %w = arith.extf %r : $S to $T
    %s = arith.addf %w, %c : $T
    %n = arith.truncf %s : $T to $S
    return %n : $S })",
           "f16", 1);
}

/// Two outputs, either of which may take the place of the gate.
TEST(Epilogue, GateInBf16) {
  checkAll(R"(func.func @k(%c: $T, %gate: $S) -> ($S, $S) {
    %w = arith.extf %gate : $S to $T
    %a = graph.silu %w : $T
    %h = arith.mulf %a, %c : $T
    %hn = arith.truncf %h : $T to $S
    %u = arith.truncf %c : $T to $S
    return %hn, %u : $S, $S })",
           "bf16", 2);
}

TEST(Epilogue, ValuesPerRowAndScalars) {
  checkAll(R"(func.func @k(%c: $T, %rows: $M, %scale: tensor<f32>, %columns: $N) -> $S {
    %two = arith.constant dense<2.0> : $M
    %r2 = arith.mulf %rows, %two : $M
    %r = graph.broadcast %r2 dims [0] : ($M) -> $T
    %n = graph.broadcast %columns dims [1] : ($N) -> $T
    %k = graph.broadcast %scale dims [] : (tensor<f32>) -> $T
    %a = arith.mulf %c, %k : $T
    %b = arith.mulf %a, %n : $T
    %d = arith.addf %b, %r : $T
    return %d : $S })",
           "f32", 0);
}

TEST(Epilogue, ThatDoesNotReadTheProduct) {
  checkAll(R"(func.func @k(%c: $T, %x: $S) -> $S {
    %s = arith.mulf %x, %x : $S
    return %s : $S })",
           "f32", 1);
}

std::string refusal(const std::string &source) {
  mlir::DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return "does not parse";
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) { message += diagnostic.str(); });
  CpuCodegen codegen({.cpu = "x86-64-v3"});
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  return mlir::failed(codegen.addEpilogue(function)) ? message : "accepted";
}

TEST(Epilogue, RefusesWithAReason) {
  auto expect = [](const std::string &source, const std::string &reason) {
    EXPECT_NE(refusal(source).find(reason), std::string::npos) << refusal(source);
  };
  expect("func.func @k(%c: tensor<4xf32>) -> tensor<4xf32> { return %c : tensor<4xf32> }", "a matrix of f32");
  expect("func.func @k(%c: tensor<4x4xbf16>) -> tensor<4x4xbf16> { return %c : tensor<4x4xbf16> }", "a matrix of f32");
  expect("func.func @k() -> tensor<4x4xf32> { %c = arith.constant dense<1.0> : tensor<4x4xf32>\n"
         "return %c : tensor<4x4xf32> }",
         "a matrix of f32");
  expect("func.func @k(%c: tensor<4x3xf32>) { return }", "at least one result");
  expect("func.func @k(%c: tensor<4x3xf32>, %i: tensor<4x3xi32>) -> tensor<4x3xf32> { return %c : tensor<4x3xf32> }",
         "tensors of f32, bf16");
  expect("func.func @k(%c: tensor<4x3xf32>, %i: tensor<5xf32>) -> tensor<4x3xf32> { return %c : tensor<4x3xf32> }",
         "one value per row or column");
  expect("func.func @k(%c: tensor<4x3xf32>, %i: tensor<4xf32>) -> tensor<4xf32> { return %i : tensor<4xf32> }",
         "result of an epilogue has the product's shape");
  expect("func.func @k(%c: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
         "%t = graph.transpose %c perm [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\nreturn %t : tensor<4x4xf32> }",
         "cannot be part of an epilogue");
  expect("func.func @k(%c: tensor<2x2xf32>) -> tensor<2x2xf32> {\n"
         "%t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\nreturn %t : tensor<2x2xf32> }",
         "cannot be part of an epilogue");
  expect("func.func @k(%c: tensor<4x4xf32>) -> tensor<4x4xf32> { return %c : tensor<4x4xf32> }", "accepted");
}

} // namespace
