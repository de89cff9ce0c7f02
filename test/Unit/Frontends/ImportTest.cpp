//===- ImportTest.cpp - Graphs of Hugging Face models
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Import.h"

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/Parameters.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Frontends/HfTestSupport.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;
using namespace bowline::hf::test;
using testing::HasSubstr;

namespace {

class Import : public testing::TestWithParam<const char *> {
protected:
  OwningOpRef<ModuleOp> import(const ImportOptions &options) {
    absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, config, options);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? std::move(*module) : nullptr;
  }
  OwningOpRef<ModuleOp> importTrain(int64_t batch, int64_t seq) {
    return import({.mode = ImportMode::Train, .batch = batch, .seq = seq});
  }
  OwningOpRef<ModuleOp> importGenerate(int64_t seq) { return import({.mode = ImportMode::Generate, .seq = seq}); }

  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); }
  Type i32() { return IntegerType::get(&context, 32); }
  Type f32() { return Float32Type::get(&context); }

  MLIRContext context;
  ModelConfig config = configOf(GetParam());
};

} // namespace
INSTANTIATE_TEST_SUITE_P(All, Import, testing::ValuesIn(kModels), testName);

static std::string print(Operation *op, bool withLocations = false) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, withLocations ? OpPrintingFlags().enableDebugInfo() : OpPrintingFlags());
  return text;
}

TEST_P(Import, ParametersBecomeSymbols) {
  OwningOpRef<ModuleOp> module = importTrain(2, 5);
  std::vector<Parameter> expected = parameters(config);
  auto params = llvm::to_vector(module->getOps<graph::ParamOp>());
  ASSERT_EQ(params.size(), expected.size());
  for (auto [param, parameter] : llvm::zip_equal(params, expected)) {
    EXPECT_EQ(param.getName(), StringRef(parameter.symbol));
    EXPECT_EQ(param.getKey(), StringRef(parameter.key));
    EXPECT_EQ(param.getTensorType(), tensor(parameter.shape, f32()));
    EXPECT_EQ(cast<NameLoc>(param.getLoc()).getName(), StringRef(parameter.key));
    if (parameter.initial.kind == Initial::Kind::Normal)
      EXPECT_EQ(cast<graph::NormalAttr>(param.getInit()).getStddev(), parameter.initial.value);
    else
      EXPECT_EQ(cast<graph::FillAttr>(param.getInit()).getValue(), parameter.initial.value);
  }
}

/// Roles and layers of parameters, by which passes divide a model among ranks.
TEST_P(Import, ParametersSayTheirRoleAndTheirLayer) {
  std::string keys = "keys";
  if (config.heads > config.kvHeads)
    keys += " shared " + std::to_string(config.heads / config.kvHeads);
  std::string size = std::to_string(config.hidden), fused = "fused " + size + ", " + size + ", " + size;
  const std::map<std::string, std::string> roles = {
      {"embed", "vocabulary"},  {"head", "vocabulary"},    {"positions", "none"},      {"norm", "none"},
      {"norm.scale", "none"},   {"norm.bias", "none"},     {"attn_norm", "none"},      {"attn_norm.scale", "none"},
      {"mlp_norm", "none"},     {"mlp_norm.bias", "none"}, {"mlp_norm.scale", "none"}, {"attn_norm.bias", "none"},
      {"attn.wq", "column"},    {"attn.bq", "column"},     {"attn.wk", keys},          {"attn.bk", keys},
      {"attn.wv", keys},        {"attn.bv", keys},         {"attn.wqkv", fused},       {"attn.bqkv", fused},
      {"attn.q_norm", "none"},  {"attn.k_norm", "none"},   {"attn.wo", "row"},         {"attn.bo", "none"},
      {"mlp.w_gate", "column"}, {"mlp.w_up", "column"},    {"mlp.b_up", "column"},     {"mlp.w_down", "row"},
      {"mlp.b_down", "none"}};
  OwningOpRef<ModuleOp> module = importTrain(2, 5);
  for (auto param : module->getOps<graph::ParamOp>()) {
    StringRef name = param.getName();
    std::optional<int64_t> layer;
    if (name.consume_front("layers.")) {
      int64_t number = 0;
      ASSERT_FALSE(name.consumeInteger(10, number));
      ASSERT_TRUE(name.consume_front("."));
      layer = number;
    }
    EXPECT_EQ(param.getLayer(), layer) << param.getName().str();
    ASSERT_TRUE(roles.count(name.str())) << name.str();
    EXPECT_NE(print(param, false).find(" role(" + roles.at(name.str()) + ")"), std::string::npos)
        << print(param, false);
  }
}

