#ifndef BOWLINE_PASSES_OVERLAP_PASSES_TD
#define BOWLINE_PASSES_OVERLAP_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleCommands : Pass<"schedule-commands", "::mlir::ModuleOp"> {
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

def ChunkCollectives : Pass<"chunk-collectives", "::mlir::ModuleOp"> {
  let summary = "Divide products and their collectives into chunks that overlap";
  let description = [{
    A matrix product whose sums over ranks are added up or scattered, and a gather with the products that need it, become
    several of each along the first dimension (CollectiveChunking.h). `overlap-commands` then lets the collective of one
    chunk run beside the product of the next. Results are the same, bit for bit. How many chunks: `overlap_chunks` of the
    strategy.

    Runs on local programs, before collectives are lowered to leading dimensions. Remark: how many were divided.
  }];
  let options = [Option<"links", "links", "std::string", "\"\"",
                        "For the cost model: [AXIS:]bandwidth=10GB/s,latency=5us, several with ';' between">];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def OverlapCommands : Pass<"overlap-commands", "::mlir::ModuleOp"> {
  let summary = "Let communication run beside computation";
  let description = [{
    Every communicator gets a stream, and commands an order in which they overlap, by list scheduling with the cost model
    of CommandCost.h (SegmentSchedule.h): gradients are reduced, bucket by bucket, while the backward pass of the last
    microbatch goes on, parameters are gathered ahead of their use, and what does not need the result of a communication
    is computed while it is under way. The last run of a repeated segment and the segment behind it become one for that
    (RunMerging.h). In a pipeline the last call of each segment that completes gradients gets the reductions of these
    (EarlyReductions.h). All ranks of a communicator have the same program, so all issue its communication in the same
    order.

    With a memory limit: no prefetch, then no merging, then no overlap at all, until the arena is within it.

    Runs after everything else that moves commands, insert-events right after it. Remarks: what the model says about a
    step before and after, and how many reductions of a pipeline moved.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
                        "Overlap less rather than let the arena exceed so many bytes; 0: no limit">,
                 Option<"prefetch", "prefetch", "int64_t", "std::numeric_limits<int64_t>::max()",
                        "Most gathers that may be under way or waiting for use; default: what `dist.prefetch` says">,
                 Option<"links", "links", "std::string", "\"\"",
                        "For the cost model: [AXIS:]bandwidth=10GB/s,latency=5us, several with ';' between">];
  let dependentDialects = ["::bowline::dist::DistDialect", "::bowline::plan::PlanDialect"];
}

def InsertEvents : Pass<"insert-events", "::mlir::ModuleOp"> {
  let summary = "Order what runs on several streams";
  let description = [{
    Where two commands on different streams use the same slot of a buffer and one of them writes it, in any calls of the
    timeline, a `plan.signal` follows the earlier one and a `plan.wait` precedes the later one. A segment "begin" signals
    what the first calls wait for. See EventInsertion.h. Programs of one stream stay as they are.

    Runs after everything that adds, removes or moves commands, and before pack-arena, whose lifetimes end where events
    say so.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def ElideEvents : Pass<"elide-events", "::mlir::ModuleOp"> {
  let summary = "Remove waits that follow from the rest";
  let description = [{
    A `plan.wait` goes that orders nothing in any call of the timeline which the streams' own order and other waits do not
    order too; then every `plan.signal` that nothing waits for. See EventElision.h.

    Remark: how many of both went.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_OVERLAP_PASSES_TD
