//===- OpAgreementTest.cpp - The executed plan and the reference agree on every operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "test/Execution/OpCases.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cstring>
#include <set>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

TEST(OpAgreement, Elementwise) {
  Random random;
  checkCases(random, elementwiseCases(random));
}

TEST(OpAgreement, ShapesAndIndices) {
  Random random;
  checkCases(random, shapeCases(random));
}

TEST(OpAgreement, ContractionsAndReductions) {
  Random random;
  checkCases(random, contractionCases(random));
}

TEST(OpAgreement, Layers) {
  Random random;
  checkCases(random, layerCases(random));
}

TEST(OpAgreement, Sampling) {
  Random random;
  checkCases(random, samplingCases(random));
}

/// Offsets that a program computes, or that no limit holds: the run fails, and says which offset is wrong and where.
TEST(OpAgreement, WrongOffsetsOfGroupsFailTheRun) {
  std::string text =
      "graph.func @f(%0: tensor<7x3xf32>, %1: tensor<2x3x5xf32>, %2: tensor<3xi32>) -> tensor<7x5xf32> {\n"
      "%r = graph.grouped_dot %0, %1 at %2 : (tensor<7x3xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> "
      "tensor<7x5xf32>\ngraph.return %r : tensor<7x5xf32>\n}\ngraph.entry @products [@f] repeat [1]\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
  ASSERT_TRUE(module);
  CompileOptions options;
  options.mode = CompileMode::Generate;
  options.threads = 2;
  std::unique_ptr<Session> session = sessionOf(*module, options);
  ASSERT_TRUE(session);
  const fbs::Entry &entry = *session->plan().entries()->Get(0);
  auto run = [&](std::vector<int32_t> offsets) {
    for (const fbs::Port *port : *entry.inputs()) {
      TensorRef tensor = session->BufferAt(port->buffer());
      std::vector<uint8_t> bytes(tensor.bytes, 0);
      if (tensor.dtype == fbs::DType::I32)
        std::memcpy(bytes.data(), offsets.data(), bytes.size());
      EXPECT_TRUE(session->Write(tensor, bytes).ok());
    }
    return session->Run(0);
  };
  EXPECT_TRUE(run({0, 2, 7}).ok());
  absl::Status wrong = run({0, 5, 4});
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.message().find("entry 'products'"), absl::string_view::npos) << wrong;
  EXPECT_NE(wrong.message().find("offset 2 of rows in groups is 4, which is below the one before it"),
            absl::string_view::npos)
      << wrong;
  EXPECT_FALSE(run({0, 5, 8}).ok());
  EXPECT_FALSE(run({-2, 5, 7}).ok());
  EXPECT_TRUE(run({7, 7, 7}).ok());
}

static int64_t checksIn(const Session &session) {
  int64_t checks = 0;
  for (const fbs::Program *program : *session.plan().programs())
    for (const fbs::Segment *segment : *program->segments())
      for (const fbs::Command *command : *segment->commands())
        if (const fbs::Launch *launch = command->body_as_Launch())
          checks += session.plan().kernels()->Get(launch->kernel())->name()->str() == "check_ids";
  return checks;
}