TEST_P(Import, EveryParameterIsRead) {
  for (bool train : {true, false}) {
    OwningOpRef<ModuleOp> module = train ? importTrain(2, 5) : importGenerate(5);
    std::set<std::string> read;
    module->walk([&](graph::ReadOp op) { read.insert(op.getVariable().str()); });
    for (const Parameter &parameter : parameters(config))
      EXPECT_TRUE(read.count(parameter.symbol)) << parameter.symbol;
  }
}

TEST_P(Import, SignatureOfLoss) {
  OwningOpRef<ModuleOp> module = importTrain(3, 7);
  auto function = graph::FuncOp::find(*module, graph::FunctionPart::Loss);
  ASSERT_TRUE(function);
  EXPECT_FALSE(graph::FuncOp::find(*module, graph::FunctionPart::Generate));
  Type ids = tensor({3, 7}, i32()), scalar = tensor({}, f32());
  EXPECT_EQ(function.getArgumentTypes(), ArrayRef<Type>({ids, ids}));
  EXPECT_EQ(function.getResultTypes(), ArrayRef<Type>({scalar, scalar}));
  EXPECT_EQ(function.getArgName(0), "tokens");
  EXPECT_EQ(function.getArgName(1), "labels");
  EXPECT_EQ(function.getResultName(0), "loss_sum");
  EXPECT_EQ(function.getResultName(1), "token_count");
  for (unsigned index : {0u, 1u})
    EXPECT_EQ(function.getArgAttrOfType<IntegerAttr>(index, graph::FuncOp::kLimitAttr).getInt(), config.vocabulary);
}

TEST_P(Import, SignatureOfGenerate) {
  OwningOpRef<ModuleOp> module = importGenerate(11);
  auto function = graph::FuncOp::find(*module, graph::FunctionPart::Generate);
  ASSERT_TRUE(function);
  EXPECT_FALSE(graph::FuncOp::find(*module, graph::FunctionPart::Loss));
  EXPECT_EQ(function.getArgumentTypes(), ArrayRef<Type>({tensor({1, 11}, i32()), tensor({1}, i32())}));
  EXPECT_EQ(function.getResultTypes(), ArrayRef<Type>({tensor({1, config.vocabulary}, f32())}));
  EXPECT_EQ(function.getArgName(1), "position");
  EXPECT_EQ(function.getResultName(0), "logits");
  EXPECT_EQ(function.getArgAttrOfType<IntegerAttr>(1, graph::FuncOp::kLimitAttr).getInt(), 11);
}

TEST_P(Import, GenerateProjectsOneRow) {
  OwningOpRef<ModuleOp> module = importGenerate(11);
  module->walk([&](graph::DotGeneralOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getShape().back() == config.vocabulary)
      EXPECT_EQ(type.getNumElements(), config.vocabulary);
  });
}

TEST_P(Import, WeightsAreNeverTransposed) {
  OwningOpRef<ModuleOp> module = importTrain(2, 5);
  module->walk([&](graph::TransposeOp op) { ADD_FAILURE() << print(op); });
}

