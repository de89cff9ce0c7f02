//===- SelectKernels.cpp - Decide for every operation which kernel runs it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Fusion/EpilogueFusion.h"
#include "passes/Fusion/KernelDeclarations.h"
#include "passes/Fusion/Passes.h"
#include "passes/Fusion/StridedMatmul.h"
#include "llvm/ADT/TypeSwitch.h"

namespace bowline {
#define GEN_PASS_DEF_SELECTKERNELS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

/// What a registered kernel is called with.
struct Choice {
  StringRef kernel;
  SmallVector<NamedAttribute> config;
};

class SelectKernels : public bowline::impl::SelectKernelsBase<SelectKernels> {
public:
  using SelectKernelsBase::SelectKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<graph::FuncOp>())
      makeContractionsStrided(function);
    for (auto function : module.getOps<graph::FuncOp>())
      repeatConstants(function);
    KernelDeclarations kernels(module, threads);
    for (auto function : module.getOps<graph::FuncOp>())
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        if (failed(select(&op, kernels)))
          return signalPassFailure();
  }

private:
  /// Filling each place is cheaper than filling one and copying it.
  void repeatConstants(graph::FuncOp function) {
    for (auto constant : llvm::to_vector(function.getBody().front().getOps<arith::ConstantOp>())) {
      if (!isFillable(constant))
        continue;
      for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(constant->getUses()))) {
        OpBuilder builder(use.getOwner());
        use.set(builder.clone(*constant)->getResult(0));
      }
    }
  }

  /// Contractions that strides cannot express get operands in the order batch, free, contracted.
  void makeContractionsStrided(graph::FuncOp function) {
    for (auto dot : llvm::to_vector(function.getBody().front().getOps<graph::DotGeneralOp>())) {
      if (StridedMatmul::of(dot))
        continue;
      OpBuilder builder(dot);
      auto rearrange = [&](Value side, ArrayRef<int64_t> batch, ArrayRef<int64_t> free, ArrayRef<int64_t> contract) {
        SmallVector<int64_t> perm = llvm::to_vector(llvm::concat<const int64_t>(batch, free, contract));
        return storedTranspose(builder, dot.getLoc(), side, perm);
      };
      Value lhs = rearrange(dot.getLhs(), dot.getLhsBatch(), dot.getLhsFree(), dot.getLhsContract());
      Value rhs = rearrange(dot.getRhs(), dot.getRhsBatch(), dot.getRhsFree(), dot.getRhsContract());
      int64_t batch = dot.getLhsBatch().size(), contract = dot.getLhsContract().size();
      auto range = [](int64_t begin, int64_t end) { return llvm::to_vector(llvm::seq(begin, end)); };
      int64_t lhsRank = dot.getLhs().getType().getRank(), rhsRank = dot.getRhs().getType().getRank();
      auto strided =
          graph::DotGeneralOp::create(builder, dot.getLoc(), lhs, rhs, range(0, batch), range(0, batch),
                                      range(lhsRank - contract, lhsRank), range(rhsRank - contract, rhsRank));
      strided.getResult().setType(dot.getType());
      dot.replaceAllUsesWith(strided.getResult());
      dot.erase();
    }
  }

  /// A transpose in a fusion of its own, as every generated operation is at this point.
  Value storedTranspose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> perm) {
    if (llvm::is_sorted(perm))
      return value;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = llvm::map_to_vector(perm, [&](int64_t dim) { return type.getDimSize(dim); });
    auto fusion = graph::FusionOp::create(builder, loc, TypeRange{type.clone(shape)}, value);
    OpBuilder::InsertionGuard guard(builder);
    Block &body = fusion.getBody().emplaceBlock();
    Value argument = body.addArgument(type, loc);
    builder.setInsertionPointToStart(&body);
    Value transposed = graph::TransposeOp::create(builder, loc, argument, perm);
    graph::YieldOp::create(builder, loc, transposed);
    return fusion.getResult(0);
  }

  /// Whether a part may go beyond the end of the whole.
  static bool isPadded(graph::RandomOp random) {
    if (!random.getWhole())
      return false;
    bool padded = false;
    for (auto [dim, whole, part] : llvm::enumerate(*random.getWhole(), random.getType().getShape()))
      padded |= llvm::is_contained(random.getCutDims(), static_cast<int64_t>(dim)) ? whole % part != 0 : whole < part;
    return padded;
  }

  LogicalResult select(Operation *op, KernelDeclarations &kernels) {
    if (isa<graph::ReadOp, graph::WriteOp, graph::ReshapeOp, graph::ReturnOp>(op) ||
        isa<dist::DistDialect, stage::StageDialect>(op->getDialect()))
      return success(); // what is no computation
    if (auto fusion = dyn_cast<graph::FusionOp>(op)) {
      graph::DotGeneralOp dot = EpilogueFusion::contractionOf(fusion);
      return dot ? callWithEpilogue(fusion, dot, kernels) : call(op, kernels.generated(fusion));
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && !isFillable(constant))
      return success(); // stored in the plan

    FailureOr<Choice> choice = choose(op);
    if (failed(choice))
      return failure();
    SmallVector<plan::ArgumentAttr> arguments;
    for (Type type : op->getOperandTypes())
      arguments.push_back(plan::ArgumentAttr::get(&getContext(), plan::Access::Read, type));
    for (Type type : op->getResultTypes())
      arguments.push_back(plan::ArgumentAttr::get(&getContext(), plan::Access::Write, type));
    auto cost = dyn_cast<graph::CostModel>(op);
    auto kernel = kernels.registered(op, choice->kernel, DictionaryAttr::get(&getContext(), choice->config), arguments,
                                     cost ? cost.flops() : 0);
    return failed(kernel) ? failure() : call(op, *kernel);
  }

  LogicalResult callWithEpilogue(graph::FusionOp fusion, graph::DotGeneralOp dot, KernelDeclarations &kernels) {
    FailureOr<Choice> choice = choose(dot);
    if (failed(choice))
      return failure();
    // The epilogue decides where results go.
    llvm::erase_if(choice->config, [](NamedAttribute attribute) { return attribute.getName() == "c_strides"; });
    auto kernel = kernels.withEpilogue(fusion, choice->kernel, DictionaryAttr::get(&getContext(), choice->config));
    return failed(kernel) ? failure() : call(fusion, *kernel);
  }

  /// One value that the fill kernel can write.
  static bool isFillable(arith::ConstantOp constant) {
    auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
    return elements && (elements.getElementType().isF32() || elements.getElementType().isInteger(32));
  }

  FailureOr<Choice> choose(Operation *op) {
    Builder b(&getContext());
    auto integer = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
    auto integers = [&](StringRef name, ArrayRef<int64_t> values) {
      return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
    };
    auto real = [&](StringRef name, double value) { return b.getNamedAttr(name, b.getF64FloatAttr(value)); };

    return llvm::TypeSwitch<Operation *, FailureOr<Choice>>(op)
        .Case([&](graph::DotGeneralOp dot) -> FailureOr<Choice> {
          StridedMatmul matmul = *StridedMatmul::of(dot);
          return Choice{"matmul",
                        {integer("batch", matmul.batch), integer("m", matmul.m), integer("n", matmul.n),
                         integer("k", matmul.k), integers("a_strides", matmul.aStrides),
                         integers("b_strides", matmul.bStrides), integers("c_strides", matmul.cStrides)}};
        })
        .Case([&](graph::AttentionOp attention) -> FailureOr<Choice> {
          return Choice{
              "attention_forward",
              {integer("causal", attention.getCausal()), real("scale", attention.getScale().convertToDouble())}};
        })
        .Case([&](graph::AttentionGradOp attention) -> FailureOr<Choice> {
          return Choice{
              "attention_backward",
              {integer("causal", attention.getCausal()), real("scale", attention.getScale().convertToDouble())}};
        })
        .Case([&](graph::GatherOp) -> FailureOr<Choice> { return Choice{"gather_rows", {}}; })
        .Case([&](graph::ScatterAddOp) -> FailureOr<Choice> { return Choice{"scatter_add_rows", {}}; })
        .Case([&](graph::RopeAnglesOp angles) -> FailureOr<Choice> {
          return Choice{"rope_angles", {real("theta", angles.getTheta().convertToDouble())}};
        })
        .Case([&](graph::RandomOp random) -> FailureOr<Choice> {
          ArrayRef<int64_t> shape = random.getResult().getType().getShape();
          Choice choice{"random_normal",
                        {integer("seed", random.getSeed()), integer("key", random.getStream()), real("mean", 0.0),
                         real("stddev", random.getStddev().convertToDouble()),
                         integers("global_shape", random.getWhole().value_or(shape)),
                         integers("offsets", SmallVector<int64_t>(shape.size(), 0))}};
          if (!random.getPlaces().empty())
            choice.config.push_back(integers("cut_dims", random.getCutDims()));
          if (isPadded(random))
            choice.config.push_back(integer("padded", 1));
          return choice;
        })
        .Case([&](arith::ConstantOp constant) -> FailureOr<Choice> {
          auto splat = cast<SplatElementsAttr>(constant.getValue());
          double value = splat.getElementType().isF32() ? splat.getSplatValue<APFloat>().convertToFloat()
                                                        : splat.getSplatValue<APInt>().getSExtValue();
          return Choice{"fill", {real("value", value)}};
        })
        .Default([](Operation *op) -> FailureOr<Choice> { return op->emitOpError("has no kernel"); });
  }

  LogicalResult call(Operation *op, plan::KernelOp kernel) {
    OpBuilder builder(op);
    auto launch =
        plan::CallOp::create(builder, op->getLoc(), op->getResultTypes(), kernel.getName(), op->getOperands());
    op->replaceAllUsesWith(launch.getResults());
    op->erase();
    return success();
  }
};

} // namespace
