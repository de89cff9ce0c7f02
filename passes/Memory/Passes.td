#ifndef BOWLINE_PASSES_MEMORY_PASSES_TD
#define BOWLINE_PASSES_MEMORY_PASSES_TD

include "passes/Analysis/PhasePass.td"

def PackArena : PhasePass<"pack-arena", "Memory"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Places the persistent buffers (parameters, states, constants, inputs, outputs) first; they overlap no other buffer.
    Above them, temporary buffers of a program share memory if they are not alive at the same time (ArenaPacker.h), and
    all programs share the same memory. An output of a command takes over the memory of an input whose last use is this
    command, if the kernel allows it. Packs each memory space separately. Sets `plan.arena_bytes` to the end of the
    highest buffer in device memory, and `plan.other_arenas` to the ends in the other spaces.

    Sets `plan.live_bytes` to a lower bound: the peak of the bytes alive at one time. Remark: the arena and that bound.
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
