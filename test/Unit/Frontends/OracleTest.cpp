//===- OracleTest.cpp - Imported models compute what the recorded runs say
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The imported graph, its gradients and its optimizer, executed by the reference interpreter in f64, against the first
// steps of every run of test/oracle. (The executed plans are compared with all steps elsewhere.)
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Import.h"
#include "frontends/hf/Parameters.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Strategy/StrategyFlags.h"
#include "passes/Training/Passes.h"
#include "runtime/base/json.h"
#include "runtime/base/safetensors.h"
#include "runtime/train/data/sampler.h"
#include "test/Unit/Frontends/HfTestSupport.h"

#include <cmath>
#include <fstream>

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;
using namespace bowline::hf::test;
using graph::HostTensor;
using nlohmann::json;

static const std::string kOracle = BOWLINE_TEST_DIR "/oracle/";

/// Steps that the interpreter runs, which is slow: enough to leave the longest warmup.
static constexpr int kSteps = 8;
static constexpr double kTolerance = 1e-5;

static json readPlan() {
  absl::StatusOr<json> plan = ReadJsonFile(kOracle + "runs.json");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : json({{"runs", json::array()}});
}

static std::vector<std::string> runNames() {
  std::vector<std::string> names;
  json plan = readPlan();
  for (const json &run : plan["runs"])
    names.push_back(run["name"]);
  return names;
}

namespace {

class Oracle : public testing::TestWithParam<std::string> {
protected:
  Oracle() {
    DialectRegistry registry;
    registry.insert<graph::GraphDialect>();
    graph::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<dist::DistDialect>();

    json plan = readPlan();
    for (const json &candidate : plan["runs"])
      if (candidate["name"] == GetParam())
        run = candidate;
    options = run["options"];
    model = run["model"];
    config = configOf(model);
    batch = options["batch"];
    seq = options["seq"];
    microbatches = options["microbatches"];
    dataset = *OpenTokenDataset(kOracle + plan["data"].get<std::string>(), {.vocabulary = config.vocabulary});
  }

  /// Lets the interpreter's variables hold the model's weights.
  void loadWeights(Interpreter &interpreter) {
    ASSERT_TRUE(succeeded(interpreter.initializeVariables()));
    absl::StatusOr<SafetensorsDirectory> weights = SafetensorsDirectory::Open(modelDirectory(model));
    ASSERT_TRUE(weights.ok()) << weights.status();
    for (const Parameter &parameter : parameters(config)) {
      const auto *entry = weights->Find(parameter.key);
      ASSERT_TRUE(entry) << parameter.key;
      HostTensor value(parameter.shape);
      std::vector<float> narrow(value.data.size());
      ASSERT_TRUE(entry->file->ReadF32(*entry->tensor, absl::MakeSpan(narrow)).ok());
      value.data.assign(narrow.begin(), narrow.end());
      ASSERT_TRUE(succeeded(interpreter.setVariable(parameter.symbol, std::move(value))));
    }
  }

  /// Tokens and labels of a step (from 0); a leading dimension for microbatches where there are several.
  std::vector<HostTensor> inputsOf(int64_t step) {
    absl::StatusOr<Sampler> sampler = Sampler::Create(dataset.get(), seq, DataOrder::kSequential, 0);
    EXPECT_TRUE(sampler.ok()) << sampler.status();
    std::vector<int32_t> tokens(batch * seq), labels(batch * seq);
    EXPECT_TRUE(sampler->FillBatch(step, batch, tokens.data(), labels.data()).ok());
    std::vector<int64_t> shape = {batch / microbatches, seq};
    if (microbatches > 1)
      shape.insert(shape.begin(), microbatches);
    std::vector<HostTensor> result(2, HostTensor(shape));
    result[0].data.assign(tokens.begin(), tokens.end());
    result[1].data.assign(labels.begin(), labels.end());
    return result;
  }

  OwningOpRef<ModuleOp> import(ImportOptions importOptions) {
    absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, config, importOptions);
    EXPECT_TRUE(module.ok()) << module.status();
    return std::move(*module);
  }

  LogicalResult buildTrainingStep(ModuleOp module) {
    if (failed(addStrategyFlags(module, {.microbatches = microbatches})))
      return failure();
    InsertOptimizerOptions optimizer;
    optimizer.kind = options["optimizer"];
    optimizer.schedule = options["lr-schedule"];
    auto set = [&](const char *key, auto &field) { field = options.value(key, field); };
    set("lr", optimizer.lr);
    set("beta1", optimizer.beta1);
    set("beta2", optimizer.beta2);
    set("eps", optimizer.eps);
    set("weight-decay", optimizer.weightDecay);
    set("clip-norm", optimizer.clipNorm);
    set("warmup-steps", optimizer.warmupSteps);
    set("decay-steps", optimizer.decaySteps);
    set("min-lr", optimizer.minLr);
    PassManager passes(&context);
    passes.addPass(createDifferentiate());
    passes.addPass(createInsertOptimizer(optimizer));
    return passes.run(module);
  }

