//===- SegmentInvariants.cpp - Buffers that stay the same while a segment repeats
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/SegmentInvariants.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/Lifetimes.h"

using namespace mlir;
using namespace bowline;

static int64_t indexOf(plan::SegmentOp segment) {
  auto segments = cast<plan::ProgramOp>(segment->getParentOp()).getBody().front().getOps<plan::SegmentOp>();
  return std::distance(segments.begin(), llvm::find(segments, segment));
}

/// The segments that a program runs, in order.
static SmallVector<int64_t> calledSegments(plan::ProgramOp program) {
  SmallVector<int64_t> called;
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2)
    called.push_back(timeline[i]);
  return called;
}

SegmentInvariants::SegmentInvariants(plan::SegmentOp segment, SymbolTable &symbols) {
  for (Operation &command : segment.getBody().front())
    for (const CommandUse &use : usesOf(&command, symbols))
      if (use.writes)
        ++writes[use.buffer];
  SmallVector<int64_t> called = calledSegments(cast<plan::ProgramOp>(segment->getParentOp()));
  int64_t index = indexOf(segment), count = llvm::count(called, index);
  const int64_t *first = llvm::find(called, index);
  if (std::all_of(first, first + count, [&](int64_t other) { return other == index; }))
    runCount = count;
}

bool SegmentInvariants::isInvariant(Value buffer) const {
  auto declared = buffer.getDefiningOp<plan::BufferOp>();
  return declared.getSlots() == 1 && declared.getKind() != plan::BufferKind::Scratch && !writes.contains(buffer);
}

plan::SegmentOp bowline::segmentBefore(plan::SegmentOp segment) {
  auto program = cast<plan::ProgramOp>(segment->getParentOp());
  SmallVector<int64_t> called = calledSegments(program);
  int64_t index = indexOf(segment);
  size_t first = llvm::find(called, index) - called.begin();
  if (first > 0 && called[first - 1] == index - 1 && llvm::count(called, index - 1) == 1)
    return cast<plan::SegmentOp>(segment->getPrevNode());

  OpBuilder builder(segment);
  auto before = plan::SegmentOp::create(builder, segment.getLoc(), (segment.getName() + "_begin").str());
  before.getBody().emplaceBlock();
  SmallVector<int64_t> timeline;
  for (auto [position, other] : llvm::enumerate(called)) {
    if (position == first)
      timeline.append({index, 0});
    timeline.append({other + (other >= index), program.getTimeline()[2 * position + 1]});
  }
  program.setTimeline(timeline);
  return before;
}
