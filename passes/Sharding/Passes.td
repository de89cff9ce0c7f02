#ifndef BOWLINE_PASSES_SHARDING_PASSES_TD
#define BOWLINE_PASSES_SHARDING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def ApplyStrategy : PhasePass<"apply-strategy", "Shard"> {
  let summary = "From a strategy to the shardings of parameters and inputs";
  let description = [{
    Reads the module's `dist.strategy`; a module without one, or with one for a single rank that has no mesh, stays as it
    is. Replaces the mesh, puts `dist.sharding` on every parameter and on every argument with the batch, and with
    sequence parallelism `dist.shardings` on the lookup of embeddings. The strategy stays, for the passes that follow.

    Parameters are sharded as the patterns say, else as tensor parallelism shards them by default, also where their axes
    do not divide them: `pad-for-divisibility` comes next. A projection to queries, keys and values side by side is seen
    as three, in `dist.view`. Where there are fewer key heads than ranks along the axis of tensor parallelism, the mesh
    has two axes in its place, "tp/0" and "tp/1", along the second of which there are copies of the same key heads.

    Diagnosed: a pattern without a match, or with none that a later pattern leaves it, an axis that is not there, a batch
    or sequence that does not divide, numbers of key heads and ranks of which neither divides the other; each with the
    nearest valid choice.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def PadForDivisibility : PhasePass<"pad-for-divisibility", "Shard"> {
  let summary = "Dimensions grow until the axes that shard them divide them";
  let description = [{
    A dimension of a variable that the axes of its sharding do not divide grows to the next size that they divide, and
    with it the dimension of everything that is computed from it or goes into it. The variable gets its shape without
    padding as `dist.view`. Padding of variables is zero, at the beginning and after every step; the results, norms
    of gradients included, do not change: where padding would change them, it is replaced by zero, or by a logit so low
    that its class does not exist.

    Diagnosed: a dimension that an operation needs as it is, such as that of a norm; with the operation, and the nearest
    sizes that divide.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect"];
}

def PropagateShardings : PhasePass<"propagate-shardings", "Shard"> {
  let summary = "From the shardings of parameters and inputs to those of all values";
  let description = [{
    Starts from `dist.sharding` on variables and arguments and `dist.shardings` on operations. Extends open dimensions
    along the factor rules of all operations, forward and backward, until nothing changes (the idea of Xu et al., GSPMD,
    2021). Shardings that a person wrote do not change; an axis spreads only to dimensions that its size divides. Then
    inserts `dist.reshard` wherever an operation needs or produces another sharding than the value has. Partial sums are
    completed at once, except that sums added to an accumulator are completed where the accumulator is read.

    Warned of: gathers of large tensors that no choice asked for, with the two choices that contradict each other.
  }];
  let options = [
    Option<"largeBytes", "large-bytes", "int64_t", "64 << 20",
           "Warn of gathers after which a rank holds at least so many bytes">
  ];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

#endif // BOWLINE_PASSES_SHARDING_PASSES_TD
