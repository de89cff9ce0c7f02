#ifndef BOWLINE_PASSES_MEMORY_PASSES_TD
#define BOWLINE_PASSES_MEMORY_PASSES_TD

include "passes/Analysis/PhasePass.td"

def PackArena : PhasePass<"pack-arena", "Memory"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Persistent buffers (parameters, states, constants, inputs, outputs) come first and overlap nothing. Above them, each
    program's temporary buffers share memory where they are not alive at the same time, as ArenaPacker.h says; programs
    share with each other. An output of a command takes over the memory of an input that dies
    there where the kernel allows it. Each memory space is packed by itself. `plan.arena_bytes` is the end of the highest
    buffer of the device, exactly, and `plan.other_arenas` says the same of other spaces.

    `plan.live_bytes` is the lower bound that the peak of live bytes gives. Remark: the arena beside that bound.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def StateAlignments : PhasePass<"state-alignments", "Memory"> {
  let summary = "Set the alignments that kernels require of arguments, and align buffers accordingly";
  let description = [{
    Sets the alignment of each kernel argument as the target states it (targets/target.h). The alignment of each buffer
    becomes the largest of the device's alignment and those of all kernel arguments that use the buffer.

    Runs before pack-arena, which obeys the buffers' alignments, and after all passes that create kernels.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_MEMORY_PASSES_TD
