//===- OpHarness.h - Runs one operation and its gradient on random inputs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_INTERP_OPHARNESS_H
#define BOWLINE_TEST_UNIT_INTERP_OPHARNESS_H

#include "dialects/Graph/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "test/Support/test_seed.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace bowline::test {

using graph::HostTensor;
using Tensors = llvm::SmallVector<HostTensor>;
using Shape = std::vector<int64_t>;

/// A context with all dialects loaded. One per process: loading takes longer than any test.
mlir::MLIRContext &context();

/// Random choices of one test, the same in every run unless BOWLINE_TEST_SEED says otherwise. A failure prints the
/// seed.
class Random {
public:
  explicit Random(uint32_t seed = TestSeed()) : seed(seed), engine(seed) {}
  int64_t integer(int64_t low, int64_t highInclusive);
  double real(double low, double high);
  bool flip() { return integer(0, 1) == 1; }
  /// A size of interest: 1, a prime, or a composite number.
  int64_t size() { return pick({1, 2, 3, 4, 5, 6, 7}); }
  int64_t pick(std::vector<int64_t> choices) { return choices[integer(0, choices.size() - 1)]; }
  Shape shape(int64_t rank);
  llvm::SmallVector<int64_t> permutation(int64_t count);
  /// A strictly increasing selection of [0, rank), possibly empty.
  llvm::SmallVector<int64_t> selection(int64_t rank);

  HostTensor reals(const Shape &shape, double low = -2, double high = 2);
  HostTensor integers(const Shape &shape, int64_t low, int64_t highInclusive);
  /// Values of [-2, 2] that differ from each other and from zero by at least 1 / count, in random order.
  HostTensor distinct(const Shape &shape);

  std::string trace() const { return "BOWLINE_TEST_SEED=" + std::to_string(seed); }

private:
  uint32_t seed;
  std::mt19937_64 engine;
};

/// The element type of an operand in the function under test.
enum class ElementKind { F64, I32, I1, U8 };
struct Operand {
  HostTensor value;
  ElementKind element = ElementKind::F64;
};

/// Builds the operation under test from its operands.
using BuildOp = std::function<mlir::Operation *(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// `graph.func @forward` with one operation and, on request, `graph.func @vjp`, which takes the operands and a
/// cotangent for each result in `differentiableResults` and returns the operands' gradients.
class OpHarness {
public:
  OpHarness(std::vector<Operand> operands, BuildOp build);

  /// The results for other values of the operands.
  Tensors forward(const std::vector<HostTensor> &values);
  Tensors forward() { return forward(values()); }
  std::vector<HostTensor> values() const;

  struct Gradients {
    /// One per operand; no value where `buildVjp` gave none.
    std::vector<std::optional<HostTensor>> operands;
  };
  /// `cotangents[i]` belongs to result i; none where the result does not matter.
  Gradients gradients(const std::vector<std::optional<HostTensor>> &cotangents);

  mlir::Operation *operation() { return op; }

private:
  std::vector<Operand> operands;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Operation *op;
};

/// Expects the operands' gradients to equal central differences of the inner product of the results with random
/// cotangents. `results` says which results the product contains (all if empty); `constants` names operands that are
/// not differentiable though they are real.
void expectGradients(Random &random, std::vector<Operand> operands, const BuildOp &build,
                     std::vector<bool> results = {}, std::vector<size_t> constants = {});

/// |actual - expected| <= 1e-12 max(1, |expected|) for every element, and equal shapes.
void expectNear(const HostTensor &actual, const HostTensor &expected);

/// The element at `index`.
double at(const HostTensor &tensor, llvm::ArrayRef<int64_t> index);

/// A tensor from a formula of its index.
HostTensor tensorOf(const Shape &shape, llvm::function_ref<long double(const std::vector<int64_t> &)> formula);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_INTERP_OPHARNESS_H
