#ifndef BOWLINE_PASSES_OVERLAP_PASSES_TD
#define BOWLINE_PASSES_OVERLAP_PASSES_TD

include "passes/Analysis/PhasePass.td"

def OverlapCommands : PhasePass<"overlap-commands", "Overlap"> {
  let summary = "Let communication run beside computation";
  let description = [{
    Every communicator gets a stream, and commands an order in which they overlap, by list scheduling with the cost
    model of CommandCost.h (SegmentSchedule.h): gradients are reduced, bucket by bucket, while the backward pass of the
    last microbatch goes on, parameters are gathered ahead of their use, and commands that do not need the result of a
    communication run while it is under way. The last run of a repeated segment and the segment behind it become one for
    that (RunMerging.h). In a pipeline the last call of each segment that completes gradients gets the reductions of
    these (EarlyReductions.h). All ranks of a communicator have the same program, so all issue its communication in the
    same order.

    With a memory limit: no prefetch, then no merging, then no overlap at all, until the arena is within it.

    Runs after everything else that moves commands, insert-events right after it. Remarks: the model's time of a
    step before and after, and how many reductions of a pipeline moved.
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
