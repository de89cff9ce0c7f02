//===- ScheduleTable.h - Schedules that users write as tables
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULETABLE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULETABLE_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>

namespace bowline {

// A table has one line per rank, from rank 0 on. Cells are separated by commas and done from left to right:
//
//   F0,F1,B0,,B1      with one chunk per rank: kind (F, B, I or W, see ActionKind) and microbatch, counted from 0
//   F0.0,F0.1,B0.1    with more: a point and the chunk follow; chunk c of rank r is stage c * P + r
//   0F0,3F0,3B0       or the stage comes first, and any placement is possible; a rank's chunks are its stages,
//   ascending F1.0&B0.1         a forward and a backward that overlap (see Action::overlapsNext)
//
// An empty cell is idle time; it changes nothing, for an action runs as soon as it can, but lets columns show time.
// Blanks around cells, empty lines, lines that begin with '#', and quotes around cells are skipped. A table writes
// stages first everywhere or nowhere.
//
// PyTorch's pipeline schedules write and read the form with stages as CSV ("compute_only"), and
// "(0F1;3B0)OVERLAP_F_B" for overlap. PyTorch's other actions (SEND_F, UNSHARD, ...) are refused: Bowline adds
// communication itself.

/// Reads and validates a table (see Validator.h) for `ranks` ranks and `microbatches` microbatches. InvalidArgument
/// begins with "name:line:cell: " where one cell is wrong, and with "name: " where the whole is.
absl::StatusOr<Schedule> parseScheduleTable(absl::string_view text, absl::string_view name, int ranks,
                                            int microbatches);

/// A table that parseScheduleTable reads back as the same schedule, without idle cells; with stages unless the
/// placement is round robin.
std::string formatScheduleTable(const Schedule &schedule);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULETABLE_H
