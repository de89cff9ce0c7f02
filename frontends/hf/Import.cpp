//===- Import.cpp - From a Hugging Face configuration to a graph
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Import.h"

#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

/// Up to this many tokens or sequences, 32 bits suffice to count, and no product of an address overflows.
static constexpr int64_t kMostServed = int64_t{1} << 20;

/// Above, tokens are as likely as each other in f32, whatever their logits.
static constexpr int64_t kMostTemperature = int64_t{1} << 30;

static absl::Status checkServe(const ModelConfig &config, const ServeSizes &sizes) {
  auto invalid = [](auto &&...parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  if (sizes.context < 1 || sizes.context > config.maxPositions)
    return invalid("a context of ", sizes.context, " tokens does not fit this ", config.family->name,
                   " model; use 1 to ", config.maxPositions, ", ", config.positionsSource);
  if (sizes.sequences < 1 || sizes.sequences > kMostServed)
    return invalid("a batch of ", sizes.sequences, " sequences is not supported; use 1 to ", kMostServed);
  if (sizes.buckets.empty() || sizes.buckets.front() < 1 || sizes.buckets.back() > kMostServed ||
      !llvm::is_sorted(sizes.buckets, std::less_equal<>()))
    return invalid("buckets are numbers of tokens from 1 to ", kMostServed, " that ascend, such as 1,8,64");
  if (sizes.blockTokens < 1 || sizes.blockTokens > kMostServed)
    return invalid("blocks of ", sizes.blockTokens, " tokens are not supported; use 1 to ", kMostServed);
  // The flag does not count the first block, which holds nothing.
  constexpr int64_t kMostBlocks = int64_t{1} << 30;
  if (sizes.blocks > kMostBlocks)
    return invalid("a cache of ", sizes.blocks - 1, " blocks is not supported; use from ", sizes.listed(), " to ",
                   kMostBlocks - 1, " blocks");
  if (sizes.blocks <= sizes.listed())
    return invalid("a cache of ", sizes.blocks - 1, " blocks does not hold one context of ", sizes.context,
                   " tokens; use from ", sizes.listed(), " to ", kMostBlocks - 1, " blocks");
  if (!isCacheType(sizes.cacheType))
    return invalid("a cache of ", sizes.cacheType, " is not supported; use one of ", cacheTypeNames());
  return absl::OkStatus();
}

static absl::Status checkOptions(const ModelConfig &config, const ImportOptions &options) {
  if (options.mode == ImportMode::Serve)
    return checkServe(config, options.serve);
  if (options.seq < 1 || options.seq > config.maxPositions)
    return absl::InvalidArgumentError(absl::StrCat("a sequence of ", options.seq, " positions does not fit this ",
                                                   config.family->name, " model; use 1 to ", config.maxPositions, ", ",
                                                   config.positionsSource));
  if (options.batch < 1 || options.batch > kMaxTokens / options.seq)
    return absl::InvalidArgumentError(absl::StrCat("a batch of ", options.batch, " sequences of ", options.seq,
                                                   " positions is not supported; use 1 to ", kMaxTokens / options.seq));
  if (options.mode == ImportMode::Generate && options.batch != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("generation takes one sequence at a time, not a batch of ", options.batch));
  return absl::OkStatus();
}

namespace {

struct Port {
  StringRef name;
  RankedTensorType type;
  int64_t limit; // integer values are below it; 0: no limit
};

/// Builds the function that the options ask for.
class Importer {
public:
  Importer(MLIRContext &context, const ModelConfig &config, const ImportOptions &options)
      : config(config), options(options), b(context, config) {}

  OwningOpRef<ModuleOp> build() {
    absl::string_view family = config.family->name;
    b.at(StringRef(family.data(), family.size()));
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.ops().getLoc());
    b.ops().setInsertionPointToEnd(module->getBody());
    b.declareParameters(options.blocks);
    switch (options.mode) {
    case ImportMode::Train:
      buildLoss();
      break;
    case ImportMode::Generate:
      buildGenerate();
      break;
    case ImportMode::Serve:
      buildSteps(*module);
      break;
    }
    return module;
  }

private:
  /// Creates a function and continues inside it.
  Block::BlockArgListType beginFunction(graph::FunctionPart part, StringRef name, ArrayRef<Port> arguments,
                                        ArrayRef<Port> results) {
    auto typeOf = [](const Port &port) -> Type { return port.type; };
    auto type = b.ops().getFunctionType(llvm::map_to_vector(arguments, typeOf), llvm::map_to_vector(results, typeOf));
    b.at(name);
    auto function = graph::FuncOp::create(b.ops(), name, type, part);
    for (auto [index, port] : llvm::enumerate(arguments)) {
      function.setArgAttr(index, graph::FuncOp::kNameAttr, b.ops().getStringAttr(port.name));
      if (port.limit > 0)
        function.setArgAttr(index, graph::FuncOp::kLimitAttr, b.ops().getI64IntegerAttr(port.limit));
    }
    for (auto [index, port] : llvm::enumerate(results))
      function.setResultAttr(index, graph::FuncOp::kNameAttr, b.ops().getStringAttr(port.name));
    Block &block = function.getBody().emplaceBlock();
    for (const Port &port : arguments)
      block.addArgument(port.type, NameLoc::get(b.ops().getStringAttr(port.name)));
    b.ops().setInsertionPointToStart(&block);
    return block.getArguments();
  }

  Value layers(Value tokens) { return config.architecture->buildLayers(b, config, tokens); }

  Value logits(Value hidden) {
    hidden = config.architecture->buildFinalNorm(b, config, hidden);
    b.at("lm_head");
    return b.linear(hidden, b.read(config.tiedEmbeddings ? "embed" : "head"));
  }

  Value sum(Value x) {
    return graph::ReduceOp::create(b.ops(), graph::ReduceKind::Sum, x,
                                   llvm::to_vector(llvm::seq<int64_t>(0, b.typeOf(x).getRank())));
  }

  void buildLoss() {
    RankedTensorType ids = b.i32({options.batch, options.seq}), scalar = b.f32({});
    auto arguments = beginFunction(graph::FunctionPart::Loss, "loss",
                                   {{"tokens", ids, config.vocabulary}, {"labels", ids, config.vocabulary}},
                                   {{"loss_sum", scalar, 0}, {"token_count", scalar, 0}});
    Value predictions = logits(layers(arguments[0])), labels = arguments[1];
    b.at("loss");
    auto losses = graph::SoftmaxCrossEntropyOp::create(b.ops(), predictions, labels);
    graph::ReturnOp::create(b.ops(), ValueRange{sum(losses.getLoss()), sum(labelPresence(labels))});
  }

  /// 1 where a position has a label, 0 where it is absent.
  Value labelPresence(Value labels) {
    RankedTensorType type = b.typeOf(labels);
    Value zero = arith::ConstantOp::create(b.ops(), DenseElementsAttr::get(type, int32_t{0}));
    Value present = arith::CmpIOp::create(b.ops(), arith::CmpIPredicate::sge, labels, zero);
    return arith::UIToFPOp::create(b.ops(), b.f32(type.getShape()), present);
  }

  void buildGenerate() {
    auto arguments =
        beginFunction(graph::FunctionPart::Generate, "logits",
                      {{"tokens", b.i32({1, options.seq}), config.vocabulary}, {"position", b.i32({1}), options.seq}},
                      {{"logits", b.f32({1, config.vocabulary}), 0}});
    Value hidden = layers(arguments[0]);
    // One row is enough: the projection to the vocabulary would be the largest of all.
    b.at("generate");
    hidden = b.reshape(hidden, {options.seq, config.hidden});
    hidden = graph::GatherOp::create(b.ops(), hidden, arguments[1]);
    Value result = logits(hidden);
    b.at("generate");
    graph::ReturnOp::create(b.ops(), ValueRange{result});
  }

  void buildSteps(ModuleOp module) {
    b.at("serve");
    PagedCache::declare(b.ops(), options.serve, config.layers, config.kvHeads, config.headDim);
    for (int64_t bucket : options.serve.buckets) {
      b.ops().setInsertionPointToEnd(module.getBody());
      buildStep(bucket);
    }
  }

  /// A step of `bucket` tokens has at most as many sequences.
  void buildStep(int64_t bucket) {
    const ServeSizes &sizes = options.serve;
    int64_t sequences = std::min(sizes.sequences, bucket);
    auto arguments = beginFunction(graph::FunctionPart::Step, ("step." + Twine(bucket)).str(),
                                   {{"tokens", b.i32({bucket}), config.vocabulary},
                                    {"rows", b.i32({sequences + 1}), bucket + 1},
                                    {"lengths", b.i32({sequences}), sizes.context + 1},
                                    {"blocks", b.i32({sequences, sizes.listed()}), sizes.blocks},
                                    {"sample", b.i32({sequences}), bucket},
                                    {"temperature", b.f32({sequences}), kMostTemperature},
                                    {"top_k", b.i32({sequences}), config.vocabulary + 1},
                                    {"top_p", b.f32({sequences}), 1},
                                    {"seeds", b.i32({sequences, 2}), 0},
                                    {"wanted", b.i32({sequences}), kLikelyTokens + 2}},
                                   stepResults(sequences));
    Operation *function = arguments[0].getOwner()->getParentOp();
    function->setAttr(plan::PlanDialect::kSequencesAttr,
                      plan::SequencesAttr::get(b.ops().getContext(), "rows", "lengths", "blocks", bucket,
                                               sizes.blockTokens, sizes.blocks));
    b.at("serve");
    Value positions = graph::SequencePositionsOp::create(b.ops(), b.i32({bucket}), arguments[1], arguments[2]);
    b.serveFrom(PagedCache(arguments[1], arguments[2], arguments[3], positions));
    Value hidden = layers(b.reshape(arguments[0], {1, bucket}));
    b.at("serve");
    hidden = graph::GatherOp::create(b.ops(), b.reshape(hidden, {bucket, config.hidden}), arguments[4]);
    Value predictions = logits(hidden);
    b.at("serve");
    SmallVector<Type> types;
    for (const Port &port : stepResults(sequences))
      types.push_back(port.type);
    types.resize(4);
    auto sampled = graph::SampleTokensOp::create(b.ops(), types,
                                                 ValueRange{predictions, arguments[5], arguments[6], arguments[7],
                                                            arguments[8], /*positions=*/arguments[2], arguments[9]});
    SmallVector<Value> results(sampled->getResults());
    if (sizes.logits)
      results.push_back(predictions);
    graph::ReturnOp::create(b.ops(), results);
  }

  /// Results of sample_tokens, and the logits if they are asked for.
  SmallVector<Port> stepResults(int64_t sequences) {
    SmallVector<Port> results = {{"sampled", b.i32({sequences}), 0},
                                 {"logprobs", b.f32({sequences}), 0},
                                 {"likely", b.i32({sequences, kLikelyTokens}), 0},
                                 {"likely_logprobs", b.f32({sequences, kLikelyTokens}), 0}};
    if (options.serve.logits)
      results.push_back({"logits", b.f32({sequences, config.vocabulary}), 0});
    return results;
  }

  const ModelConfig &config;
  const ImportOptions &options;
  ModelBuilder b;
};

} // namespace

absl::StatusOr<OwningOpRef<ModuleOp>> hf::importModel(MLIRContext &context, const ModelConfig &config,
                                                      const ImportOptions &options) {
  BOWLINE_RETURN_IF_ERROR(checkOptions(config, options));
  context.loadDialect<graph::GraphDialect, plan::PlanDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> module = Importer(context, config, options).build();
  if (failed(verify(*module)))
    return absl::InternalError("the imported graph does not verify; see the diagnostics");
  return module;
}
