#ifndef BOWLINE_PASSES_OVERLAP_PASSES_TD
#define BOWLINE_PASSES_OVERLAP_PASSES_TD

include "passes/Analysis/PhasePass.td"

def OverlapCommands : PhasePass<"overlap-commands", "Overlap"> {
  let summary = "Let communication run beside computation";
  let description = [{
    Gives every communicator a stream, and orders commands by list scheduling with the cost model of CommandCost.h
    (SegmentSchedule.h). Gradients are then reduced, bucket by bucket, during the backward pass of the last microbatch;
    parameters are gathered ahead of their use; and commands that do not need the result of a communication run beside
    it. For this, the last run of a repeated segment is merged with the segment after it (RunMerging.h). In a pipeline,
    reductions of gradients move to the last call that adds to these gradients (EarlyReductions.h).

    All ranks of a communicator have the same program, so all issue its communication in the same order.

    If the arena exceeds the memory limit, tries no prefetch, then also no merging, then no overlap.

    Runs after all other passes that move commands, and directly before insert-events. Remarks: the time of a step by
    the cost model, serial and overlapped, and how many reductions of a pipeline moved.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
                        "Overlap less rather than let the arena exceed so many bytes; 0: no limit">,
                 Option<"prefetch", "prefetch", "int64_t", "std::numeric_limits<int64_t>::max()",
                        "Most gathers that may be under way or waiting for use; default: that of `dist.prefetch`">,
                 Option<"links", "links", "std::string", "\"\"",
                        "For the cost model: [AXIS:]bandwidth=10GB/s,latency=5us, several with ';' between">];
  let dependentDialects = ["::bowline::dist::DistDialect", "::bowline::plan::PlanDialect"];
}

def InsertEvents : PhasePass<"insert-events", "Overlap"> {
  let summary = "Order commands of several streams by events";
  let description = [{
    Where two commands on different streams use the same slot of a buffer and one of them writes it, in any calls of the
    timeline, a `plan.signal` follows the earlier one and a `plan.wait` precedes the later one. A segment "begin"
    signals the events that the first calls wait for. Where the target orders communications, the same happens between
    each of them and the one before it. See EventInsertion.h. Programs of one stream stay as they are.

    Runs after everything that adds, removes or moves commands, and before pack-arena, whose lifetimes end where events
    say so.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def ElideEvents : PhasePass<"elide-events", "Overlap"> {
  let summary = "Remove waits that follow from the rest";
  let description = [{
    Removes each `plan.wait` whose ordering already follows from the order of streams and other waits, in every call of
    the timeline. Then removes each `plan.signal` for which no command waits. See EventElision.h.

    Remark: how many waits and signals were removed.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_OVERLAP_PASSES_TD