  MLIRContext context;
  json run, options;
  std::string model;
  ModelConfig config;
  int64_t batch, seq, microbatches;
  std::unique_ptr<TokenDataset> dataset;
};

} // namespace

INSTANTIATE_TEST_SUITE_P(All, Oracle, testing::ValuesIn(runNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

static void expectNear(double actual, double expected, const char *what, int step) {
  EXPECT_NEAR(actual, expected, kTolerance * std::fabs(expected)) << what << " of step " << step;
}

TEST_P(Oracle, FirstTrainingSteps) {
  OwningOpRef<ModuleOp> module = import({.batch = batch / microbatches, .seq = seq});
  ASSERT_TRUE(succeeded(buildTrainingStep(*module)));
  Interpreter interpreter(*module);
  loadWeights(interpreter);
  std::ifstream recorded(kOracle + GetParam() + ".jsonl");
  for (int step = 1; step <= kSteps; ++step) {
    std::string line;
    ASSERT_TRUE(std::getline(recorded, line));
    json expected = json::parse(line);
    ASSERT_EQ(expected["step"], step);
    FailureOr<Interpreter::Tensors> results = interpreter.run("train_step", inputsOf(step - 1));
    ASSERT_TRUE(succeeded(results));
    expectNear((*results)[0].data[0], expected["loss"], "loss", step);
    expectNear((*results)[1].data[0], expected["grad_norm"], "grad_norm", step);
    expectNear((*results)[2].data[0], expected["lr"], "lr", step);
  }
}

/// The logits of @generate at every position, turned into losses, sum up to @loss; this also shows that tokens behind
/// the position have no influence, because here they differ.
TEST_P(Oracle, GenerateAgreesWithLoss) {
  const int64_t length = std::min<int64_t>(seq, 7);
  std::vector<HostTensor> inputs = inputsOf(0);
  HostTensor tokens({1, length}), labels({1, length});
  std::copy_n(inputs[0].data.begin(), length, tokens.data.begin());
  std::copy_n(inputs[1].data.begin(), length, labels.data.begin());

  OwningOpRef<ModuleOp> lossModule = import({.batch = 1, .seq = length});
  Interpreter loss(*lossModule);
  loadWeights(loss);
  FailureOr<Interpreter::Tensors> expected = loss.run("loss", {tokens, labels});
  ASSERT_TRUE(succeeded(expected));
  EXPECT_EQ((*expected)[1].data[0], static_cast<double>(length));

  OwningOpRef<ModuleOp> generateModule = import({.mode = ImportMode::Generate, .seq = length});
  Interpreter generate(*generateModule);
  loadWeights(generate);
  double sum = 0;
  for (int64_t position = 0; position < length; ++position) {
    HostTensor prefix({1, length}), index({1});
    std::copy_n(tokens.data.begin(), position + 1, prefix.data.begin());
    index.data[0] = static_cast<double>(position);
    FailureOr<Interpreter::Tensors> logits = generate.run("logits", {prefix, index});
    ASSERT_TRUE(succeeded(logits));
    double total = 0;
    for (double logit : (*logits)[0].data)
      total += std::exp(logit);
    sum += std::log(total) - (*logits)[0].data[static_cast<size_t>(labels.data[position])];
  }
  EXPECT_NEAR(sum, (*expected)[0].data[0], 1e-9 * sum);
}

TEST_P(Oracle, AbsentLabelsDoNotCount) {
  std::vector<HostTensor> inputs = inputsOf(0);
  HostTensor tokens({1, 5}), labels({1, 5});
  std::copy_n(inputs[0].data.begin(), 5, tokens.data.begin());
  std::copy_n(inputs[1].data.begin(), 5, labels.data.begin());
  OwningOpRef<ModuleOp> module = import({.batch = 1, .seq = 5});
  Interpreter interpreter(*module);
  loadWeights(interpreter);
  auto lossOf = [&](const HostTensor &some) {
    FailureOr<Interpreter::Tensors> results = interpreter.run("loss", {tokens, some});
    EXPECT_TRUE(succeeded(results));
    return std::pair((*results)[0].data[0], (*results)[1].data[0]);
  };
  HostTensor even = labels, odd = labels;
  for (size_t position = 0; position < 5; ++position)
    (position % 2 == 0 ? odd : even).data[position] = position == 0 ? -1 : -100;
  auto [loss, count] = lossOf(labels);
  EXPECT_EQ(count, 5.0);
  EXPECT_EQ(lossOf(even).second, 3.0);
  EXPECT_EQ(lossOf(odd).second, 2.0);
  EXPECT_NEAR(lossOf(even).first + lossOf(odd).first, loss, 1e-12 * loss);
}
