#ifndef BOWLINE_PASSES_LOCAL_PASSES_TD
#define BOWLINE_PASSES_LOCAL_PASSES_TD

include "passes/Analysis/PhasePass.td"

def GlobalToLocal : PhasePass<"global-to-local", "Local"> {
  let summary = "The program of one rank: local tensors, collectives in the place of reshards";
  let description = [{
    Every value has a sharding; its type becomes that of the shard which a rank holds, and each `dist.reshard` the
    collectives that it takes. All ranks run the same program; random numbers are those of the whole tensor. Where an
    embedding or the classes of the loss are sharded, indices and labels count from the first one of the rank's shard.

    Diagnosed: a variable, argument or result without a sharding, or whose axes do not divide it.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def ApplyZero : PhasePass<"apply-zero", "Local"> {
  let summary = "Ranks divide optimizer states, gradients and parameters instead of keeping copies";
  let description = [{
    ZeRO at the level and along the axis that the module's `dist.strategy` says, on the program of one rank. Variables
    become flat shards: all elements in row-major order, zeros at the end, an equal number for each rank, so that any
    size divides. Gradients are reduce-scattered, updates computed on shards, new values gathered; from level 2 on
    gradients are accumulated in shards, and with level 3 parameters are gathered before use, in the forward and again
    in the backward pass. Where gradients are summed over further axes, shards are all-reduced along those.

    A parameter that all but its update round to one narrower type, as bf16 training does with the weights of products,
    becomes a shard with levels 1 and 2 too, and gets a whole rounded copy, a mirror, to which gathers apply.

    A module without a strategy, or with level 0, stays as it is. Diagnosed: no gradient is summed over the axis.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def SplitStages : PhasePass<"split-stages", "Local"> {
  let summary = "Make one program per rank of a pipeline";
  let description = [{
    Where the module's `dist.strategy` has an axis for stages with more than one rank, labels the program of one rank
    and replaces its functions, entries and variables by nested modules `@stage0`, `@stage1`, ..., one per coordinate
    along that axis. Each has the variables of its stages, and entries of the same names; mesh, strategy and attributes
    stay in the outer module. Without stages nothing changes; `nest-program` comes next.

    The `microbatch` becomes functions `@forward.S`, `@backward.S` (or `@backward_input.S` and `@backward_weight.S`,
    where the schedule splits them), `@send_activation.S`, `@receive_activation.S`, `@send_gradient.S` and
    `@receive_gradient.S` for each stage S of the rank. Values go from one to another in states with the role `stash`.
    The timeline of the training step is the schedule's.

    All other functions stay, each rank having the part that its stages need; scalars that stages share go through
    all-reduces over the axis of the stages.

    Runs on local tensors, after ZeRO and before anything that may treat the two ends of a transfer differently.
    Diagnosed: a schedule that does not fit the numbers of ranks, microbatches and stages, and the errors that
    `label-stages` diagnoses.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect", "::bowline::dist::DistDialect",
                           "::mlir::arith::ArithDialect"];
}

def NestProgram : PhasePass<"nest-program", "Local"> {
  let summary = "Put a program that all ranks run into a nested module";
  let description = [{
    Moves a program without stages into one nested module without a name. Programs that `split-stages` has already
    nested, one module for each rank of a pipeline, are not changed. Mesh, strategy, attachments and the attributes of
    the outer module stay there, for all roles (passes/Analysis/Roles.h). Later passes run on nested modules.
  }];
}

def ShareCollectives : PhasePass<"share-collectives", "Local"> {
  let summary = "Gather parameters and reduce gradients once for all microbatches of a pass";
  let description = [{
    With `zero level 3 once`. Where a rank runs the forward or the backward pass of a stage for all microbatches in a row,
    as GPipe and breadth-first schedules do, or the whole microbatch without stages, the gathers of parameters (`dist.prefetch`) move into a function
    `@gather.forward.S` or `@gather.backward.S` in front of the row. The reductions of gradients that it adds up move
    into `@reduce.backward.S` behind it, and the pass adds up whole gradients (SharedCollectives.h). All are accumulators.

    Runs on nested modules. Remark: how many collectives run once, or that none do.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def ChunkCollectives : PhasePass<"chunk-collectives", "Local"> {
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

def LowerCollectives : PhasePass<"lower-collectives", "Local"> {
  let summary = "Collectives on contiguous memory, and slices as local operations";
  let description = [{
    After it, shards are made and joined along the first dimension: `all_gather` and `reduce_scatter` have `dim 0`,
    `all_to_all` `split 0 concat 0`, with at most one transpose around each, and none where all dimensions before the
    one in question are 1. `dist.slice` gathers the rows of this rank's shard. Collectives over axes of one rank are gone.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def CoalesceCollectives : PhasePass<"coalesce-collectives", "Local"> {
  let summary = "Fewer and larger collectives";
  let description = [{
    Sums of scalars to which ranks contribute, such as the norm of all gradients, are added up before they are
    all-reduced: one collective per set of axes.

    Sums of gradients move to the order in which the backward pass completes these (GradientOrder.h).

    Then collectives of one kind, over the same axes and of one element type, join a `dist.bucket` in program order, as
    long as none depends on another. Together their tensors have at most the strategy's `bucket_bytes`, and at most the
    larger of one MiB and a sixteenth of all candidates. A bucket starts when its last member can, so operations that
    depend on its first members wait. The default of `bucket_bytes` is that of PyTorch's DistributedDataParallel.
    Collectives with different attributes do not join, so stages must be labelled before this pass.

    Remark: a strategy says `bucket_bytes`, and no two collectives may be in one bucket.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

#endif // BOWLINE_PASSES_LOCAL_PASSES_TD
