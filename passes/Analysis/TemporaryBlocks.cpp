//===- TemporaryBlocks.cpp - The temporary memory of a program, and its size in an arena
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Analysis/InPlace.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Analysis/Roles.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;

int64_t bowline::alignedBytes(plan::BufferOp buffer) {
  int64_t bytes = std::max<int64_t>(buffer.getExtent(), 1);
  int64_t alignment = buffer.getAlignment();
  if (buffer.getSpace() == plan::MemorySpace::Device)
    alignment = std::max(alignment, deviceAlignment(buffer->getParentOfType<ModuleOp>()));
  return static_cast<int64_t>(llvm::alignTo(bytes, alignment));
}

bool bowline::isPersistent(plan::BufferOp buffer) {
  return buffer.getKind() != plan::BufferKind::Temporary && buffer.getKind() != plan::BufferKind::Scratch;
}

TemporaryBlocks::TemporaryBlocks(plan::ProgramOp program, SymbolTable &symbols, plan::MemorySpace space)
    : lifetimes(program, symbols) {
  // Where sizes are multiples of the largest alignment, places are too.
  int64_t largest = 1;
  for (const auto &[value, interval] : lifetimes.intervals()) {
    auto buffer = value.getDefiningOp<plan::BufferOp>();
    if (buffer.getSpace() != space)
      continue;
    largest = std::max<int64_t>(largest, buffer.getAlignment());
    blockOf[value] = blocks.size();
    blocks.push_back({alignedBytes(buffer), interval});
  }
  for (MemoryBlock &block : blocks)
    block.bytes = static_cast<int64_t>(llvm::alignTo(block.bytes, largest));
  for (auto [position, command] : llvm::enumerate(lifetimes.commands()))
    if (auto launch = dyn_cast<plan::LaunchOp>(command))
      takeOver(launch, symbols.lookup<plan::KernelOp>(launch.getKernel()), position);
    else if (auto collective = dyn_cast<plan::CollectiveOp>(command); collective && collective.getDefinition().in_place)
      takeOver(collective, position);
}

PackedArena TemporaryBlocks::pack() {
  std::vector<MemoryBlock> live;
  for (const MemoryBlock &block : blocks)
    if (block.bytes > 0)
      live.push_back(block);
  PackedArena result = packArena(live);
  auto next = live.begin();
  for (MemoryBlock &block : blocks)
    if (block.bytes > 0)
      block.offset = (next++)->offset;
  return result;
}

PackedArena TemporaryBlocks::place(int64_t base) {
  PackedArena result = pack();
  for (auto [buffer, index] : blockOf)
    buffer.getDefiningOp<plan::BufferOp>().setOffset(base + blocks[index].offset);
  return result;
}

/// Merges the blocks of outputs and inputs where the kernel allows it.
void TemporaryBlocks::takeOver(plan::LaunchOp launch, plan::KernelOp kernel, int64_t position) {
  ArrayRef<int64_t> pairs = kernel.getInPlace();
  DenseSet<size_t> taken;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    Value output = launch.getOperands()[pairs[i]], input = launch.getOperands()[pairs[i + 1]];
    if (mayOverwrite(launch, kernel, pairs[i], input))
      merge(output, input, position, taken);
  }
}

/// A result of an all-reduce may take over the block of its operand.
void TemporaryBlocks::takeOver(plan::CollectiveOp allReduce, int64_t position) {
  DenseSet<size_t> taken;
  for (auto [output, input] : llvm::zip_equal(allReduce.getDestinations(), allReduce.getSources()))
    if (llvm::count(allReduce.getOperands(), input) == 1)
      merge(output, input, position, taken);
}

void TemporaryBlocks::merge(Value output, Value input, int64_t position, DenseSet<size_t> &taken) {
  auto from = blockOf.find(input), to = blockOf.find(output);
  if (from == blockOf.end() || to == blockOf.end() || from->second == to->second ||
      !lifetimes.diesAt(input, position) || taken.contains(from->second))
    return;
  MemoryBlock &dying = blocks[from->second], &born = blocks[to->second];
  if (born.alive.first != position || dying.bytes != born.bytes)
    return;
  dying.alive.last = std::max(dying.alive.last, born.alive.last);
  born.bytes = 0;
  to->second = from->second;
  taken.insert(from->second);
}

int64_t bowline::arenaBytes(ModuleOp module) {
  SymbolTable symbols(module);
  int64_t persistent = 0, temporary = 0;
  for (auto buffer : module.getOps<plan::BufferOp>())
    if (isPersistent(buffer) && buffer.getSpace() == plan::MemorySpace::Device)
      persistent += alignedBytes(buffer);
  for (auto program : module.getOps<plan::ProgramOp>())
    temporary = std::max(temporary, TemporaryBlocks(program, symbols).pack().bytes);
  return persistent + temporary;
}
