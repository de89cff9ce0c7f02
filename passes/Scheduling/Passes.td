#ifndef BOWLINE_PASSES_SCHEDULING_PASSES_TD
#define BOWLINE_PASSES_SCHEDULING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def ScheduleCommands : PhasePass<"schedule-commands", "Schedule"> {
  let summary = "Turn functions on values into programs of commands on buffers";
  let description = [{
    Every `graph.entry` becomes a `plan.program` with one segment per function, called as often as the entry repeats it,
    and a `plan.entry` with the functions' arguments and results as ports. Parameters and states become persistent
    buffers, accumulators temporary ones. Every other value gets a buffer of its own; a reshape is the same buffer.

    Correct first: a write to a variable and a result of an entry are copies. DonateBuffers removes those that are not
    needed.

    Afterwards no `graph` operation is left.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_SCHEDULING_PASSES_TD
