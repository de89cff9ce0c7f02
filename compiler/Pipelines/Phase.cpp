//===- Phase.cpp - The phases of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Phase.h"

using namespace bowline;

static constexpr PhaseInfo kPhases[] = {
    {Phase::Input, "input", "the model as its frontend wrote it: functions on global tensors"},
    {Phase::Graph, "graph", "canonical form, with the entries that a caller may run"},
    {Phase::Train, "train", "backward pass, optimizer and initialisation are part of the program"},
    {Phase::Shard, "shard", "every tensor has a sharding; on one rank there is nothing to do"},
    {Phase::Stage, "stage", "every operation has a pipeline stage; on one rank there is nothing to do"},
    {Phase::Local, "local", "tensors have the shapes that one rank holds"},
    {Phase::Fuse, "fuse", "every computation is a call of a kernel"},
    {Phase::Schedule, "schedule", "programs of commands on buffers"},
    {Phase::Memory, "memory", "kernels have code, every buffer its place in the arena"},
    {Phase::Plan, "plan", "what the plan file says"},
};

llvm::ArrayRef<PhaseInfo> bowline::allPhases() { return kPhases; }

llvm::StringRef bowline::nameOf(Phase phase) { return kPhases[static_cast<size_t>(phase)].name; }

std::optional<Phase> bowline::phaseNamed(llvm::StringRef name) {
  for (const PhaseInfo &info : kPhases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}