/// Numbers of rows that a program computes are checked on the device, and those of callers where they enter.
TEST(OpAgreement, WrongNumbersOfRowsFailTheRun) {
  auto program = [](const char *limit, const char *range) {
    return llvm::formatv("graph.func @f(%t: tensor<6x3xf32>, %i: tensor<4xi32> {0}) -> tensor<6x3xf32> {{\n"
                         "%two = arith.constant dense<2> : tensor<4xi32>\n"
                         "%n = arith.subi %i, %two : tensor<4xi32>\n"
                         "%r = graph.gather %t[%i] {1} : (tensor<6x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>\n"
                         "%s = graph.scatter_add %r at %n {1} : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<6x3xf32>\n"
                         "graph.return %s : tensor<6x3xf32>\n}\ngraph.entry @rows [@f] repeat [1]\n",
                         limit, range)
        .str();
  };
  CompileOptions options;
  options.mode = CompileMode::Generate;
  options.threads = 2;
  auto open = [&](const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
    EXPECT_TRUE(module) << text;
    return module ? sessionOf(*module, options) : nullptr;
  };
  std::unique_ptr<Session> session = open(program("{graph.limit = 6 : i64}", ""));
  ASSERT_TRUE(session);
  EXPECT_EQ(checksIn(*session), 1);
  auto run = [&](const std::vector<int32_t> &ids) {
    for (const fbs::Port *port : *session->plan().entries()->Get(0)->inputs()) {
      TensorRef tensor = session->BufferAt(port->buffer());
      std::vector<uint8_t> bytes(tensor.bytes, 0);
      if (tensor.dtype == fbs::DType::I32)
        std::memcpy(bytes.data(), ids.data(), bytes.size());
      EXPECT_TRUE(session->Write(tensor, bytes).ok());
    }
    return session->Run(0);
  };
  EXPECT_TRUE(run({2, 3, 4, 5}).ok());
  absl::Status wrong = run({2, 3, 1, 0});
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.message().find("row number 2 is -1, which is below 0"), absl::string_view::npos) << wrong;
  EXPECT_NE(wrong.message().find("entry 'rows'"), absl::string_view::npos) << wrong;
  EXPECT_TRUE(run({5, 5, 2, 2}).ok());
  // A limit that is too high, and none; then who wrote the program says so.
  for (const char *limit : {"{graph.limit = 7 : i64}", ""}) {
    session = open(program(limit, ""));
    ASSERT_TRUE(session);
    EXPECT_EQ(checksIn(*session), 2) << limit;
    session = open(program(limit, "in_range"));
    ASSERT_TRUE(session);
    EXPECT_EQ(checksIn(*session), 0) << limit;
  }
}

/// Row numbers that no run changes are checked, whether `prepare` computes them once before all runs or each run does.
TEST(OpAgreement, WrongNumbersOfRowsInWhatPreparesFailTheRun) {
  const char *text = "graph.param @table : tensor<16x8xf32> init(#graph.normal<1.0>) key(\"t\")\n"
                     "graph.func @f(%z: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
                     "%ids = arith.constant dense<[0, 99, -5, 3]> : tensor<4xi32>\n"
                     "%t = graph.read @table : tensor<16x8xf32>\n"
                     "%x = graph.gather %t[%ids] : (tensor<16x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>\n"
                     "%y = arith.addf %x, %z : tensor<4x8xf32>\n"
                     "graph.return %y : tensor<4x8xf32>\n}\ngraph.entry @e [@f] repeat [1]\n";
  for (bool prepares : {true, false}) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
    ASSERT_TRUE(module);
    CompileOptions options;
    options.mode = CompileMode::Generate;
    options.threads = 1;
    if (!prepares)
      options.disabledSteps.insert("hoist-into-prepare");
    std::unique_ptr<Session> session = sessionOf(*module, options);
    ASSERT_TRUE(session);
    EXPECT_EQ(session->FindEntry(fbs::EntryKind::Prepare).ok(), prepares);
    EXPECT_EQ(checksIn(*session), 1);
    int entry = *session->FindEntry("e");
    std::vector<uint8_t> zeros(4UL * 8 * sizeof(float), 0);
    ASSERT_TRUE(
        session->Write(session->BufferAt(session->plan().entries()->Get(entry)->inputs()->Get(0)->buffer()), zeros)
            .ok());
    absl::Status wrong = session->Run(entry);
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(wrong.message().find("row number 1 is 99, which is below 0 or no row"), absl::string_view::npos) << wrong;
  }
}

/// A new operation fails here until it has cases above.
TEST(OpAgreement, NoOperationIsForgotten) {
  Random random;
  std::set<std::string> seen;
  for (auto cases : {elementwiseCases, shapeCases, contractionCases, layerCases, samplingCases}) {
    OwningOpRef<ModuleOp> module = moduleOf(cases(random));
    ASSERT_TRUE(module);
    module->walk([&](Operation *op) { seen.insert(op->getName().getStringRef().str()); });
  }
  size_t known = 0;
  for (RegisteredOperationName name : context().getRegisteredOperations()) {
    // Operations of dialect `stage` become sends and receives before kernels are selected.
    if (!name.hasInterface<graph::Interpretable>() || name.getDialectNamespace() == "stage")
      continue;
    ++known;
    EXPECT_TRUE(seen.count(name.getStringRef().str())) << name.getStringRef().str() << " has no case";
  }
  EXPECT_GE(known, 40u);
}
