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

#include <array>
#include <map>
#include <tuple>

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
    int64_t base = 0;
    PackedArena temporary;
    for (plan::MemorySpace space : kSpaces) {
      int64_t persistent = placePersistent(module, space);
      PackedArena packed = placeTemporary(module, symbols, space, persistent);
      if (space == plan::MemorySpace::Device)
        std::tie(base, temporary) = std::pair(persistent, packed);
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

    std::map<plan::MemorySpace, int64_t> ends = {{plan::MemorySpace::Device, 0}};
    for (auto buffer : module.getOps<plan::BufferOp>()) {
      int64_t &end = ends[buffer.getSpace()];
      end = std::max(end, static_cast<int64_t>(*buffer.getOffset()) + buffer.getExtent());
    }
    int64_t bytes = ends[plan::MemorySpace::Device];
    Builder builder(module);
    module->setAttr(plan::PlanDialect::kArenaBytesAttr, builder.getI64IntegerAttr(bytes));
    NamedAttrList others;
    for (auto [space, end] : ends)
      if (space != plan::MemorySpace::Device)
        others.append(plan::stringifyMemorySpace(space), builder.getI64IntegerAttr(end));
    if (!others.empty())
      module->setAttr(plan::PlanDialect::kOtherArenasAttr, others.getDictionary(&getContext()));
    module->setAttr(plan::PlanDialect::kLiveBytesAttr, builder.getI64IntegerAttr(base + temporary.lowerBound));
    remark::analysis(module.getLoc(), remark::RemarkOpts::name("PackArena").category("memory"))
        << llvm::formatv("arena of {0} bytes: {1} persistent, {2} temporary, {3:F3} times the {4} alive at one time",
                         bytes, base, temporary.bytes,
                         temporary.lowerBound > 0 ? static_cast<double>(temporary.bytes) / temporary.lowerBound : 1.0,
                         temporary.lowerBound)
               .str();
  }

private:
  static constexpr std::array<plan::MemorySpace, 3> kSpaces = {plan::MemorySpace::Device, plan::MemorySpace::PinnedHost,
                                                               plan::MemorySpace::External};
  static_assert(kSpaces.size() == plan::getMaxEnumValForMemorySpace() + 1);

  /// The end of the persistent buffers, a multiple of every alignment.
  static int64_t placePersistent(ModuleOp module, plan::MemorySpace space) {
    int64_t next = 0, largest = 1;
    for (auto buffer : module.getOps<plan::BufferOp>()) {
      if (buffer.getSpace() != space)
        continue;
      auto alignment = static_cast<int64_t>(buffer.getAlignment());
      largest = std::max(largest, alignment);
      if (!isPersistent(buffer))
        continue;
      next = static_cast<int64_t>(llvm::alignTo(next, alignment));
      buffer.setOffset(next);
      next += alignedBytes(buffer);
    }
    return static_cast<int64_t>(llvm::alignTo(next, largest));
  }

  /// Programs share their memory, which begins at `base`.
  static PackedArena placeTemporary(ModuleOp module, SymbolTable &symbols, plan::MemorySpace space, int64_t base) {
    PackedArena temporary;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      PackedArena packed = TemporaryBlocks(program, symbols, space).place(base);
      temporary.bytes = std::max(temporary.bytes, packed.bytes);
      temporary.lowerBound = std::max(temporary.lowerBound, packed.lowerBound);
    }
    return temporary;
  }
};

} // namespace
