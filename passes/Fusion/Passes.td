#ifndef BOWLINE_PASSES_FUSION_PASSES_TD
#define BOWLINE_PASSES_FUSION_PASSES_TD

include "passes/Analysis/PhasePass.td"

def MeasureTraffic : PhasePass<"measure-traffic", "Fuse"> {
  let summary = "Record how many bytes every operation would move on its own";
  let description = [{
    Leaves the bytes per entry in the module attribute `plan.unfused_bytes`, for reports to compare the kernels with.
  }];
}

def TileLoss : PhasePass<"tile-loss", "Fuse"> {
  let summary = "Never hold the logits of all positions";
  let description = [{
    A `softmax_cross_entropy` on a linear layer, its gradient and the products of that are done for some positions after
    the others, so that memory holds the logits of one tile. No product is computed twice. Tiles have as many positions
    as fit into `tile-bytes`, but at least `min-positions`: each reads the whole weight. Where ranks divide the classes,
    they combine the statistics of each tile.
  }];
  let options = [
    Option<"tileBytes", "tile-bytes", "int64_t", "67108864", "Largest size of the logits of one tile">,
    Option<"minPositions", "min-positions", "int64_t", "512", "Fewest positions of a tile">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def AlignProducts : PhasePass<"align-products", "Fuse"> {
  let summary = "Let rows of matrices begin where wide loads do";
  let description = [{
    Matrix units load and store 16 bytes at a time, and a product with rows that begin elsewhere, such as the logits of
    50,257 classes, takes several times as long. The last dimension of an operand or a result whose rows have no multiple
    of `row-bytes` grows by zeros to a multiple of `multiple` elements, with the dimension that it is multiplied with;
    the added elements of the result are left out. Zeros and slices join the kernels that write and read the matrices.
  }];
  let options = [
    Option<"rowBytes", "row-bytes", "int64_t", "16", "Number of which the bytes of a row become a multiple">,
    Option<"multiple", "multiple", "int64_t", "64", "Number of which a dimension that grows becomes a multiple">,
    Option<"minSize", "min-size", "int64_t", "256", "Smaller dimensions stay as they are">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def RepeatActivations : PhasePass<"repeat-activations", "Fuse"> {
  let summary = "Compute cheap values again instead of keeping them";
  let description = [{
    The result of an activation function that the backward pass reads again is computed again there, in the kernel that
    reads it, if that pass reads the function's operand anyway: memory and traffic for one tensor less, for arithmetic
    that is hidden behind the traffic of the rest.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def LibrarySums : PhasePass<"library-sums", "Fuse"> {
  let summary = "Let a library sum operands of products";
  let description = [{
    Some targets compute products with a library that can also sum an operand over the contracted dimensions, while it
    reads the operand. On such targets, such a sum becomes part of the product. An example is the gradient of a bias
    next to the gradient of its weights. The target says for which types and sizes its library can do this.

    Runs before sums become parts of groups, so that the rest of a group may be an epilogue itself. Remark: each sum.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::plan::PlanDialect",
                           "::mlir::arith::ArithDialect"];
}

def SplitColumnReductions : PhasePass<"split-column-reductions", "Fuse"> {
  let summary = "Sum rows block by block";
  let description = [{
    A sum over all dimensions but the last, such as the gradient of a bias or of a norm's scale, becomes sums of blocks of
    rows and their sum. The first part works on rows in order and so joins the group that computes them: their values need
    not be stored for it. Where no number of blocks fits, such as for a prime number of rows, the rows that are left are
    summed by themselves. Blocks depend on the shape alone, and so do the bits of the result.
  }];
  let options = [
    Option<"maxBlocks", "max-blocks", "int64_t", "32", "Most blocks">,
    Option<"minRows", "min-rows", "int64_t", "8", "Fewest rows of a block">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def GroupFusions : PhasePass<"group-fusions", "Fuse"> {
  let summary = "Put operations that are computed together into graph.fusion";
  let description = [{
    Afterwards every operation that becomes generated code is in a `graph.fusion`. Operations join the group of a
    producer, or of one that reads the same values, when both work on the same rows: elementwise operations of one shape,
    reductions over the last dimension and arithmetic on their results, normalisations, losses and sums of blocks of rows. Contractions, attention and indexing never join: they
    are hand-written kernels. Nor does a sum of reduced rows: it would leave fewer rows to compute in parallel. Broadcasts, and constants with one value for all elements, are repeated in each group that reads them, so that
    no repeated value is stored unless something else reads it.

    Each group that merges several operations leaves a remark. With `merge=false` every operation is a group of its own.
  }];
  let options = [Option<"merge", "merge", "bool", "true", "Merge operations into groups of several">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def LibraryEpilogues : PhasePass<"library-epilogues", "Fuse"> {
  let summary = "Let a library compute elementwise work with products";
  let description = [{
    Where the target's products are a library's, which computes some epilogues with them, a group becomes part of the
    product that it works on if all of it is such an epilogue: a bias, GELU in its form with tanh, both, with GELU's
    operand as a second result, or the gradient of GELU. The target says which there are, and for which types and
    sizes. Nothing else reads the product. With `recompute selective` or `auto` GELU has no second result, because its
    group, as it is, is computed again.

    The library is given a bias in the type of the product, which a group of its own rounds; product and bias are added
    before they are rounded.

    Expects groups: runs after group-fusions. Remark: each epilogue.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::plan::PlanDialect",
                           "::mlir::arith::ArithDialect"];
}

def FuseEpilogues : PhasePass<"fuse-epilogues", "Fuse"> {
  let summary = "Fold elementwise work into contractions";
  let description = [{
    A group of elementwise operations on the result of a contraction joins it: bias, activation, gating, residual
    addition and rounding are computed on each tile of the result while it is in the cache, and the result itself is
    stored only if something else reads it. A residual addition in front of a norm leaves the norm's group for that.

    Expects groups: runs after group-fusions. A contraction joins one group at most, and only if it is one matrix product
    without batch dimensions. The fusion's first operation is then the contraction.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def LimitRows : PhasePass<"limit-rows", "Fuse"> {
  let summary = "Leave out rows that nobody reads";
  let description = [{
    A `grouped_dot` reads no row behind its last offset. If only such products read the results of a group, and each row
    of the results depends only on the same row of the operands, the group skips these rows: its kernel reads the number
    of rows on the device. Then producers of its operands may skip the same rows if no other operation reads them.
    Registered kernels with such a form also skip rows: rows of a result that no operation reads, and rows of zeros that
    they would add up, such as those of a `grouped_dot`. Such a kernel and its count become a fusion.

    Runs after all passes that change groups. Remark: each group and kernel that skips rows.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def SelectKernels : PhasePass<"select-kernels", "Fuse"> {
  let summary = "Decide for every operation which kernel runs it";
  let description = [{
    Contractions, attention, indexing, fills and random numbers become calls of registered kernels; a `graph.fusion`
    becomes a call of a generated kernel whose body is kept for code generation. Equal kernels are declared once, however
    many layers call them. Of the dialect graph, reads, writes and reshapes remain.

    If strides cannot express the dimensions of a contraction, a transpose is inserted before it. With `split-f32`,
    contractions of f32 get a mark that allows a kernel to compute each as six products of bf16.

    Diagnosed: an operation for which there is no kernel.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", "1", "Threads per rank, for which scratch of kernels is sized">,
    Option<"splitsF32", "split-f32", "bool", "false",
           "Six products of bf16 may take the place of one of f32, where devices multiply bf16 so much faster">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::plan::PlanDialect",
                           "::mlir::func::FuncDialect"];
}

def EarlyWrites : PhasePass<"early-writes", "Fuse"> {
  let summary = "Add to accumulators as soon as there is something to add";
  let description = [{
    A write to an accumulator, and operations that only it uses, move up to where their operands are complete. A gradient
    that is added to the sum over microbatches then needs its memory only until there, not until the backward pass ends.
    Other accesses of the variable keep their order.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def Recompute : PhasePass<"recompute", "Fuse"> {
  let summary = "Compute forward values again in the backward pass, instead of keeping them";
  let description = [{
    As `recompute` of the strategy says. Works on the `microbatch` of a training step, or on the `forward` and
    `backward` passes of each stage. The forward part is all that the value written to `@loss_sum` needs, accumulators
    aside; all else is the backward part. A forward value that the backward part uses is kept, or computed again from
    kept values by a clone of its operation right before its first backward use. Clones are exact and run the same
    kernels, so that gradients are those of `none`, bit for bit; no later pass may merge them with the originals. Where
    a schedule divides backward passes, the first half computes the values again that both need.

    - `none` keeps everything; with `sequence_parallel`, shards of gathered tensors, which are gathered again.
    - `selective` computes cheap and large values again from values that are kept anyway: those of generated kernels,
      and those that epilogues compute from stored values; and it gathers again.
    - `full` keeps the values alive at points of the forward pass where few bytes are, as between layers, and computes
      everything between them again; after the last point it works as `selective`.
    - `auto` adds the least arithmetic and communication whose memory is at most `memory-target` bytes: greedily, by
      bytes freed at the peak for each operation of arithmetic, or one of the modes above where that is less. The stages
      of a rank have equal parts of it. Without a target it is `none`.

    Remark: how many operations are computed again, how many bytes that frees, and how much arithmetic it adds.
    Diagnosed: the forward pass of a stage that no entry with a timeline runs.
  }];
  let options = [Option<"memoryTarget", "memory-target", "int64_t", "0",
                        "auto: bytes of everything in the arena, estimated; 0: no target">];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

#endif // BOWLINE_PASSES_FUSION_PASSES_TD
