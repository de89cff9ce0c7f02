//===- InsertOptimizer.cpp - The function that runs once per step
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Training/Passes.h"
#include "llvm/ADT/StringMap.h"

#include <numbers>

namespace bowline {
#define GEN_PASS_DEF_INSERTOPTIMIZER
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

/// torch.nn.utils.clip_grad_norm_ adds the same, so that losses can be compared.
static constexpr double kClipEpsilon = 1e-6;

namespace {

/// Arithmetic on tensors; a scalar meets a tensor by broadcast.
class Arithmetic {
public:
  explicit Arithmetic(ImplicitLocOpBuilder &builder) : builder(builder) {}

  Value constant(Value like, double value) {
    RankedTensorType type = graph::tensorType(like);
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value)));
  }
  Value spread(Value scalar, Value like) {
    if (scalar.getType() == like.getType())
      return scalar;
    return graph::BroadcastOp::create(builder, like.getType(), scalar, ArrayRef<int64_t>{});
  }
  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(builder, lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return arith::SubFOp::create(builder, lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(builder, lhs, rhs); }
  Value div(Value lhs, Value rhs) { return arith::DivFOp::create(builder, lhs, rhs); }
  Value scale(Value value, double factor) { return mul(value, constant(value, factor)); }
  Value offset(Value value, double addend) { return add(value, constant(value, addend)); }
  Value minimum(Value lhs, Value rhs) { return arith::MinimumFOp::create(builder, lhs, rhs); }
  Value sqrt(Value value) { return math::SqrtOp::create(builder, value); }
  Value toF32(Value value) {
    return arith::TruncFOp::create(builder, graph::tensorType(value).clone(builder.getF32Type()), value);
  }
  /// Sum of squares as a scalar: rows first, so that the large reduction can run in parallel.
  Value squaredNorm(Value value) {
    Value sum = mul(value, value);
    if (int64_t rank = graph::tensorType(value).getRank(); rank > 1)
      sum = graph::ReduceOp::create(builder, graph::ReduceKind::Sum, sum, ArrayRef<int64_t>{rank - 1});
    if (int64_t rank = graph::tensorType(sum).getRank(); rank > 0)
      sum = graph::ReduceOp::create(builder, graph::ReduceKind::Sum, sum, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
    return sum;
  }

private:
  ImplicitLocOpBuilder &builder;
};

class InsertOptimizer : public bowline::impl::InsertOptimizerBase<InsertOptimizer> {
public:
  using InsertOptimizerBase::InsertOptimizerBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    microbatch = graph::FuncOp::find(module, graph::FunctionPart::Microbatch);
    if (!microbatch) {
      module.emitError("no function is the part 'microbatch' of a training step; run differentiate first");
      return signalPassFailure();
    }
    if (failed(checkOptions()) || failed(checkParameters(module)))
      return signalPassFailure();
    collectParameters(module);
    for (graph::ParamOp param : params)
      declareMoments(param);
    buildUpdate(module);
  }

private:
  LogicalResult checkOptions() {
    Location loc = getOperation().getLoc();
    if (kind != "adamw" && kind != "sgd")
      return emitError(loc) << "unknown optimizer '" << kind << "'; use adamw or sgd";
    if (schedule != "constant" && schedule != "cosine")
      return emitError(loc) << "unknown learning-rate schedule '" << schedule << "'; use constant or cosine";
    if (schedule == "cosine" && decaySteps <= warmupSteps)
      return emitError(loc) << "a cosine schedule needs decay-steps (" << decaySteps.getValue()
                            << ") greater than warmup-steps (" << warmupSteps.getValue() << ")";
    return success();
  }

  LogicalResult checkParameters(ModuleOp module) {
    gradients.clear();
    for (auto state : module.getOps<graph::StateOp>())
      if (state.isAccumulator() && state.getOf())
        gradients[*state.getOf()] = state;
    bool any = false;
    for (auto param : module.getOps<graph::ParamOp>()) {
      if (!param.isTrained())
        continue;
      any = true;
      if (!param.getTensorType().getElementType().isF32())
        return param.emitOpError("has type ") << param.getTensorType() << ", but the optimizer updates f32 only";
      if (!gradients.contains(param.getName()))
        return param.emitOpError("has no accumulator of its gradient; run differentiate first");
      if (param.isMirror() && !module.lookupSymbol(*param.getMirrorOf()))
        return param.emitOpError("is a mirror of ")
               << param.getMirrorOfAttr() << ", which is not there, so that nothing would update it; add a graph.param";
    }
    return any ? success()
               : module.emitError("has no graph.param to train; declare one that is not frozen, or compile with --mode "
                                  "generate");
  }

  /// Collects the parameters that are trained. Mirrors are updated with their owners.
  void collectParameters(ModuleOp module) {
    params.clear();
    mirrors.clear();
    for (auto param : module.getOps<graph::ParamOp>())
      if (param.isMirror() && param.isTrained())
        mirrors[*param.getMirrorOf()].push_back(param);
      else if (param.isTrained())
        params.push_back(param);
  }

  bool isAdamW() const { return kind == "adamw"; }

  static std::string momentName(graph::ParamOp param, int which) {
    return (param.getName() + (which == 1 ? ".m" : ".v")).str();
  }

  void declareMoments(graph::ParamOp param) {
    if (!isAdamW())
      return;
    OpBuilder builder(param);
    builder.setInsertionPointAfter(param);
    for (int which : {1, 2})
      graph::StateOp::create(builder, param.getLoc(), momentName(param, which), StateFlags::Saved,
                             param.getTensorType(), graph::FillAttr::get(&getContext(), 0.0),
                             FlatSymbolRefAttr::get(param));
  }

  void buildUpdate(ModuleOp module) {
    ImplicitLocOpBuilder builder(NameLoc::get(StringAttr::get(&getContext(), "optimizer")), &getContext());
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto counter = RankedTensorType::get({}, builder.getI32Type());
    builder.setInsertionPoint(microbatch);
    graph::StateOp::create(builder, training::kStep, StateFlags::Saved | StateFlags::Step, counter,
                           graph::FillAttr::get(&getContext(), 0.0));

    builder.setInsertionPointToEnd(module.getBody());
    SymbolTable symbols(module);
    auto function = graph::FuncOp::create(
        builder, "train_update", builder.getFunctionType({}, {scalar, scalar, scalar}), graph::FunctionPart::Update);
    symbols.insert(function);
    constexpr StringRef results[] = {"loss", "grad_norm", "lr"};
    for (auto [index, name] : llvm::enumerate(results))
      function.setResultAttr(index, graph::FuncOp::kNameAttr, builder.getStringAttr(name));
    symbols.insert(buildEntry(builder, module, function));
    builder.setInsertionPointToStart(&function.getBody().emplaceBlock());
    Arithmetic math(builder);

    Value count = graph::ReadOp::create(builder, scalar, training::kTokenCount);
    Value one = math.constant(count, 1.0);
    Value perToken = math.div(one, count);
    Value loss = math.mul(graph::ReadOp::create(builder, scalar, training::kLossSum), perToken);

    SmallVector<Value> grads;
    Value squares;
    for (graph::ParamOp param : params) {
      builder.setLoc(NameLoc::get(builder.getStringAttr("gradient norm"), param.getLoc()));
      grads.push_back(readGradient(builder, param));
      Value square = math.squaredNorm(grads.back());
      squares = squares ? math.add(squares, square) : square;
    }
    builder.setLoc(function.getLoc());
    Value norm = math.mul(math.sqrt(squares), perToken);
    Value gradScale = perToken;
    if (clipNorm > 0) {
      Value limit = math.div(math.constant(norm, clipNorm), math.offset(norm, kClipEpsilon));
      gradScale = math.mul(perToken, math.minimum(limit, one));
    }

    Value step = nextStep(builder, counter);
    Value lrWide = learningRate(builder, math, step);
    Value lr = math.toF32(lrWide);
    // Writes come last, so that nothing stands between the computations of one parameter's update.
    SmallVector<std::pair<std::string, Value>> writes = {{training::kStep.str(), stepCounter}};
    Moments moments = isAdamW() ? biasCorrections(builder, math, step, lrWide) : Moments();
    for (auto [param, grad] : llvm::zip_equal(params, grads)) {
      builder.setLoc(NameLoc::get(builder.getStringAttr("optimizer"), param.getLoc()));
      Value value = graph::ReadOp::create(builder, param.getTensorType(), param.getName());
      Value scaled = math.mul(grad, math.spread(gradScale, grad));
      if (isAdamW())
        updateAdamW(builder, math, param, value, scaled, lr, moments, writes);
      else
        writes.emplace_back(param.getName().str(), math.sub(value, math.mul(scaled, math.spread(lr, value))));
    }
    builder.setLoc(function.getLoc());
    appendMirrors(builder, writes);
    for (auto &[name, value] : writes)
      graph::WriteOp::create(builder, name, value);
    graph::ReturnOp::create(builder, ValueRange{loss, norm, lr});
  }

  static int64_t stageOf(graph::ParamOp param) {
    ArrayRef<int64_t> index = stage::indexOf(param);
    return index.empty() ? 0 : index.front();
  }

  /// The gradient of a parameter, of whose sum its mirrors have parts.
  Value readGradient(ImplicitLocOpBuilder &builder, graph::ParamOp param) {
    auto read = [&](graph::ParamOp accumulated) -> Value {
      return graph::ReadOp::create(builder, accumulated.getTensorType(),
                                   gradients.lookup(accumulated.getName()).getName());
    };
    Value grad = read(param);
    for (graph::ParamOp mirror : mirrors.lookup(param.getName())) {
      Value part = stage::createTransfers(builder, builder.getLoc(), read(mirror), stageOf(mirror), stageOf(param));
      grad = arith::AddFOp::create(builder, grad, part);
    }
    return grad;
  }

  /// New values of parameters go to their mirrors.
  void appendMirrors(ImplicitLocOpBuilder &builder, SmallVectorImpl<std::pair<std::string, Value>> &writes) {
    for (graph::ParamOp param : params)
      for (graph::ParamOp mirror : mirrors.lookup(param.getName())) {
        auto *own = llvm::find_if(writes, [&](const auto &write) { return write.first == param.getName(); });
        Value value = stage::createTransfers(builder, NameLoc::get(builder.getStringAttr("optimizer"), param.getLoc()),
                                             own->second, stageOf(param), stageOf(mirror));
        writes.emplace_back(mirror.getName().str(), value);
      }
  }

  graph::EntryOp buildEntry(ImplicitLocOpBuilder &builder, ModuleOp module, graph::FuncOp update) {
    SmallVector<Attribute> functions;
    SmallVector<int64_t> repeat;
    if (auto begin = graph::FuncOp::find(module, graph::FunctionPart::Begin)) {
      functions.push_back(FlatSymbolRefAttr::get(begin));
      repeat.push_back(1);
    }
    functions.push_back(FlatSymbolRefAttr::get(microbatch));
    functions.push_back(FlatSymbolRefAttr::get(update));
    repeat.append({dist::microbatchesOf(module), 1});
    return graph::EntryOp::create(builder, EntryKind::TrainStep, "train_step", builder.getArrayAttr(functions), repeat);
  }

  /// Increments the step counter; returns it as f64 and leaves its new value in `stepCounter`.
  Value nextStep(ImplicitLocOpBuilder &builder, RankedTensorType counter) {
    Value old = graph::ReadOp::create(builder, counter, training::kStep);
    Value increment = arith::ConstantOp::create(builder, DenseElementsAttr::get(counter, builder.getI32IntegerAttr(1)));
    stepCounter = arith::AddIOp::create(builder, old, increment);
    return arith::SIToFPOp::create(builder, RankedTensorType::get({}, builder.getF64Type()), stepCounter);
  }

  /// The learning rate of step `step` (f64, from 1).
  Value learningRate(ImplicitLocOpBuilder &builder, Arithmetic &math, Value step) {
    Value peak = math.constant(step, lr);
    Value rate = peak;
    if (schedule == "cosine") {
      double span = static_cast<double>(decaySteps - warmupSteps);
      Value progress = math.scale(math.offset(step, -static_cast<double>(warmupSteps)), 1 / span);
      progress = math.minimum(progress, math.constant(step, 1.0));
      Value cosine = math::CosOp::create(builder, math.scale(progress, std::numbers::pi));
      rate = math.offset(math.scale(math.offset(cosine, 1.0), 0.5 * (lr - minLr)), minLr);
    }
    if (warmupSteps > 0) {
      Value warmup = math.scale(step, lr / static_cast<double>(warmupSteps));
      Value warming = arith::CmpFOp::create(builder, arith::CmpFPredicate::OLE, step,
                                            math.constant(step, static_cast<double>(warmupSteps)));
      rate = arith::SelectOp::create(builder, warming, warmup, rate);
    }
    return rate;
  }

  struct Moments {
    Value stepSize;    // lr / (1 - beta1^t)
    Value rootScale;   // 1 / sqrt(1 - beta2^t)
    Value decayFactor; // 1 - lr wd
  };

  /// Computes the bias corrections in f64, as 1 - beta^t loses most digits of an f32 in the first steps.
  Moments biasCorrections(ImplicitLocOpBuilder &builder, Arithmetic &math, Value step, Value lrWide) {
    Value one = math.constant(step, 1.0);
    auto correction = [&](double beta) {
      return math.sub(one, math::PowFOp::create(builder, math.constant(step, beta), step));
    };
    Moments moments;
    moments.stepSize = math.toF32(math.div(lrWide, correction(beta1)));
    moments.rootScale = math.toF32(math.div(one, math.sqrt(correction(beta2))));
    moments.decayFactor = math.toF32(math.sub(one, math.scale(lrWide, weightDecay)));
    return moments;
  }

  void updateAdamW(ImplicitLocOpBuilder &builder, Arithmetic &math, graph::ParamOp param, Value value, Value grad,
                   Value lr, const Moments &moments, SmallVectorImpl<std::pair<std::string, Value>> &writes) {
    Value m = graph::ReadOp::create(builder, value.getType(), momentName(param, 1));
    Value v = graph::ReadOp::create(builder, value.getType(), momentName(param, 2));
    m = math.add(math.scale(m, beta1), math.scale(grad, 1 - beta1));
    v = math.add(math.scale(v, beta2), math.scale(math.mul(grad, grad), 1 - beta2));
    Value root = math.mul(math.sqrt(v), math.spread(moments.rootScale, v));
    Value update = math.div(m, math.offset(root, eps));
    if (param.getTensorType().getRank() >= 2 && weightDecay != 0)
      value = math.mul(value, math.spread(moments.decayFactor, value));
    value = math.sub(value, math.mul(update, math.spread(moments.stepSize, update)));
    writes.emplace_back(momentName(param, 1), m);
    writes.emplace_back(momentName(param, 2), v);
    writes.emplace_back(param.getName().str(), value);
  }

  graph::FuncOp microbatch;
  Value stepCounter;
  /// Accumulators by the name of their parameter.
  llvm::StringMap<graph::StateOp> gradients;
  /// The parameters that have states of their own, in order.
  SmallVector<graph::ParamOp> params;
  /// The mirrors of each parameter, by its name.
  llvm::StringMap<SmallVector<graph::ParamOp>> mirrors;
};

} // namespace
