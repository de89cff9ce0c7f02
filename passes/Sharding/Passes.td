#ifndef BOWLINE_PASSES_SHARDING_PASSES_TD
#define BOWLINE_PASSES_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def AddStrategy : Pass<"add-strategy", "::mlir::ModuleOp"> {
  let summary = "Write a strategy as the flags of bowline-compile do";
  let description = [{
    For `bowline-opt`: the options are the flags of `bowline-compile` with the same names, and go into the module's
    `dist.strategy`, or into a new one (StrategyFlags.h).
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"", "Axes and sizes, as in pp=2,dp=2,tp=2">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false", "Shard the sequence of the residual stream">,
    Option<"zero", "zero", "int64_t", "0", "ZeRO level, 0 to 3">,
    Option<"zeroAxis", "zero-axis", "std::string", "\"\"", "Axis of ZeRO, else that of the batch">,
    Option<"prefetch", "prefetch", "int64_t", "1", "Gathers of parameters that may be under way ahead of use">,
    Option<"schedule", "schedule", "std::string", "\"\"", "Pipeline schedule">,
    Option<"microbatches", "microbatches", "int64_t", "1", "Microbatches per step">,
    Option<"stages", "stages", "std::string", "\"\"", "balanced, or [0..5],[6..10],[11]">,
    Option<"recompute", "recompute", "std::string", "\"\"", "none, selective, full or auto">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "0", "Most bytes of one exchange; 0: each tensor alone">,
    Option<"overlapChunks", "overlap-chunks", "int64_t", "1", "Of products and exchanges; 0: chosen">];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def ApplyStrategy : Pass<"apply-strategy", "::mlir::ModuleOp"> {
  let summary = "From a strategy to the shardings of parameters and inputs";
  let description = [{
    Reads the module's `dist.strategy`; a module without one, or with one for a single rank that has no mesh, stays as it
    is. Replaces the mesh, puts `dist.sharding` on every parameter and on every argument with the batch, and with
    sequence parallelism `dist.shardings` on the lookup of embeddings. The strategy stays, for the passes that follow.

    Parameters are cut as the patterns say, else as tensor parallelism cuts them by default, also where their axes do
    not divide them: `pad-for-divisibility` comes next. A projection to queries, keys and values side by side is seen as
    three, in `dist.view`. Where there are fewer key heads than ranks along the axis of tensor parallelism, the mesh has
    this axis in two parts, "tp/0" and "tp/1", the second of which holds copies of the same key heads.

    Diagnosed: a pattern without a match, or with none that a later pattern leaves it, an axis that is not there, a batch
    or sequence that does not divide, numbers of key heads and ranks of which neither divides the other; each with the
    nearest valid choice.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def PadForDivisibility : Pass<"pad-for-divisibility", "::mlir::ModuleOp"> {
  let summary = "Dimensions grow until the axes that cut them divide them";
  let description = [{
    A dimension of a variable that the axes of its sharding do not divide grows to the next size that they divide, and
    with it the dimension of everything that is computed from it or goes into it. The variable gets its shape without
    padding as `dist.view`. Padding of variables is zero, at the beginning and after every step; what is computed, norms
    of gradients included, does not change: where padding would, it is replaced by zero, or by a logit so low that its
    class does not exist.

    Diagnosed: a dimension that an operation needs as it is, such as that of a norm; with the operation, and the nearest
    sizes that divide.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def PropagateShardings : Pass<"propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "From the shardings of parameters and inputs to those of all values";
  let description = [{
    Starts from `dist.sharding` on variables and arguments and `dist.shardings` on operations, and extends open
    dimensions along the factor rule of every operation, forward and backward, until nothing changes (the idea of Xu et
    al., GSPMD, 2021). What a person wrote stays; an axis goes only where it divides. Then inserts `dist.reshard`
    wherever an operation needs an operand, or gives a result, in other pieces than those of the value. Sums of parts
    are completed at once, but those on their way into an accumulator where it is read.

    Warned of: gathers of large tensors that no choice asked for, with the two choices that contradict each other.
  }];
  let options = [
    Option<"largeBytes", "large-bytes", "int64_t", "64 << 20",
           "Warn of gathers after which a rank holds at least so many bytes">
  ];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def GlobalToLocal : Pass<"global-to-local", "::mlir::ModuleOp"> {
  let summary = "The program of one rank: local tensors, collectives in the place of reshards";
  let description = [{
    Every value has a sharding; its type becomes that of the piece which a rank holds, and each `dist.reshard` the
    collectives that it takes. All ranks run the same program; random numbers are those of the whole tensor. Where an
    embedding or the classes of the loss are cut, indices and labels are seen from the part that the rank has.

    Diagnosed: a variable, argument or result without a sharding, or whose axes do not divide it.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def ApplyZero : Pass<"apply-zero", "::mlir::ModuleOp"> {
  let summary = "Ranks divide optimizer states, gradients and parameters instead of keeping copies";
  let description = [{
    ZeRO at the level and along the axis that the module's `dist.strategy` says, on the program of one rank. Variables
    become flat shards: all elements in row-major order, zeros at the end, an equal part for each rank, so that any size
    divides. Gradients are reduce-scattered, updates computed on shards, new values gathered; from level 2 on gradients
    are accumulated in shards, and with level 3 parameters are gathered before they are used, in the forward and again in
    the backward pass. Where gradients are summed over further axes, shards are all-reduced along those.

    A parameter that all but its update round to one narrower type, as bf16 training does with the weights of products,
    becomes a shard with levels 1 and 2 too, and gets a whole rounded copy, a mirror, which is what is gathered.

    A module without a strategy, or with level 0, stays as it is. Diagnosed: no gradient is summed over the axis.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def LowerCollectives : Pass<"lower-collectives", "::mlir::ModuleOp"> {
  let summary = "Collectives on contiguous memory, and slices as local operations";
  let description = [{
    After it, parts are cut and joined along the first dimension: `all_gather` and `reduce_scatter` have `dim 0`,
    `all_to_all` `split 0 concat 0`, with at most one transpose around each, and none where all dimensions before the
    one in question are 1. `dist.slice` gathers the rows of this rank's part. What goes over axes of one rank is gone.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def CoalesceCollectives : Pass<"coalesce-collectives", "::mlir::ModuleOp"> {
  let summary = "Fewer and larger collectives";
  let description = [{
    Sums of scalars to which ranks contribute, such as the norm of all gradients, are added up before they are
    all-reduced: one collective per set of axes.

    Sums of gradients move to the order in which the backward pass completes these (GradientOrder.h).

    Then collectives of one kind, over the same axes and of one element type become a `dist.bucket`, in program order, as
    long as none depends on another and their tensors have at most the `bucket_bytes` of the strategy together, and at
    most a sixteenth of all of them where that is a megabyte or more. A bucket starts when the
    last of its members can; what depends on the first ones waits. The default is that of PyTorch's
    DistributedDataParallel. What has different attributes stays apart, so labels of stages have to be there before.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

#endif // BOWLINE_PASSES_SHARDING_PASSES_TD
