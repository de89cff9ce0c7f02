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
#include "passes/Analysis/Lifetimes.h"
#include "passes/Memory/ArenaPacker.h"
#include "passes/Memory/InPlace.h"
#include "passes/Memory/Passes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace bowline {
#define GEN_PASS_DEF_PACKARENA
#include "passes/Memory/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

static int64_t aligned(int64_t bytes) { return static_cast<int64_t>(llvm::alignTo(bytes, plan::kAlignment)); }

namespace {

/// The temporary memory of one program: buffers that hand their memory on in place form one block.
class TemporaryBlocks {
public:
  TemporaryBlocks(plan::ProgramOp program, SymbolTable &symbols) : lifetimes(program, symbols) {
    for (const auto &[buffer, interval] : lifetimes.intervals()) {
      blockOf[buffer] = blocks.size();
      int64_t extent = buffer.getDefiningOp<plan::BufferOp>().getExtent();
      blocks.push_back({aligned(std::max<int64_t>(extent, 1)), interval});
    }
    for (auto [position, command] : llvm::enumerate(lifetimes.commands()))
      if (auto launch = dyn_cast<plan::LaunchOp>(command))
        takeOver(launch, symbols.lookup<plan::KernelOp>(launch.getKernel()), position);
  }

  /// Offsets every buffer by `base` and its place in the packed arena.
  PackedArena pack(int64_t base) {
    std::vector<MemoryBlock> live;
    SmallVector<size_t> indexOf(blocks.size());
    for (auto [index, block] : llvm::enumerate(blocks))
      if (block.bytes > 0) {
        indexOf[index] = live.size();
        live.push_back(block);
      }
    PackedArena result = packArena(live);
    for (auto [buffer, index] : blockOf)
      buffer.getDefiningOp<plan::BufferOp>().setOffset(base + live[indexOf[index]].offset);
    return result;
  }

private:
  /// Merges the blocks of an output that begins and an input that ends at this launch, where the kernel allows it.
  void takeOver(plan::LaunchOp launch, plan::KernelOp kernel, int64_t position) {
    ArrayRef<int64_t> pairs = kernel.getInPlace();
    DenseSet<size_t> taken; // by an output of this launch, which may end here too
    for (size_t i = 0; i < pairs.size(); i += 2) {
      Value output = launch.getOperands()[pairs[i]], input = launch.getOperands()[pairs[i + 1]];
      auto from = blockOf.find(input), to = blockOf.find(output);
      if (from == blockOf.end() || to == blockOf.end() || from->second == to->second || lifetimes.crossesRuns(input) ||
          taken.contains(from->second))
        continue;
      MemoryBlock &dying = blocks[from->second], &born = blocks[to->second];
      if (dying.alive.last != position || born.alive.first != position || dying.bytes != born.bytes ||
          !mayOverwrite(launch, kernel, pairs[i], input))
        continue;
      dying.alive.last = born.alive.last;
      born.bytes = 0;
      to->second = from->second;
      taken.insert(from->second);
    }
  }

  Lifetimes lifetimes;
  llvm::MapVector<Value, size_t> blockOf;
  std::vector<MemoryBlock> blocks;
};

class PackArena : public bowline::impl::PackArenaBase<PackArena> {
public:
  using PackArenaBase::PackArenaBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    int64_t base = placePersistent(module);
    PackedArena temporary;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      PackedArena packed = TemporaryBlocks(program, symbols).pack(base);
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
      if (buffer.getKind() == plan::BufferKind::Temporary || buffer.getKind() == plan::BufferKind::Scratch)
        continue;
      buffer.setOffset(next);
      next += aligned(buffer.getExtent());
    }
    return next;
  }
};

} // namespace
