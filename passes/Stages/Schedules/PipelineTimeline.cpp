//===- PipelineTimeline.cpp - Steps that each rank of a pipeline issues, transfers included
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include "absl/strings/str_cat.h"

using namespace bowline;

std::string bowline::describe(const TimelineStep &step) {
  constexpr const char *kNames[] = {"Forward",        "Backward",          "BackwardInput", "BackwardWeight",
                                    "SendActivation", "ReceiveActivation", "SendGradient",  "ReceiveGradient"};
  return absl::StrCat(kNames[static_cast<size_t>(step.kind)], " ", step.microbatch, " of stage ", step.stage);
}
