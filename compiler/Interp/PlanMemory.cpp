//===- PlanMemory.cpp - The bytes of the ranks that a plan is interpreted on
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/PlanMemory.h"
#include "passes/Analysis/ModuleTarget.h"

#include <map>
#include <utility>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;

static int64_t elementBytes(plan::BufferOp buffer) {
  return static_cast<int64_t>(llvm::divideCeil(buffer.getTensorType().getElementTypeBitWidth(), 8));
}

PlanRole::PlanRole(ModuleOp module, const RankGrid &whole, StringRef axis, int64_t coordinate)
    : module(module), symbols(module), grid(dist::MeshOp::of(module), axis) {
  SmallVector<StringAttr> stages;
  if (!axis.empty())
    stages.push_back(StringAttr::get(module.getContext(), axis));
  for (int64_t rank = 0; rank < whole.count(); ++rank)
    if (whole.placeOf(rank, stages) == coordinate)
      ranks.push_back(rank);
  std::map<plan::MemorySpace, int64_t> arenas;
  for (auto buffer : module.getOps<plan::BufferOp>())
    if (std::optional<uint64_t> offset = buffer.getOffset()) {
      int64_t &end = arenas[buffer.getSpace()];
      end = std::max(end, static_cast<int64_t>(*offset) + buffer.getExtent());
    }
  for (auto &[space, size] : arenas)
    bytes += std::exchange(size, bytes);
  for (auto buffer : module.getOps<plan::BufferOp>()) {
    std::optional<uint64_t> offset = buffer.getOffset();
    offsets[buffer] = offset ? arenas[buffer.getSpace()] + static_cast<int64_t>(*offset) : bytes;
    if (!offset)
      bytes += static_cast<int64_t>(llvm::alignTo(buffer.getExtent(), deviceAlignment(module)));
  }
}

plan::BufferOp PlanRole::findState(StringRef name) {
  for (auto state : module.getOps<plan::StateOp>())
    if (auto buffer = state.getBuffer().getDefiningOp<plan::BufferOp>(); buffer.getName() == name)
      return buffer;
  return {};
}

int64_t PlanMemory::addressOf(plan::BufferOp buffer, int64_t slot) const {
  // Slots are those of SlotOf in runtime/plan/view/plan_view.h: temporary buffers may have fewer slots than there are
  // microbatches.
  auto slots = static_cast<int64_t>(buffer.getSlots());
  int64_t own = slots == 1 ? 0 : buffer.getKind() == plan::BufferKind::Temporary ? slot % slots : slot;
  return role->offsets.at(buffer) + own * static_cast<int64_t>(buffer.getStride());
}

void PlanMemory::write(Value value, int64_t slot, const HostTensor &tensor) {
  plan::BufferOp buffer = value.getDefiningOp<plan::BufferOp>();
  constexpr int64_t kLargest = 8;
  int64_t size = elementBytes(buffer), at = addressOf(buffer, slot);
  // An element that begins before the range and reaches into it has no value any more.
  for (int64_t before = std::max<int64_t>(0, at - kLargest); before < at; ++before)
    if (before + sizes[before] > at)
      sizes[before] = 0;
  for (double element : tensor.data) {
    values[at] = element;
    sizes[at] = static_cast<uint8_t>(size);
    for (int64_t byte = 1; byte < size; ++byte)
      sizes[at + byte] = 0;
    at += size;
  }
}

FailureOr<HostTensor> PlanMemory::read(Operation *user, Value value, int64_t slot) const {
  plan::BufferOp buffer = value.getDefiningOp<plan::BufferOp>();
  HostTensor tensor(buffer.getTensorType().getShape().vec());
  int64_t size = elementBytes(buffer), at = addressOf(buffer, slot);
  for (auto [index, element] : llvm::enumerate(tensor.data)) {
    if (sizes[at] != size)
      return user->emitOpError("reads element ")
             << index << " of buffer '" << buffer.getName() << "', slot " << slot << ", where "
             << (sizes[at] ? "an element of another size is" : "nothing was written, or written over");
    element = values[at];
    at += size;
  }
  return tensor;
}

void PlanMemory::forget(plan::BufferOp buffer) {
  uint8_t *begin = &sizes[role->offsets.at(buffer)];
  std::fill(begin, begin + buffer.getExtent(), 0);
}
