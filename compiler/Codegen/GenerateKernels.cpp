//===- GenerateKernels.cpp - Code for the bodies of plan kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/GenerateKernels.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

using namespace mlir;
using namespace bowline;

namespace {

class GenerateKernelsPass : public PassWrapper<GenerateKernelsPass, PhasePass<Phase::Codegen>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GenerateKernelsPass)

  using Create = std::function<std::unique_ptr<KernelCodegen>()>;

  GenerateKernelsPass(Create create, std::shared_ptr<KernelCache> cache)
      : create(std::move(create)), cache(std::move(cache)) {}

  StringRef getArgument() const override { return "generate-kernels"; }
  StringRef getDescription() const override { return "Code for the bodies of plan kernels"; }

  void getDependentDialects(DialectRegistry &registry) const override { CpuCodegen::registerDialects(registry); }

  void runOnProgram() override {
    std::unique_ptr<KernelCodegen> codegen = create();
    plan::KernelOp last;
    SymbolTable symbols(getOperation());
    for (auto kernel : getOperation().getOps<plan::KernelOp>()) {
      if (!kernel.getBody())
        continue;
      if (failed(generate(*codegen, kernel, symbols)))
        return signalPassFailure();
      last = kernel;
    }
    if (!last)
      return;
    FailureOr<std::vector<char>> image = codegen->finish();
    if (failed(image)) {
      getOperation().emitError("the generated kernels could not be assembled into one object");
      return signalPassFailure();
    }
    finishCache();
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(last);
    auto type = RankedTensorType::get({static_cast<int64_t>(image->size())}, builder.getI8Type());
    auto data = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(*image));
    plan::ImageOp::create(builder, getOperation().getLoc(), codegen->imageFormat(), cast<ElementsAttr>(data));
  }

private:
  void finishCache() {
    if (!cache)
      return;
    cache->trim();
    if (!cache->problem().ok())
      getOperation().emitRemark("kernels are not kept for the next compilation: ")
          << std::string(cache->problem().message());
  }

  LogicalResult generate(KernelCodegen &codegen, plan::KernelOp kernel, SymbolTable &symbols) {
    auto function = symbols.lookup<func::FuncOp>(*kernel.getBody());
    if (!function)
      return kernel.emitOpError("no func.func is named ") << kernel.getBodyAttr();
    FailureOr<KernelInfo> info = kernel.hasEpilogue() ? codegen.addEpilogue(function, kernel.getSymName())
                                                      : codegen.add(function, kernel.getSymName());
    if (failed(info))
      return kernel.emitOpError("no code could be generated for ") << kernel.getSymNameAttr();
    kernel.setInPlace(argumentPairs(kernel, function, *info));
    kernel.setSymbol(StringRef(info->symbol));
    if (info->grid)
      kernel.setGrid(ArrayRef<int64_t>{info->grid->blocks, info->grid->threads});
    else if (!kernel.hasEpilogue())
      kernel.setExtent(info->parallelExtent);
    kernel.removeBodyAttr();
    symbols.erase(function);
    return success();
  }

  /// Pairs of the kernel's arguments that may be the same bytes.
  static SmallVector<int64_t> argumentPairs(plan::KernelOp kernel, func::FuncOp function, const KernelInfo &info) {
    // An epilogue's first argument is the product, and the kernel's first are the product's two operands.
    int64_t shift = kernel.hasEpilogue() ? 1 : 0;
    SmallVector<int64_t> pairs;
    for (auto [output, input] : info.inPlace)
      pairs.append({static_cast<int64_t>(function.getNumArguments()) + output + shift, input + shift});
    return pairs;
  }

  Create create;
  std::shared_ptr<KernelCache> cache;
};

} // namespace

std::unique_ptr<Pass> bowline::createGenerateKernelsPass(CpuTarget target) {
  std::shared_ptr<KernelCache> cache = target.cache;
  return std::make_unique<GenerateKernelsPass>([=] { return std::make_unique<CpuCodegen>(target); }, cache);
}

std::unique_ptr<Pass> bowline::createGenerateKernelsPass(GpuTarget target) {
  return std::make_unique<GenerateKernelsPass>([=] { return std::make_unique<GpuCodegen>(target); }, nullptr);
}
