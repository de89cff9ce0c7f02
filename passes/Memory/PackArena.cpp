//===- PackArena.cpp - Give every buffer its place in the arena
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Memory/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_PACKARENA
#include "passes/Memory/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class PackArena : public bowline::impl::PackArenaBase<PackArena> {
public:
  using PackArenaBase::PackArenaBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    int64_t base = placePersistent(module);
    PackedArena temporary;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      PackedArena packed = TemporaryBlocks(program, symbols).place(base);
      temporary.bytes = std::max(temporary.bytes, packed.bytes);
      temporary.lowerBound = std::max(temporary.lowerBound, packed.lowerBound);
    }
    // Buffers that no command uses.
    for (auto buffer : llvm::make_early_inc_range(module.getOps<plan::BufferOp>())) {
      if (buffer.getOffset())
        continue;
      if (!buffer->use_empty()) {
        buffer.emitOpError("is temporary and no command writes it, but something else uses it; make it an input");
        return signalPassFailure();
      }
      buffer.erase();
    }

    int64_t bytes = 0;
    for (auto buffer : module.getOps<plan::BufferOp>())
      bytes = std::max(bytes, static_cast<int64_t>(*buffer.getOffset()) + buffer.getExtent());
    Builder builder(module);
    module->setAttr(plan::PlanDialect::kArenaBytesAttr, builder.getI64IntegerAttr(bytes));
    module->setAttr(plan::PlanDialect::kLiveBytesAttr, builder.getI64IntegerAttr(base + temporary.lowerBound));
    remark::analysis(module.getLoc(), remark::RemarkOpts::name("PackArena").category("memory"))
        << llvm::formatv("arena of {0} bytes: {1} persistent, {2} temporary, {3:F3} times the {4} alive at one time",
                         bytes, base, temporary.bytes,
                         temporary.lowerBound > 0 ? static_cast<double>(temporary.bytes) / temporary.lowerBound : 1.0,
                         temporary.lowerBound)
               .str();
  }

private:
  int64_t placePersistent(ModuleOp module) {
    int64_t next = 0;
    for (auto buffer : module.getOps<plan::BufferOp>()) {
      if (!isPersistent(buffer))
        continue;
      buffer.setOffset(next);
      next += alignedBytes(buffer);
    }
    return next;
  }
};

} // namespace
