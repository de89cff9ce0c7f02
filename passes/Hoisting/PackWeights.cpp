//===- PackWeights.cpp - Pack weights once for many matrix products
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Hoisting/WeightPacking.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class PackWeights : public bowline::impl::PackWeightsBase<PackWeights> {
public:
  using PackWeightsBase::PackWeightsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    FailureOr<ModuleTarget> target = ModuleTarget::of(module);
    if (failed(target))
      return signalPassFailure();
    if (!WeightPacking::isPossible(module, *target))
      return markAllAnalysesPreserved();
    PackingThresholds least{minSaving, minPersistentSaving};
    WeightPacking packing(module, *target, least);
    for (const PackableWeight &weight : packing.weights())
      report(weight);
    auto missed = [&](size_t count, StringRef why) {
      if (count > 0)
        remark::missed(module.getLoc(), remark::RemarkOpts::name("PackWeights").category("memory"))
            << llvm::formatv("{0} weights are not packed: {1}", count, why).str();
    };
    missed(packing.readInPlace(), "their products have so few rows that they read them once and in place");
    auto missedBelow = [&](const PlainWeights &plain, double share, StringRef why) {
      missed(plain.count, llvm::formatv("panels of {0} bytes {1} would save less than {2:P1} of their products' time",
                                        plain.bytes, why, share)
                              .str());
    };
    missedBelow(packing.tooLittleForGood(), least.persistent, "that persist");
    missedBelow(packing.tooLittleInStep(), least.inStep, "made in each step");
    missed(packing.declined(), "--memory-limit leaves no room");
    packing.run();
  }

private:
  static void report(const PackableWeight &weight) {
    Operation *product = weight.launches.front();
    remark::passed(product->getLoc(), remark::RemarkOpts::name("PackWeights").category("memory"))
        << llvm::formatv("'{0}' is packed once {1}for {2} products: {3} bytes, {4:P1} of their time",
                         weight.source.getDefiningOp<plan::BufferOp>().getName(),
                         weight.isFixed ? "when parameters are set, " : "", weight.calls,
                         plan::byteCount(weight.packedType), weight.savedRows / weight.productRows)
               .str();
  }
};

} // namespace
