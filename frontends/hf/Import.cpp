//===- Import.cpp - From a Hugging Face configuration to a graph
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Import.h"

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

/// Positions of one call. Times the largest width of a model, their number stays below 2^62.
static constexpr int64_t kMaxTokens = int64_t{1} << 31;

static absl::Status checkOptions(const ModelConfig &config, const ImportOptions &options) {
  if (options.seq < 1 || options.seq > config.maxPositions)
    return absl::InvalidArgumentError(absl::StrCat("a sequence of ", options.seq, " positions does not fit this ",
                                                   config.family->name, " model; use 1 to ", config.maxPositions,
                                                   ", as config.json says"));
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
    b.declareParameters();
    if (options.mode == ImportMode::Train)
      buildLoss();
    else
      buildGenerate();
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

  const ModelConfig &config;
  const ImportOptions &options;
  ModelBuilder b;
};

} // namespace

absl::StatusOr<OwningOpRef<ModuleOp>> hf::importModel(MLIRContext &context, const ModelConfig &config,
                                                      const ImportOptions &options) {
  BOWLINE_RETURN_IF_ERROR(checkOptions(config, options));
  context.loadDialect<graph::GraphDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> module = Importer(context, config, options).build();
  if (failed(verify(*module)))
    return absl::InternalError("the imported graph does not verify; see the diagnostics");
  return module;
}
