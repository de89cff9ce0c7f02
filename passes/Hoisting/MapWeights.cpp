//===- MapWeights.cpp - Read weights in place from memory of the caller
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "passes/Analysis/Lifetimes.h"
#include "passes/Hoisting/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_MAPWEIGHTS
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class MapWeights : public bowline::impl::MapWeightsBase<MapWeights> {
public:
  using MapWeightsBase::MapWeightsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    int64_t mapped = 0, mappedBytes = 0, others = 0, otherBytes = 0;
    for (auto state : module.getOps<plan::StateOp>()) {
      if (!state.has(StateFlags::Weight))
        continue;
      auto buffer = state.getBuffer().getDefiningOp<plan::BufferOp>();
      bool isMapped = isOnlyRead(buffer, symbols);
      (isMapped ? mapped : others) += 1;
      (isMapped ? mappedBytes : otherBytes) += buffer.getBytes();
      if (isMapped) {
        buffer.setSpace(plan::MemorySpace::External);
        buffer.setAlignment(plan::byteCount(RankedTensorType::get({}, buffer.getTensorType().getElementType())));
      }
    }
    auto report = [&](auto remark, int64_t count, int64_t bytes, StringRef what) {
      if (count > 0)
        remark << llvm::formatv("{0} weights of {1} bytes {2}", count, bytes, what).str();
    };
    auto options = remark::RemarkOpts::name("MapWeights").category("memory");
    if (mapped > 0)
      report(remark::passed(module.getLoc(), options), mapped, mappedBytes, "are read where the caller maps them");
    if (others > 0)
      report(remark::missed(module.getLoc(), options), others, otherBytes,
             "stay in the arena: commands write them, or exchange them with other ranks");
  }

private:
  /// Whether all commands that use the buffer are launches and copies of this rank, and none of them writes it.
  static bool isOnlyRead(plan::BufferOp buffer, SymbolTable &symbols) {
    return llvm::all_of(buffer->getUsers(), [&](Operation *user) {
      if (!isa<plan::Command>(user))
        return true;
      return isa<plan::LaunchOp, plan::CopyOp>(user) &&
             llvm::none_of(usesOf(user, symbols),
                           [&](const CommandUse &use) { return use.buffer == buffer.getResult() && use.writes; });
    });
  }
};

} // namespace
