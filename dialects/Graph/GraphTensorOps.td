#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHTENSOROPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHTENSOROPS_TD

include "dialects/Graph/GraphOpBase.td"

//===----------------------------------------------------------------------===//
// Contraction and reduction
//===----------------------------------------------------------------------===//

def Graph_DotGeneralOp : Graph_ComputeOp<"dot_general", [
    Interpretable<>, CostModel<>, ShardingModel<["canSplitDims", "splitDims"]>,
    PaddingModel<["hasNeutralPadding", "requireNeutralPadding", "resultPadding"]>,
    PrecisionModel<["precision", "accumulatesWide"]>, FusionModel<>,
    KernelModel<["hasKernel", "prepareForKernel", "epilogueRowDims"]>],
    [InferTypeOpAdaptorWithIsCompatible, Differentiable, Graph_Contraction]> {
  let summary = "Tensor contraction with batch dimensions";
  let description = [{
    `result[batch..., lhs free..., rhs free...] = sum over contracted of lhs * rhs`. Free dimensions, which are neither
    batch nor contracted, keep their order. Sums accumulate in f32 or wider and are rounded once, to the result's type.

    ```mlir
    %y = graph.dot_general %x, %w contract [2] x [1] : (tensor<8x128x384xf32>, tensor<1024x384xf32>) -> tensor<8x128x1024xf32>
    ```

    **Constraints:** the lists of both sides have equal length, are in range and name no dimension twice; paired
    dimensions have equal size; the operands have one element type, and the result has the same, or f32 if that is
    narrower.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs,
    DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs custom<PairedDimensions>($lhs_batch, $rhs_batch, $lhs_contract, $rhs_contract) attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Dimensions of a side that are neither batch nor contracted, in order.
    ::llvm::SmallVector<int64_t> getLhsFree();
    ::llvm::SmallVector<int64_t> getRhsFree();
  }];
}

