//===- ConstantModels.cpp - Interfaces of arith.constant
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline::graph;

namespace {

struct ConstantInterpretModel : Interpretable::ExternalModel<ConstantInterpretModel, arith::ConstantOp> {
  LogicalResult interpret(Operation *op, ArrayRef<HostTensor>, MutableArrayRef<HostTensor> results,
                          const Arithmetic &arithmetic) const {
    auto elements = dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    if (!elements)
      return op->emitOpError("only dense tensor constants can be interpreted");
    size_t next = 0;
    if (isa<FloatType>(elements.getElementType()))
      for (APFloat value : elements.getValues<APFloat>()) {
        bool losesInfo;
        value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
        results[0].data[next++] = arithmetic.number(value.convertToDouble());
      }
    else
      for (const APInt &value : elements.getValues<APInt>())
        results[0].data[next++] = static_cast<double>(
            value.getBitWidth() == 1 ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
    return success();
  }
};

struct ConstantCostModel : CostModel::ExternalModel<ConstantCostModel, arith::ConstantOp> {
  double flops(Operation *) const { return 0; }
};

struct ConstantShardingModel : ShardingModel::ExternalModel<ConstantShardingModel, arith::ConstantOp> {
  void localize(Operation *op, LocalContext &) const { resizeSplat(op); }
  bool canSplitDims(Operation *, bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) const { return byRule; }
  void splitDims(Operation *op, ArrayRef<DimSplits>, ArrayRef<DimSplits> results) const {
    setSplitTypes(op, results);
    resizeSplat(op);
  }

private:
  /// Fits the value of a splat constant to its type, which has changed.
  static void resizeSplat(Operation *op) {
    auto constant = cast<arith::ConstantOp>(op);
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (elements && elements.isSplat())
      constant.setValueAttr(elements.resizeSplat(cast<RankedTensorType>(constant.getType())));
  }
};

struct ConstantPaddingModel : PaddingModel::ExternalModel<ConstantPaddingModel, arith::ConstantOp> {};

struct ConstantPrecisionModel : PrecisionModel::ExternalModel<ConstantPrecisionModel, arith::ConstantOp> {};

struct ConstantFusionModel : FusionModel::ExternalModel<ConstantFusionModel, arith::ConstantOp> {
  FusionRole fusionRole(Operation *op) const {
    bool isSplat = isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    return isSplat ? FusionRole::Repeated : FusionRole::None;
  }
};

/// One value is filled in; others are stored in the plan.
struct ConstantKernelModel : KernelModel::ExternalModel<ConstantKernelModel, arith::ConstantOp> {
  static StringRef kernelName() { return "fill"; }

  bool hasKernel(Operation *op) const {
    auto elements = dyn_cast<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    return elements && (elements.getElementType().isF32() || elements.getElementType().isInteger(32));
  }

  void prepareForKernel(Operation *, OpBuilder &) const {}

  DictionaryAttr kernelConfig(Operation *op, bool) const {
    auto elements = cast<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    double value = elements.getElementType().isF32() ? elements.getSplatValue<APFloat>().convertToFloat()
                                                     : elements.getSplatValue<APInt>().getSExtValue();
    return KernelConfig(op->getContext()).real("value", value).get();
  }

  static LogicalResult buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange,
                                       SmallVectorImpl<Value> &results) {
    APFloat value = use.real("value");
    RankedTensorType type = use.results[0];
    DenseElementsAttr elements;
    if (auto number = dyn_cast<FloatType>(type.getElementType())) {
      bool loses = false;
      value.convert(number.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
      elements = DenseElementsAttr::get(type, value);
    } else {
      APInt whole(type.getElementTypeBitWidth(), static_cast<int64_t>(value.convertToDouble()), /*isSigned=*/true);
      elements = DenseElementsAttr::get(type, whole);
    }
    results.push_back(arith::ConstantOp::create(builder, elements));
    return success();
  }
};

struct ConstantFactoredModel : Factored::ExternalModel<ConstantFactoredModel, arith::ConstantOp> {
  FactorRule factorRule(Operation *op) const {
    if (!isa<RankedTensorType>(op->getResult(0).getType()) ||
        isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue()))
      return alignedRule(op);
    FactorRule rule;
    rule.results = {rule.addDims(tensorType(op->getResult(0)).getShape(), FactorRule::Kind::Blocked)};
    return rule;
  }
};

} // namespace

void bowline::graph::attachConstantModels(MLIRContext *context) {
  arith::ConstantOp::attachInterface<ConstantInterpretModel, ConstantCostModel, ConstantFactoredModel,
                                     ConstantShardingModel, ConstantPaddingModel, ConstantPrecisionModel,
                                     ConstantFusionModel, ConstantKernelModel>(*context);
}
