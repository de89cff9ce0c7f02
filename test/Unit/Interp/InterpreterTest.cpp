//===- InterpreterTest.cpp - Variables, functions and entries
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {
class InterpreterTest : public testing::Test {
protected:
  Interpreter &load(StringRef text) {
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    EXPECT_TRUE(module);
    interpreter.emplace(*module);
    return *interpreter;
  }
  static HostTensor tensor(Shape shape, std::vector<double> values) {
    HostTensor result(std::move(shape));
    result.data = std::move(values);
    return result;
  }
  /// The message of a run that must fail.
  std::string failureOf(StringRef name, ArrayRef<HostTensor> arguments) {
    std::string message;
    ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
    EXPECT_TRUE(failed(interpreter->run(name, arguments)));
    return message;
  }

  OwningOpRef<ModuleOp> module;
  std::optional<Interpreter> interpreter;
};
} // namespace

static constexpr StringLiteral kCounter = R"mlir(
  graph.param @w : tensor<2xf32> init(#graph.normal<1.0>) key("w")
  graph.param @v : tensor<2xf32> init(#graph.normal<1.0>) key("v")
  graph.state @step saved|step : tensor<i32> init(#graph.fill<5.0>)
  graph.state @sum accumulator : tensor<2xf32> init(#graph.fill<1.0>)
  graph.func @add(%x: tensor<2xf32>) {
    %old = graph.read @sum : tensor<2xf32>
    %new = arith.addf %old, %x : tensor<2xf32>
    graph.write @sum, %new : tensor<2xf32>
    graph.return
  }
  graph.func @finish(%scale: tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>) {
    %sum = graph.read @sum : tensor<2xf32>
    %scaled = arith.mulf %sum, %scale : tensor<2xf32>
    %step = graph.read @step : tensor<i32>
    %one = arith.constant dense<1> : tensor<i32>
    %next = arith.addi %step, %one : tensor<i32>
    graph.write @step, %next : tensor<i32>
    graph.return %scaled, %step : tensor<2xf32>, tensor<i32>
  }
  graph.entry @train [@add, @finish] repeat [3, 1]
)mlir";

TEST_F(InterpreterTest, EntryRepeatsWithOneArgumentSliceEach) {
  Interpreter &interpreter = load(kCounter);
  ASSERT_TRUE(succeeded(interpreter.initializeVariables()));
  std::vector<HostTensor> arguments{tensor({3, 2}, {1, 2, 10, 20, 100, 200}), tensor({2}, {1, 2})};
  for (int step = 0; step < 2; ++step) {
    auto results = interpreter.run("train", arguments);
    ASSERT_TRUE(succeeded(results));
    // The accumulator starts from 1 in each step; the step counter goes on, and a value read keeps its old value.
    EXPECT_EQ((*results)[0].data, (std::vector<double>{112, 446}));
    EXPECT_EQ((*results)[1].data, (std::vector<double>{5.0 + step}));
  }
  EXPECT_EQ(interpreter.getVariable("step")->data, (std::vector<double>{7}));
}

TEST_F(InterpreterTest, ArgumentsMustFit) {
  Interpreter &interpreter = load(kCounter);
  ASSERT_TRUE(succeeded(interpreter.initializeVariables()));
  EXPECT_NE(failureOf("train", {}).find("takes 2 arguments but got 0"), std::string::npos);
  EXPECT_NE(failureOf("add", tensor({3}, {1, 2, 3}))
                .find("argument 0 has type 'tensor<2xf32>' but the given value has "
                      "shape [3]"),
            std::string::npos);
  EXPECT_NE(failureOf("sum", {}).find("no graph.func or graph.entry is named @sum"), std::string::npos);
}

TEST_F(InterpreterTest, VariablesNeedValues) {
  Interpreter &interpreter = load(kCounter);
  EXPECT_EQ(interpreter.getVariable("w"), nullptr);
  EXPECT_NE(failureOf("add", tensor({2}, {1, 2})).find("reads @sum, which has no value yet"), std::string::npos);
  ASSERT_TRUE(succeeded(interpreter.setVariable("sum", tensor({2}, {3, 4}))));
  ASSERT_TRUE(succeeded(interpreter.run("add", tensor({2}, {1, 2}))));
  EXPECT_EQ(interpreter.getVariable("sum")->data, (std::vector<double>{4, 6}));
  ScopedDiagnosticHandler handler(&context(), [](Diagnostic &) {});
  EXPECT_TRUE(failed(interpreter.setVariable("sum", tensor({1}, {3}))));
  EXPECT_TRUE(failed(interpreter.setVariable("add", tensor({1}, {3}))));
}

TEST_F(InterpreterTest, WhatItHasNoMeaningForIsRefused) {
  auto function = [](StringRef result, StringRef body) {
    return ("graph.func @f() -> " + result + " {\n" + body + "  graph.return %r : " + result + "\n}\n").str();
  };
  const std::string numbers = "  %a = arith.constant dense<94906267> : tensor<2xi64>\n";
  load(function("tensor<2xi1>", numbers + "  %r = arith.cmpi ult, %a, %a : tensor<2xi64>\n"));
  EXPECT_NE(failureOf("f", {}).find("unsigned comparison has no reference semantics here; use a signed one"),
            std::string::npos);
  load(function("tensor<2xi64>", numbers + "  %r = arith.muli %a, %a : tensor<2xi64>\n"));
  std::string message = failureOf("f", {});
  EXPECT_NE(message.find("element 0 of the result is "), std::string::npos) << message;
  EXPECT_NE(message.find(", which the reference semantics cannot hold exactly (2^53 is the limit)"), std::string::npos);
  load(function("tensor<2xf32>", "  %r = arith.constant dense_resource<blob> : tensor<2xf32>\n") +
       "{-# dialect_resources: {builtin: {blob: \"0x040000000000803F00000040\"}} #-}");
  EXPECT_NE(failureOf("f", {}).find("only dense tensor constants can be interpreted"), std::string::npos);
}

TEST_F(InterpreterTest, InitialValuesFollowSeedAndStream) {
  Interpreter &interpreter = load(kCounter);
  auto initialise = [&](int64_t seed, const Interpreter::StreamOf &streamOf = nullptr) {
    EXPECT_TRUE(succeeded(interpreter.initializeVariables(seed, streamOf)));
    return std::pair(interpreter.getVariable("w")->data, interpreter.getVariable("v")->data);
  };
  auto first = initialise(1);
  EXPECT_NE(first.first, first.second) << "variables have streams of their own";
  EXPECT_EQ(initialise(1), first);
  EXPECT_NE(initialise(2).first, first.first);
  auto swapped = initialise(1, [](StringRef name) -> uint64_t { return name == "w" ? 1 : 0; });
  EXPECT_EQ(swapped, std::pair(first.second, first.first));
  EXPECT_EQ(interpreter.getVariable("step")->data, (std::vector<double>{5}));
}

TEST_F(InterpreterTest, WhatInitialisesRunsLast) {
  Interpreter &interpreter = load(R"mlir(
    graph.param @w : tensor<2xf32> init(#graph.fill<1.0>) key("w")
    graph.func @nines() {
      %value = arith.constant dense<9.0> : tensor<2xf32>
      graph.write @w, %value : tensor<2xf32>
      graph.return
    }
    graph.entry init @start [@nines] repeat [1]
  )mlir");
  ASSERT_TRUE(succeeded(interpreter.initializeVariables()));
  EXPECT_EQ(interpreter.getVariable("w")->data, (std::vector<double>{9, 9}));
}

TEST_F(InterpreterTest, OperationWithoutSemantics) {
  load(R"mlir(
    graph.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = math.ceil %x : tensor<2xf32>
      graph.return %0 : tensor<2xf32>
    }
  )mlir");
  EXPECT_NE(failureOf("f", tensor({2}, {1, 2})).find("'math.ceil' op has no reference semantics"), std::string::npos);
}

TEST_F(InterpreterTest, LabelsAndIndicesOutOfRange) {
  load(R"mlir(
    graph.func loss @loss(%x: tensor<1x3xf32>, %y: tensor<1xi32>) {
      %0, %1 = graph.softmax_cross_entropy %x, %y : (tensor<1x3xf32>, tensor<1xi32>) -> (tensor<1xf32>, tensor<1xf32>)
      graph.return
    }
    graph.func @scatter(%x: tensor<1x3xf32>, %y: tensor<1xi32>) {
      %0 = graph.scatter_add %x at %y : (tensor<1x3xf32>, tensor<1xi32>) -> tensor<2x3xf32>
      graph.return
    }
  )mlir");
  EXPECT_NE(failureOf("loss", {HostTensor({1, 3}), tensor({1}, {4})}).find("label 4 is outside of the 3 classes"),
            std::string::npos);
  EXPECT_NE(failureOf("scatter", {HostTensor({1, 3}), tensor({1}, {-1})}).find("index -1 is outside of the table's 2"),
            std::string::npos);
}
