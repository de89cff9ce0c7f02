//===- Differentiate.cpp - The function that runs per microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Training/Gradients.h"
#include "passes/Training/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace bowline {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class Differentiate : public bowline::impl::DifferentiateBase<Differentiate> {
public:
  using DifferentiateBase::DifferentiateBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    auto loss = graph::FuncOp::find(module, graph::FunctionPart::Loss);
    if (!loss) {
      module.emitError("no function to differentiate: mark one as the loss, 'graph.func loss @name'");
      return signalPassFailure();
    }
    if (failed(checkLoss(loss)) || failed(checkModule(module)) || failed(buildMicrobatch(module, loss)))
      signalPassFailure();
  }

private:
  LogicalResult checkLoss(graph::FuncOp loss) {
    auto scalar = RankedTensorType::get({}, Float32Type::get(&getContext()));
    if (loss.getResultTypes() == ArrayRef<Type>{scalar, scalar})
      return success();
    return loss.emitOpError("must return two tensor<f32>: the summed loss and the number of positions");
  }

  LogicalResult checkModule(ModuleOp module) {
    if (llvm::none_of(module.getOps<graph::ParamOp>(), [](graph::ParamOp param) { return param.isTrained(); }))
      return module.emitError("has no graph.param to train; declare one that is not frozen, or compile with --mode "
                              "generate");
    for (auto part : {graph::FunctionPart::Begin, graph::FunctionPart::Microbatch})
      if (auto taken = graph::FuncOp::find(module, part))
        return taken.emitOpError("is the part '")
               << stringifyFunctionPart(part) << "' of a training step, which differentiate builds; remove that word";
    return success();
  }

  LogicalResult buildMicrobatch(ModuleOp module, graph::FuncOp loss) {
    auto function = loss.clone();
    function.setName("train_microbatch");
    function.setPart(graph::FunctionPart::Microbatch);
    function.setFunctionType(FunctionType::get(&getContext(), loss.getArgumentTypes(), {}));
    function.removeResAttrsAttr();
    SymbolTable(module).insert(function, std::next(loss->getIterator()));

    Operation *terminator = function.getBody().front().getTerminator();
    Value lossSum = terminator->getOperand(0), tokenCount = terminator->getOperand(1);
    terminator->setOperands({});

    // Every read of a trained parameter contributes to its gradient.
    SmallVector<Value> reads;
    SmallVector<graph::ParamOp> readParams;
    SymbolTable symbols(module);
    function.walk([&](graph::ReadOp read) {
      if (auto param = symbols.lookup<graph::ParamOp>(read.getVariable()); param && param.isTrained()) {
        reads.push_back(read.getResult());
        readParams.push_back(param);
      }
    });

    ImplicitLocOpBuilder builder(NameLoc::get(StringAttr::get(&getContext(), "loss")), terminator);
    auto scalar = cast<RankedTensorType>(lossSum.getType());
    Value seed = arith::ConstantOp::create(builder, DenseElementsAttr::get(scalar, 1.0f));
    FailureOr<SmallVector<Value>> grads = buildGradients(builder, lossSum, seed, reads);
    if (failed(grads))
      return failure();

    llvm::MapVector<Operation *, Value> perParam;
    for (auto [param, grad] : llvm::zip_equal(readParams, *grads)) {
      Value &sum = perParam[param];
      if (sum && grad)
        sum = arith::AddFOp::create(builder, param.getLoc(), sum, grad);
      else if (grad)
        sum = grad;
    }
    for (auto param : llvm::to_vector(module.getOps<graph::ParamOp>())) {
      if (!param.isTrained())
        continue;
      Value grad = perParam.lookup(param);
      if (!grad)
        return param.emitOpError("has no influence on the loss; remove it, make it 'frozen', or make the loss use it");
      accumulate(builder, param, (param.getName() + ".grad").str(), grad, param.getLoc(),
                 FlatSymbolRefAttr::get(param));
    }
    accumulate(builder, function, training::kLossSum.str(), lossSum, builder.getLoc(), {});
    accumulate(builder, function, training::kTokenCount.str(), tokenCount, builder.getLoc(), {});
    if (dist::microbatchesOf(module) > 1)
      buildBegin(module, function);
    return success();
  }

  /// The function that clears every accumulator.
  void buildBegin(ModuleOp module, graph::FuncOp microbatch) {
    ImplicitLocOpBuilder builder(microbatch.getLoc(), microbatch);
    SymbolTable symbols(module);
    auto begin =
        graph::FuncOp::create(builder, "train_begin", builder.getFunctionType({}, {}), graph::FunctionPart::Begin);
    symbols.insert(begin);
    builder.setInsertionPointToStart(&begin.getBody().emplaceBlock());
    for (auto state : module.getOps<graph::StateOp>()) {
      if (!state.isAccumulator())
        continue;
      builder.setLoc(state.getLoc());
      Value zero = arith::ConstantOp::create(builder, cast<TypedAttr>(builder.getZeroAttr(state.getTensorType())));
      graph::WriteOp::create(builder, state.getName(), zero);
    }
    graph::ReturnOp::create(builder);
  }

  /// Adds `value` to the accumulator `name`, of a parameter or of none, which is declared before `anchor`.
  void accumulate(ImplicitLocOpBuilder &builder, Operation *anchor, const std::string &name, Value value,
                  Location location, FlatSymbolRefAttr param) {
    OpBuilder declarations(anchor);
    declarations.setInsertionPointAfter(anchor);
    if (isa<graph::FuncOp>(anchor))
      declarations.setInsertionPoint(anchor);
    graph::StateOp::create(declarations, location, name, graph::Lifetime::Run, cast<RankedTensorType>(value.getType()),
                           graph::FillAttr::get(&getContext(), 0.0), param);
    builder.setLoc(NameLoc::get(builder.getStringAttr("gradient"), location));
    if (dist::microbatchesOf(getOperation()) > 1) {
      Value sum = graph::ReadOp::create(builder, value.getType(), name);
      value = arith::AddFOp::create(builder, sum, value);
    }
    graph::WriteOp::create(builder, name, value);
  }
};

} // namespace
