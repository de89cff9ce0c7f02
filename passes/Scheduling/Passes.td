#ifndef BOWLINE_PASSES_SCHEDULING_PASSES_TD
#define BOWLINE_PASSES_SCHEDULING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def ScheduleCommands : PhasePass<"schedule-commands", "Schedule"> {
  let summary = "Turn functions on values into programs of commands on buffers";
  let description = [{
    Every `graph.entry` becomes a `plan.program` and a `plan.entry`. The program has one segment per function, which its
    timeline runs as often as the entry repeats the function. The ports of the `plan.entry` are the arguments and
    results of the functions. Parameters and states become persistent buffers, accumulators temporary ones. Every other
    value gets its own buffer, except that a reshape shares the buffer of its operand. Writes to variables and results
    of entries become copies. A later pass, `donate-buffers`, removes those that are not needed.

    Also erases the functions and variables of the module.
    Afterwards no `graph` operation is left.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_SCHEDULING_PASSES_TD