TEST_P(Import, TextIsReadBack) {
  OwningOpRef<ModuleOp> module = importTrain(1, 1);
  std::string text = print(*module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  ASSERT_TRUE(again);
  EXPECT_EQ(print(*again), text);
}

TEST_P(Import, SameInputGivesTheSameGraph) {
  EXPECT_EQ(print(*importTrain(2, 5), /*withLocations=*/true), print(*importTrain(2, 5), /*withLocations=*/true));
}

TEST_P(Import, EveryOperationNamesItsModule) {
  OwningOpRef<ModuleOp> module = importTrain(2, 5);
  std::set<std::string> names;
  module->walk([&](Operation *op) {
    auto location = dyn_cast<NameLoc>(op->getLoc());
    ASSERT_TRUE(location) << print(op);
    names.insert(location.getName().str());
  });
  bool isGpt2 = config.family->name == "gpt2";
  for (const char *name : {isGpt2 ? "transformer.h.1.mlp.c_fc" : "model.layers.1.mlp.gate_proj",
                           isGpt2 ? "transformer.h.0.attn" : "model.layers.0.self_attn",
                           isGpt2 ? "transformer.ln_f" : "model.norm", "lm_head", "loss"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST_P(Import, SizesOfOneAndTheLongest) {
  EXPECT_TRUE(importTrain(1, 1));
  EXPECT_TRUE(importTrain(1, config.maxPositions));
  EXPECT_TRUE(importGenerate(1));
  EXPECT_TRUE(importGenerate(config.maxPositions));
}

TEST_P(Import, OptionsThatDoNotFit) {
  struct Bad {
    ImportOptions options;
    std::string says;
  };
  const int64_t largest = std::numeric_limits<int64_t>::max();
  const Bad bads[] = {
      {{.batch = 1, .seq = 0}, "use 1 to " + std::to_string(config.maxPositions)},
      {{.batch = 1, .seq = -3}, "a sequence of -3 positions"},
      {{.batch = 1, .seq = config.maxPositions + 1}, "use 1 to " + std::to_string(config.maxPositions)},
      {{.batch = 0, .seq = 2}, "a batch of 0 sequences"},
      {{.batch = largest, .seq = 2}, "use 1 to 1073741824"},
      {{.mode = ImportMode::Generate, .batch = 2, .seq = 2}, "one sequence at a time, not a batch of 2"},
  };
  for (const Bad &bad : bads) {
    absl::Status status = importModel(context, config, bad.options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says));
  }
}

/// The kinds of GELU in the graph of GPT-2 with this "activation_function".
static std::set<graph::GeluKind> kindsOfGelu(const std::string &activation) {
  absl::StatusOr<ModelConfig> config = parseConfig(
      R"({"model_type": "gpt2", "vocab_size": 7, "n_embd": 4, "n_layer": 2, "n_head": 2, "n_positions": 3)" +
          activation + "}",
      "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  std::set<graph::GeluKind> kinds;
  MLIRContext context;
  if (!config.ok())
    return kinds;
  absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, *config, {.batch = 1, .seq = 2});
  EXPECT_TRUE(module.ok()) << module.status();
  if (module.ok())
    (**module)->walk([&](graph::GeluOp op) { kinds.insert(op.getKind()); });
  return kinds;
}

TEST(ImportGpt2, NamesOfGelu) {
  using testing::ElementsAre;
  EXPECT_THAT(kindsOfGelu(""), ElementsAre(graph::GeluKind::Tanh));
  EXPECT_THAT(kindsOfGelu(R"(, "activation_function": "gelu_new")"), ElementsAre(graph::GeluKind::Tanh));
  EXPECT_THAT(kindsOfGelu(R"(, "activation_function": "gelu_pytorch_tanh")"), ElementsAre(graph::GeluKind::Tanh));
  EXPECT_THAT(kindsOfGelu(R"(, "activation_function": "gelu")"), ElementsAre(graph::GeluKind::Erf));
}

/// The windows of attention in the graph of Mistral with this "sliding_window", for 7 positions.
static std::set<int64_t> windowsOf(const std::string &window) {
  absl::StatusOr<ModelConfig> config =
      parseConfig(R"({"model_type": "mistral", "vocab_size": 7, "hidden_size": 8, "intermediate_size": 5,
                      "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                      "max_position_embeddings": 9)" +
                      window + "}",
                  "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  std::set<int64_t> windows;
  MLIRContext context;
  if (!config.ok())
    return windows;
  absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, *config, {.batch = 1, .seq = 7});
  EXPECT_TRUE(module.ok()) << module.status();
  if (module.ok())
    (**module)->walk([&](graph::AttentionOp op) { windows.insert(op.getWindow()); });
  return windows;
}

TEST(ImportMistral, Windows) {
  using testing::ElementsAre;
  EXPECT_THAT(windowsOf(R"(, "sliding_window": 5)"), ElementsAre(5));
  EXPECT_THAT(windowsOf(R"(, "sliding_window": 1)"), ElementsAre(1));
  EXPECT_THAT(windowsOf(R"(, "sliding_window": null)"), ElementsAre(0)) << "none";
  EXPECT_THAT(windowsOf(""), ElementsAre(4096)) << "that of the first version";
}

TEST(ImportMistral, AShorterSequenceIsStillLongerThanTheWindow) {
  ModelConfig config = configOf("mistral-tiny");
  EXPECT_EQ(config.architecture->shortened(64, 7), nullptr) << "3 of 7 keys already";
  EXPECT_EQ(config.architecture->shortened(3, 2), nullptr) << "the window hides nothing";
  auto shorter = config.architecture->shortened(64, 3);
  ASSERT_TRUE(shorter);
  config.architecture = shorter;
  config.maxPositions = 3;
  MLIRContext context;
  absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, config, {.batch = 1, .seq = 3});
  ASSERT_TRUE(module.ok()) << module.status();
  (**module)->walk([&](graph::AttentionOp op) { EXPECT_EQ(op.getWindow(), 1); });
}

TEST(ImportQwen3, HeadsAreNormalisedInFrontOfRotaryPositions) {
  MLIRContext context;
  absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, configOf("qwen3-tiny"), {.batch = 2, .seq = 5});
  ASSERT_TRUE(module.ok()) << module.status();
  int ropes = 0;
  (**module)->walk([&](graph::RopeOp op) {
    auto norm = op->getOperand(0).getDefiningOp<graph::RmsNormOp>();
    ASSERT_TRUE(norm);
    EXPECT_EQ(cast<RankedTensorType>(norm.getType()).getShape().back(), 12);
    ++ropes;
  });
  EXPECT_EQ(ropes, 4);
}

/// The facts of published files, a line each: {"name", "config", "refused"}, the last where the model is refused, with
/// a part of the reason.
TEST(ImportPublished, EachCompilesToTheGraphOrIsRefusedForAReason) {
  std::ifstream lines(BOWLINE_TEST_DIR "/Unit/Frontends/published-configs.jsonl");
  std::map<absl::string_view, int> compiled;
  int refused = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json file = nlohmann::json::parse(line);
    const auto name = file.at("name").get<std::string>();
    absl::StatusOr<ModelConfig> config = parseConfig(file.at("config").dump(), name);
    if (file.contains("refused")) {
      EXPECT_THAT(std::string(config.status().message()), HasSubstr(file.at("refused").get<std::string>())) << name;
      ++refused;
      continue;
    }
    ASSERT_TRUE(config.ok()) << name << ": " << config.status();
    MLIRContext context;
    absl::StatusOr<OwningOpRef<ModuleOp>> module = importModel(context, *config, {.batch = 1, .seq = 8});
    ASSERT_TRUE(module.ok()) << name << ": " << module.status();
    EXPECT_TRUE(succeeded(verify(**module))) << name;
    ++compiled[config->family->name];
  }
  EXPECT_EQ(compiled, (std::map<absl::string_view, int>{
                          {"gpt2", 6}, {"llama", 33}, {"mistral", 3}, {"qwen2", 16}, {"qwen3", 9}}));
  EXPECT_EQ(refused, 1);
}
