#ifndef BOWLINE_PASSES_MEMORY_PASSES_TD
#define BOWLINE_PASSES_MEMORY_PASSES_TD

include "passes/Analysis/PhasePass.td"

def PackArena : PhasePass<"pack-arena", "Memory"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Persistent buffers (parameters, states, constants, inputs, outputs) come first and overlap nothing. Above them, each
    program's temporary buffers share memory where they are not alive at the same time, as ArenaPacker.h says; programs
    share with each other. An output of a command takes over the memory of an input that dies
    there where the kernel allows it. `plan.arena_bytes` is the end of the highest buffer, exactly.

    `plan.live_bytes` is the lower bound that the peak of live bytes gives. Remark: the arena beside that bound.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_MEMORY_PASSES_TD
