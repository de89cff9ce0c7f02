//===- TrainAgreementTest.cpp - Executed training steps and the reference agree in every state
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random small models with every differentiable layer, compiled with their backward passes and optimizers: fused
// regions of many operations, at widths that no hand would choose.
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "test/Execution/PlanHarness.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <map>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

struct Model {
  int64_t batch, seq, heads, keyHeads, width, inner, classes;

  explicit Model(Random &random)
      : batch(random.integer(1, 3)), seq(random.pick({1, 2, 7, 17})), heads(0), keyHeads(random.integer(1, 2)),
        width(random.pick({2, 6, 10, 16})), inner(random.pick({1, 5, 16, 37})), classes(random.pick({1, 3, 16, 67})) {
    heads = keyHeads * random.integer(1, 2);
  }

  std::string text() const;
};

/// Weights and steps are small, so that logits stay moderate: where the softmax is saturated, the gradient is a
/// difference of nearly equal numbers, of which no f32 program keeps the digits (a logit of 200 has a rounding error of
/// 8e-6).
std::string Model::text() const {
  int64_t hidden = heads * width;
  std::string text = R"(
graph.param @embed : [VE] init(#graph.normal<0.3>) key("embed")
graph.param @rms : [E] init(#graph.fill<1.25>) key("rms")
graph.param @scale : [E] init(#graph.fill<0.75>) key("scale")
graph.param @bias : [E] init(#graph.normal<0.1>) key("bias")
graph.param @wk : [NE] init(#graph.normal<0.1>) key("wk")
graph.param @w : [EF] init(#graph.normal<0.1>) key("w")
graph.param @b : [F] init(#graph.normal<0.1>) key("b")
graph.func loss @loss(%tokens: [BSi] {graph.limit = $V : i64, graph.name = "tokens"},
                 %labels: [BSi] {graph.limit = $V : i64, graph.name = "labels"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "tokens_counted"}) {
  %embed = graph.read @embed : [VE]
  %x = graph.gather %embed[%tokens] : ([VE], [BSi]) -> [BSE]
  %rms = graph.read @rms : [E]
  %n = graph.rms_norm %x, %rms eps 1.0e-02 : ([BSE], [E]) -> [BSE]
  %q = graph.reshape %n : ([BSE]) -> [BSHD]
  %wk = graph.read @wk : [NE]
  %k0 = graph.dot_general %n, %wk contract [2] x [1] : ([BSE], [NE]) -> [BSN]
  %k = graph.reshape %k0 : ([BSN]) -> [BSKD]
  %at = graph.iota dim 0 : [Si]
  %cos, %sin = graph.rope_angles %at theta 100.0 : ([Si]) -> ([SR], [SR])
  %qr = graph.rope %q, %cos, %sin : ([BSHD], [SR], [SR]) -> [BSHD]
  %kr = graph.rope %k, %cos, %sin : ([BSKD], [SR], [SR]) -> [BSKD]
  %a, %lse = graph.attention causal %qr, %kr, %k scale 0.5 : ([BSHD], [BSKD], [BSKD]) -> ([BSHD], [BHS])
  %a1 = graph.reshape %a : ([BSHD]) -> [BSE]
  %y = arith.addf %x, %a1 : [BSE]
  %scale = graph.read @scale : [E]
  %bias = graph.read @bias : [E]
  %m = graph.layer_norm %y, %scale, %bias eps 1.0e-02 : ([BSE], [E], [E]) -> [BSE]
  %w = graph.read @w : [EF]
  %u = graph.dot_general %m, %w contract [2] x [0] : ([BSE], [EF]) -> [BSF]
  %b = graph.read @b : [F]
  %bb = graph.broadcast %b dims [2] : ([F]) -> [BSF]
  %u1 = arith.addf %u, %bb : [BSF]
  %g = graph.gelu tanh %u1 : [BSF]
  %s = graph.silu %u : [BSF]
  %p = arith.mulf %g, %s : [BSF]
  %d = graph.dot_general %p, %w contract [2] x [1] : ([BSF], [EF]) -> [BSE]
  %z = arith.addf %y, %d : [BSE]
  %logits = graph.dot_general %z, %embed contract [2] x [1] : ([BSE], [VE]) -> [BSV]
  %each, %lse2 = graph.softmax_cross_entropy %logits, %labels : ([BSV], [BSi]) -> ([BS], [BS])
  %sum = graph.reduce sum %each dims [0, 1] : ([BS]) -> tensor<f32>
  %count = arith.constant dense<$T.0> : tensor<f32>
  graph.return %sum, %count : tensor<f32>, tensor<f32>
})";
  // [BSE] is the tensor type with these dimensions; a letter i at the end makes it one of i32.
  std::map<char, int64_t> sizes = {{'B', batch},   {'S', seq},       {'H', heads},      {'K', keyHeads},
                                   {'D', width},   {'E', hidden},    {'F', inner},      {'N', keyHeads * width},
                                   {'V', classes}, {'R', width / 2}, {'T', batch * seq}};
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = text[i] == '[' ? text.find(']', i) : std::string::npos;
    if (end != std::string::npos && isupper(static_cast<unsigned char>(text[i + 1]))) {
      result += "tensor<";
      for (++i; i < end && text[i] != 'i'; ++i)
        result += std::to_string(sizes.at(text[i])) + "x";
      result += text[end - 1] == 'i' ? "i32>" : "f32>";
      i = end;
    } else if (text[i] == '$') {
      result += std::to_string(sizes.at(text[++i]));
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Every parameter and every state of the optimizer.
void expectStates(Session &session, const Interpreter &interpreter, Bound bound) {
  const fbs::Plan &plan = session.plan();
  ASSERT_GE(plan.states()->size(), 7u);
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    std::string name = plan.buffers()->Get(plan.states()->Get(i)->buffer())->name()->str();
    SCOPED_TRACE(name);
    const HostTensor *expected = interpreter.getVariable(name);
    ASSERT_TRUE(expected);
    expectWithin(read(session, session.StateAt(i)), *expected, bound);
  }
}

void checkTraining(Random &random, const CompileOptions &base) {
  SCOPED_TRACE(random.trace());
  Model model(random);
  std::string text = model.text();
  SCOPED_TRACE(text);
  for (bool merge : {true, false}) {
    SCOPED_TRACE(merge ? "fusions merged" : "fusions not merged");
    CompileOptions options = base;
    options.threads = 2;
    options.seed = 3;
    // Small second moments would otherwise turn the rounding of a gradient near zero into a step of full length.
    options.eps = 1e-2;
    options.lr = 0.002;
    if (!merge)
      options.disabledSteps = {"merge-fusions"};
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
    ASSERT_TRUE(module);
    options.to = Phase::Train;
    absl::StatusOr<CompileResult> trained = compileModule(*module, options);
    ASSERT_TRUE(trained.ok()) << trained.status();
    OwningOpRef<ModuleOp> reference = module->clone();
    Interpreter interpreter(*reference);
    ASSERT_TRUE(succeeded(interpreter.initializeVariables(options.seed)));

    int64_t microbatches = options.strategy.microbatches.value_or(1);
    options.strategy = {}; // the module has it
    options.from = Phase::Train;
    options.to = Phase::Plan;
    std::unique_ptr<Session> session = sessionOf(*module, options);
    ASSERT_TRUE(session);
    ASSERT_TRUE(session->Run("init").ok());
    expectStates(*session, interpreter, {1e-6, 1e-6});
    for (int step = 0; step < 3; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Shape shape{model.batch, model.seq};
      std::vector<HostTensor> inputs;
      for (const char *port : {"tokens", "labels"}) {
        Shape all = shape;
        if (microbatches > 1)
          all.insert(all.begin(), microbatches);
        inputs.push_back(random.integers(all, 0, model.classes - 1));
        for (int64_t slot = 0; slot < microbatches; ++slot) {
          HostTensor part(shape);
          std::copy_n(inputs.back().data.begin() + slot * part.count(), part.count(), part.data.begin());
          auto view = session->Input("train_step", port, static_cast<uint32_t>(slot));
          ASSERT_TRUE(view.ok()) << view.status();
          write(part, *session, *view);
        }
      }
      ASSERT_TRUE(session->Run("train_step").ok());
      FailureOr<Interpreter::Tensors> expected = interpreter.run("train_step", inputs);
      ASSERT_TRUE(succeeded(expected));
      const std::vector<std::string> outputs = {"loss", "grad_norm", "lr"};
      for (auto [k, name] : llvm::enumerate(outputs)) {
        SCOPED_TRACE(name);
        auto view = session->Output("train_step", name);
        ASSERT_TRUE(view.ok()) << view.status();
        expectWithin(read(*session, *view), (*expected)[k], {2e-5, 2e-5});
      }
      expectStates(*session, interpreter, {5e-5, 5e-5});
    }
  }
}

} // namespace

TEST(TrainAgreement, AdamW) {
  Random random;
  for (int round = 0; round < 3; ++round)
    checkTraining(random, {});
}

TEST(TrainAgreement, MicrobatchesAndClipping) {
  Random random;
  for (int round = 0; round < 2; ++round) {
    CompileOptions options;
    options.strategy.microbatches = 3;
    options.clipNorm = 0.25;
    options.lrSchedule = "cosine";
    options.warmupSteps = 2;
    options.decaySteps = 5;
    checkTraining(random, options);
  }
}

TEST(TrainAgreement, StochasticGradientDescent) {
  Random random;
  for (int round = 0; round < 2; ++round) {
    CompileOptions options;
    options.optimizer = "sgd";
    options.clipNorm = 0;
    checkTraining(random, options);
  }
}
