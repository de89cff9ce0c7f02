#ifndef BOWLINE_PASSES_STRATEGY_PASSES_TD
#define BOWLINE_PASSES_STRATEGY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AddStrategy : Pass<"add-strategy", "::mlir::ModuleOp"> {
  let summary = "Write a strategy from options that match the flags of bowline-compile";
  let description = [{
    For tests with `bowline-opt`. Each option equals the flag of `bowline-compile` with the same name. The pass writes
    the options into the module's `dist.strategy`, which it creates if the module has none (StrategyFlags.h).
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"", "Axes and sizes, as in pp=2,dp=2,tp=2">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false", "Shard the sequence of the residual stream">,
    Option<"zero", "zero", "int64_t", "0", "ZeRO level, 0 to 3">,
    Option<"zeroAxis", "zero-axis", "std::string", "\"\"", "Axis of ZeRO, else that of the batch">,
    Option<"prefetch", "prefetch", "int64_t", "1", "Gathers of parameters that may be under way ahead of use">,
    Option<"zeroOnce", "zero-once", "bool", "false", "Gather and reduce once for all microbatches of a pass">,
    Option<"zeroEach", "zero-each", "bool", "false", "Gather and reduce for each microbatch">,
    Option<"schedule", "schedule", "std::string", "\"\"", "Pipeline schedule">,
    Option<"microbatches", "microbatches", "int64_t", "1", "Microbatches per step">,
    Option<"stages", "stages", "std::string", "\"\"", "balanced, or [0..5],[6..10],[11]">,
    Option<"recompute", "recompute", "std::string", "\"\"", "none, selective, full or auto">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "0", "Most bytes of one exchange; 0: each tensor alone">,
    Option<"overlapChunks", "overlap-chunks", "int64_t", "1", "Of products and exchanges; 0: chosen">];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

#endif // BOWLINE_PASSES_STRATEGY_PASSES_TD
