//===- ExpertBlockTest.cpp - Experts compute as many rows as the device counts
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "kernels/registry/valid_rows.h"
#include "mlir/Parser/Parser.h"
#include "test/Execution/PlanHarness.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr int64_t kTokens = 50, kRows = 160, kWidth = 24, kHidden = 72, kExperts = 4;

/// Rows of tokens that are sorted by expert, the two products with SwiGLU between them, and the outputs of tokens; and,
/// from the gradient of the outputs, all gradients. Rows behind the last offset belong to nobody.
std::string expertBlock() {
  std::string tokens = tensorType({kTokens, kWidth}), rows = tensorType({kRows, kWidth}),
              hidden = tensorType({kRows, kHidden}), up = tensorType({kExperts, kWidth, kHidden}),
              down = tensorType({kExperts, kHidden, kWidth}), ids = tensorType({kRows}, "i32"),
              offsets = tensorType({kExperts + 1}, "i32");
  return formatv(R"(
graph.func @block(%x: {0}, %gate: {3}, %up: {3}, %down: {4}, %ids: {5} {{graph.limit = {7} : i64}, %offsets: {6},
                  %dout: {0}) -> ({0}, {0}, {3}, {3}, {4}) {{
  %rows = graph.gather %x[%ids] : ({0}, {5}) -> {1}
  %g = graph.grouped_dot %rows, %gate at %offsets : ({1}, {3}, {6}) -> {2}
  %u = graph.grouped_dot %rows, %up at %offsets : ({1}, {3}, {6}) -> {2}
  %s = graph.silu %g : {2}
  %h = arith.mulf %s, %u : {2}
  %y = graph.grouped_dot %h, %down at %offsets : ({2}, {4}, {6}) -> {1}
  %out = graph.scatter_add %y at %ids : ({1}, {5}) -> {0}

  %dy = graph.gather %dout[%ids] : ({0}, {5}) -> {1}
  %ddown = graph.grouped_outer %h, %dy at %offsets : ({2}, {1}, {6}) -> {4}
  %dh = graph.grouped_dot transposed %dy, %down at %offsets : ({1}, {4}, {6}) -> {2}
  %ds = arith.mulf %dh, %u : {2}
  %du = arith.mulf %dh, %s : {2}
  %one = arith.constant dense<1.0> : {2}
  %l = graph.logistic %g : {2}
  %rest = arith.subf %one, %l : {2}
  %tail = arith.mulf %g, %rest : {2}
  %more = arith.addf %one, %tail : {2}
  %slope = arith.mulf %l, %more : {2}
  %dg = arith.mulf %ds, %slope : {2}
  %dgate = graph.grouped_outer %rows, %dg at %offsets : ({1}, {2}, {6}) -> {3}
  %dup = graph.grouped_outer %rows, %du at %offsets : ({1}, {2}, {6}) -> {3}
  %dr0 = graph.grouped_dot transposed %dg, %gate at %offsets : ({2}, {3}, {6}) -> {1}
  %dr1 = graph.grouped_dot transposed %du, %up at %offsets : ({2}, {3}, {6}) -> {1}
  %drows = arith.addf %dr0, %dr1 : {1}
  %dx = graph.scatter_add %drows at %ids : ({1}, {5}) -> {0}
  graph.return %out, %dx, %dgate, %dup, %ddown : {0}, {0}, {3}, {3}, {4}
}
graph.entry @experts [@block] repeat [1]
)",
                 tokens, rows, hidden, up, down, ids, offsets, kTokens);
}

struct Way {
  const char *name, *dtype, *target, *driver;
  /// Of the largest element of a result: f32 keeps 24 bits of sums of at most 160 terms, each of three factors; bf16
  /// rounds 16 times at most.
  double bound;
};

class ExpertBlock : public ::testing::TestWithParam<Way> {
protected:
  void SetUp() override {
    reference = parseSourceString<ModuleOp>(expertBlock(), &context());
    ASSERT_TRUE(reference);
  }

  std::unique_ptr<Session> open(std::set<std::string> disabled) {
    OwningOpRef<ModuleOp> module(reference->clone());
    CompileOptions options;
    options.mode = CompileMode::Generate;
    options.threads = 2;
    options.dtype = GetParam().dtype;
    options.target = GetParam().target;
    options.disabledSteps = std::move(disabled);
    SessionOptions how;
    how.driver = GetParam().driver;
    return sessionOf(*module, options, how);
  }

  /// With `count` rows that belong to an expert.
  std::vector<HostTensor> draw(int64_t count) {
    HostTensor offsets = random.integers({kExperts + 1}, 0, count);
    llvm::sort(offsets.data);
    offsets.data.back() = static_cast<double>(count);
    return {random.reals({kTokens, kWidth}, -1, 1),
            random.reals({kExperts, kWidth, kHidden}, -0.5, 0.5),
            random.reals({kExperts, kWidth, kHidden}, -0.5, 0.5),
            random.reals({kExperts, kHidden, kWidth}, -0.5, 0.5),
            random.integers({kRows}, 0, kTokens - 1),
            offsets,
            random.reals({kTokens, kWidth}, -1, 1)};
  }

  static std::vector<HostTensor> run(Session &session, const std::vector<HostTensor> &inputs) {
    const fbs::Entry &entry = *session.plan().entries()->Get(0);
    for (auto [port, input] : llvm::zip_equal(*entry.inputs(), inputs))
      write(input, session, session.BufferAt(port->buffer()));
    absl::Status status = session.Run(0);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<HostTensor> outputs;
    for (const fbs::Port *port : *entry.outputs())
      outputs.push_back(read(session, session.BufferAt(port->buffer())));
    return outputs;
  }

  static int64_t kernelsThatLeaveRowsOut(const Session &session) {
    return llvm::count_if(*session.plan().kernels(),
                          [](const fbs::Kernel *kernel) { return kernel->valid_rows() != nullptr; });
  }

  /// Registered kernels of the name, in the form that leaves rows out or in the usual one.
  static int64_t kernelsOf(const Session &session, StringRef name, bool leavesRowsOut) {
    return llvm::count_if(*session.plan().kernels(), [&](const fbs::Kernel *kernel) {
      bool leaves = kernel->attributes() && llvm::any_of(*kernel->attributes(), [](const fbs::Attribute *attribute) {
                      return attribute->name()->string_view() == kernels::kLeavesRowsOut;
                    });
      return kernel->name()->string_view() == std::string_view(name) && leaves == leavesRowsOut;
    });
  }

  Random random;
  OwningOpRef<ModuleOp> reference;
};

TEST_P(ExpertBlock, IsTheReferenceWhateverRowsThereAre) {
  SCOPED_TRACE(random.trace());
  std::unique_ptr<Session> limited = open({}), whole = open({"limit-rows"});
  ASSERT_TRUE(limited && whole);
  // SwiGLU and its derivative.
  EXPECT_GE(kernelsThatLeaveRowsOut(*limited), 2);
  EXPECT_EQ(kernelsThatLeaveRowsOut(*whole), 0);
  // Nobody needs zeros behind the count, nor rows that are gathered there.
  for (const char *name : {"gather_rows", "grouped_matmul", "scatter_add_rows"}) {
    EXPECT_GT(kernelsOf(*limited, name, true), 0) << name;
    EXPECT_EQ(kernelsOf(*limited, name, false), 0) << name;
    EXPECT_EQ(kernelsOf(*whole, name, true), 0) << name;
  }
  Interpreter interpreter(*reference);
  // Many rows before few: a run must not use rows that the run before left.
  for (int64_t count : {kRows, kRows / 20, kRows / 2, int64_t{0}, int64_t{1}, kRows - 1, kRows / 10}) {
    SCOPED_TRACE(count);
    std::vector<HostTensor> inputs = draw(count), got = run(*limited, inputs), all = run(*whole, inputs);
    FailureOr<Interpreter::Tensors> expected = interpreter.run("experts", inputs);
    ASSERT_TRUE(succeeded(expected));
    for (auto [i, want] : llvm::enumerate(*expected)) {
      SCOPED_TRACE(i);
      double largest = 0.01;
      for (double value : want.data)
        largest = std::max(largest, std::fabs(value));
      expectWithin(got[i], want, {0, GetParam().bound * largest});
      EXPECT_EQ(got[i].data, all[i].data) << "bits differ from those of code for all rows";
    }
  }
}

constexpr double kWide = 160 * 3 * 0x1p-24, kNarrow = 16 * 0x1p-8;

INSTANTIATE_TEST_SUITE_P(Ways, ExpertBlock,
                         ::testing::Values(Way{"F32OnCpu", "f32", "cpu", "cpu", kWide},
                                           Way{"BF16OnCpu", "bf16", "cpu", "cpu", kNarrow},
                                           Way{"F32OnDiscrete", "f32", "discrete", "discrete:seed=1", kWide},
                                           Way{"BF16OnDiscrete", "bf16", "discrete", "discrete:seed=2", kNarrow}),
                         [](const ::testing::TestParamInfo<Way> &info) { return info.param.name; });

} // namespace