def Graph_GroupedDotOp : Graph_ComputeOp<"grouped_dot", [
    Interpretable<>, CostModel<>, ShardingModel<["localize"]>,
    PaddingModel<["hasNeutralPadding", "requireNeutralPadding", "resultPadding"]>,
    PrecisionModel<["precision", "accumulatesWide"]>, FusionModel<>, KernelModel<>],
    [InferTypeOpAdaptorWithIsCompatible, Differentiable, Graph_Contraction]> {
  let summary = "Grouped matrix product: multiplies each group of rows by the group's own matrix";
  let description = [{
    rows [N, K], matrices [G, K, M] or, `transposed`, [G, M, K], offsets [at most G + 1]:
    `result[r] = rows[r] * matrices[g]` for `offsets[g] <= r < offsets[g + 1]`; zeros for rows of no group. Sums
    accumulate in f32 or wider and are rounded once, to the result's type. Offsets must ascend within [0, N]; if the
    caller breaks this, kernels use the nearest offsets that do.

    ```mlir
    %y = graph.grouped_dot %x, %experts at %offsets
      : (tensor<64x16xf32>, tensor<4x16x32xf32>, tensor<5xi32>) -> tensor<64x32xf32>
    ```

    **Constraints:** `rows` has two dimensions, `matrices` three, `offsets` one; K agrees; `offsets` has at least 2
    elements and at most one more than there are matrices; `rows` and `matrices` have one element type, and the result
    has the same, or f32 if that is narrower.
  }];
  let arguments = (ins Graph_FloatTensor:$rows, Graph_FloatTensor:$matrices, Graph_IndexTensor:$offsets,
                   UnitAttr:$transposed);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    (`transposed` $transposed^)? $rows `,` $matrices `at` $offsets attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_GroupedOuterOp : Graph_ComputeOp<"grouped_outer", [
    Interpretable<>, CostModel<>, ShardingModel<["localize"]>, PaddingModel<["hasNeutralPadding", "resultPadding"]>,
    PrecisionModel<["precision", "accumulatesWide"]>, FusionModel<>, KernelModel<>],
    [Differentiable, Graph_Contraction]> {
  let summary = "Sums of outer products of the rows of each group: the gradient of grouped_dot's matrices";
  let description = [{
    lhs [N, K], rhs [N, M], offsets as for grouped_dot, result [G, K, M]: `result[g] = sum over r of group g of
    lhs[r]^T * rhs[r]`; zeros for groups without rows, and for groups beyond the last offset.

    **Constraints:** `lhs` and `rhs` have two dimensions and equally many rows; `offsets` has at least 2 elements and at
    most one more than the result has groups; element types as for grouped_dot.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, Graph_IndexTensor:$offsets);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `at` $offsets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_ValidRowsOp : Graph_InferredOp<"valid_rows", [
    Interpretable<>, CostModel<>, ShardingModel<["localize"]>, PaddingModel<["resultPadding"]>,
    PrecisionModel<["precision"]>, FusionModel<["fusionRole", "decompose"]>], [Differentiable]> {
  let summary = "Keeps rows up to a count that the device computes, and replaces the others by zeros";
  let description = [{
    rows [N, D...], count [G]: let n be the last element of `count`, such as the last offset of a grouped_dot.
    `result[r] = rows[r]` for `r < n`; all other rows are zero, even where `rows` holds NaN. An n below 0 counts as 0,
    and one above N as N.

    ```mlir
    %y = graph.valid_rows %x of %offsets : (tensor<64x16xf32>, tensor<5xi32>) -> tensor<64x16xf32>
    ```

    **Constraints:** `rows` has at least one dimension; `count` has exactly one.
  }];
  let arguments = (ins Graph_FloatTensor:$rows, Graph_IndexTensor:$count);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$rows `of` $count attr-dict `:` functional-type(operands, results)";
}

def Graph_ReduceOp : Graph_InferredOp<"reduce", [
    Interpretable<>, CostModel<>, ShardingModel<["isAdditive", "canSplitDims", "splitDims"]>,
    PaddingModel<["hasNeutralPadding", "requireNeutralPadding", "resultPadding"]>, PrecisionModel<>,
    FusionModel<["fusionRole", "fusionDomain", "elementAt"]>], [Differentiable]> {
  let summary = "Reduces a tensor along dimensions, which the result lacks";
  let description = [{
    The order of combination is unspecified, but fixed within a plan. If several elements equal the maximum, the
    derivative of `max` passes the whole gradient to each of them.

    **Constraints:** dimensions are in range and strictly increasing.
  }];
  let arguments = (ins Graph_ReduceKind:$kind, Graph_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` $dims attr-dict `:` functional-type(operands, results)";
}

def Graph_BroadcastOp : Graph_ComputeOp<"broadcast", [
    Interpretable<>, CostModel<["repeatCost"]>, ShardingModel<["canSplitDims", "splitDims"]>,
    PaddingModel<["resultPadding"]>, PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>],
    [Differentiable]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    Operand dimension i becomes result dimension `dims[i]`; all other result dimensions are new.

    **Constraints:** `dims` has one entry per operand dimension, in range, increasing; sizes and element types agree.
  }];
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `dims` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Graph_TransposeOp : Graph_InferredOp<"transpose", [
    Interpretable<>, CostModel<>, ShardingModel<["isAdditive", "canSplitDims", "splitDims"]>,
    PaddingModel<["resultPadding"]>, PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>],
    [Differentiable]> {
  let summary = "Permutes dimensions";
  let description = [{
    Result dimension i is operand dimension `perm[i]`.

    **Constraints:** `perm` is a permutation of the operand's dimensions.
  }];
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Graph_ReshapeOp : Graph_ComputeOp<"reshape", [
    Interpretable<>, CostModel<["repeatCost"]>, ShardingModel<["isAdditive"]>, PaddingModel<["resultPadding"]>,
    PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>], [Differentiable, Graph_View]> {
  let summary = "The same elements in row-major order under another shape";
  let description = "**Constraints:** the element count and the element type do not change.";
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Graph_SliceOp : Graph_InferredOp<"slice", [
    Interpretable<>, CostModel<["bytesRead"]>, ShardingModel<["localize", "canSplitDims", "splitDims"]>,
    PaddingModel<["resultPadding", "growResult"]>, PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>],
    [Differentiable]> {
  let summary = "A contiguous box of a tensor";
  let description = "**Constraints:** one offset and one size per dimension; sizes are positive; the box lies inside.";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$sizes);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `at` $offsets `sizes` $sizes attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Graph_PadOp : Graph_InferredOp<"pad", [
    Interpretable<>, CostModel<>, ShardingModel<["canSplitDims", "splitDims"]>, PaddingModel<["resultPadding"]>,
    PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>], [Differentiable]> {
  let summary = "Surrounds a tensor with zeros";
  let description = "**Constraints:** one amount per dimension on each side, none negative.";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
}

def Graph_ConcatOp : Graph_InferredOp<"concat", [
    Interpretable<>, CostModel<>, ShardingModel<["canSplitDims", "splitDims"]>, PaddingModel<["resultPadding"]>,
    PrecisionModel<["precision"]>, FusionModel<["fusionRole", "elementAt"]>], [Differentiable]> {
  let summary = "Joins tensors along one dimension";
  let description = [{
    **Constraints:** at least one operand; equal ranks and element types; sizes agree except along `dim`, which is in
    range.
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Indexing and generation
//===----------------------------------------------------------------------===//

def Graph_GatherOp : Graph_InferredOp<"gather", [
    Interpretable<>, CostModel<["bytesRead"]>, ShardingModel<["localize"]>,
    PaddingModel<["hasNeutralPadding", "resultPadding"]>, PrecisionModel<["precision"]>, FusionModel<>, KernelModel<>],
    [Differentiable]> {
  let summary = "Rows of a table by index";
  let description = [{
    `result[i..., d...] = table[indices[i...], d...]`. An index out of range is an error of the caller. The runtime
    checks inputs that have a limit. For other indices the device uses the nearest row. `in_range` promises that no
    index needs this check on the device.

    **Constraints:** the table has at least one dimension.
  }];
  let arguments = (ins Graph_Tensor:$table, Graph_IndexTensor:$indices, UnitAttr:$in_range);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$table `[` $indices `]` (`in_range` $in_range^)? attr-dict `:` functional-type(operands, results)";
}

def Graph_ScatterAddOp : Graph_ComputeOp<"scatter_add", [
    Interpretable<>, CostModel<>, ShardingModel<["localize"]>, PaddingModel<["resultPadding"]>, PrecisionModel<>,
    FusionModel<>, KernelModel<>]> {
  let summary = "Adds rows into a table of zeros by index: the transpose of gather";
  let description = [{
    `result[r, d...]` is the sum of `updates[i..., d...]` over all i with `indices[i...] = r`, added in increasing order
    of i. Indices out of range and `in_range` are treated as by gather.

    **Constraints:** updates have the indices' dimensions, then the result's dimensions after the first.
  }];
  let arguments = (ins Graph_FloatTensor:$updates, Graph_IndexTensor:$indices, UnitAttr:$in_range);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$updates `at` $indices (`in_range` $in_range^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_IotaOp : Graph_ComputeOp<"iota", [
    Interpretable<>, CostModel<>, ShardingModel<["localize"]>, PaddingModel<>, PrecisionModel<>,
    FusionModel<["fusionRole", "elementAt"]>]> {
  let summary = "A tensor each of whose elements equals its index along one dimension";
  let description = "**Constraints:** the dimension is in range.";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Graph_IntTensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Graph_RandomOp : Graph_ComputeOp<"random", [
    Interpretable<>, CostModel<>, ShardingModel<["localize", "canSplitDims"]>,
    PaddingModel<["resultPadding", "growResult"]>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "Independent normal values from a counter-based generator";
  let description = [{
    Philox4x32-10 (Salmon et al., SC 2011) with key (`seed`, `stream`) and the global element index as counter, followed
    by Box-Muller. An element's value depends on nothing else. `kernels/registry/philox.h` is the definition.

    The result may be a shard of a tensor of shape `whole`, cut along `sharded_dims` into shards of the result's size.
    `places` gives the index of this shard along each sharded dimension, from 0. The last shards may extend beyond the
    whole tensor; their elements outside of it are zero.

    ```mlir
    %w = graph.random normal(0.02) seed(1) stream(7) : tensor<256x384xf32>
    %p = graph.random normal(0.02) seed(1) stream(7) shard %i along [0] of [256, 384] : tensor<128x384xf32>
    %z = graph.random normal(0.02) seed(1) stream(7) of [250, 384] : tensor<256x384xf32>
    ```

    **Constraints:** the standard deviation is finite and not negative; `sharded_dims` are in range and differ, with one
    of `places` each, and need `whole`; along all other dimensions the result is at least as large as the whole
    tensor.
  }];
  let arguments = (ins F64Attr:$stddev, I64Attr:$seed, I64Attr:$stream, Variadic<Graph_Place>:$places,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$sharded_dims, OptionalAttr<DenseI64ArrayAttr>:$whole);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    `normal` `(` custom<Real>($stddev) `)` `seed` `(` $seed `)` `stream` `(` $stream `)`
    (`shard` $places^ `along` $sharded_dims)? (`of` $whole^)? attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::FloatAttr":$stddev, "::mlir::IntegerAttr":$seed,
                                 "::mlir::IntegerAttr":$stream), [{
    build($_builder, $_state, result, stddev, seed, stream, ::mlir::ValueRange{},
          $_builder.getDenseI64ArrayAttr({}), ::mlir::DenseI64ArrayAttr());
  }]>];
  let hasVerifier = 1;
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHTENSOROPS_TD
