#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHCACHEOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHCACHEOPS_TD

include "dialects/Graph/GraphOpBase.td"

//===----------------------------------------------------------------------===//
// Batched sequences whose keys and values are in a paged cache of blocks (Kwon et al., 2023)
//===----------------------------------------------------------------------===//
//
// A step computes T rows, one per new token of R sequences. Sequence r has the rows from `rows[r]` up to `rows[r + 1]`;
// `rows` has R + 1 elements, and rows behind the last element are padding. `lengths[r]` counts the tokens of sequence r
// in the cache after the step, so its rows are the last positions of the sequence. `blocks[r]` lists, in order, up to M
// blocks that hold these tokens. Block 0 holds nothing. #plan.sequences states the invariants of the three operands.
//
// A cache has floating-point elements, or bytes [N, S, K, bytes of a row] in a row format. Format "int8" stores a scale
// and D integers per row (types/cache_rows.h). The interpreter does not round to the format: a row that cache_write
// wrote begins with 256, which is no byte, and holds the unrounded numbers behind the place of the scale.

def Graph_SequencePositionsOp : Graph_ComputeOp<"sequence_positions", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "The position of each row in its sequence";
  let description = [{
    Row t, of sequence r, has position `lengths[r] - (rows[r + 1] - rows[r]) + t - rows[r]`; padding rows have 0.

    ```mlir
    %positions = graph.sequence_positions %rows, %lengths : (tensor<5xi32>, tensor<4xi32>) -> tensor<8xi32>
    ```

    **Constraints:** all tensors have one dimension; `rows` has one element more than `lengths`.
  }];
  let arguments = (ins Graph_IndexTensor:$rows, Graph_IndexTensor:$lengths);
  let results = (outs Graph_IndexTensor:$positions);
  let assemblyFormat = "$rows `,` $lengths attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_CacheWriteOp : Graph_InferredOp<"cache_write", [
    Interpretable<>, CostModel<["bytesRead", "bytes"]>, ShardingModel<>, PaddingModel<>, PrecisionModel<>,
    FusionModel<>, KernelModel<>], [DeclareOpInterfaceMethods<Graph_InPlaceUpdate>]> {
  let summary = "Writes the rows of a step into a cache of blocks";
  let description = [{
    cache [N, S, K, D], values [T, K, D]: the row at position p of sequence r is written to
    `cache[blocks[r, p / S], p mod S]`. Padding rows are not written, nor is block 0. The cache is updated in place and
    is the result. With a `format` the cache has bytes [N, S, K, bytes of a row], and each head's row is rounded to it.

    ```mlir
    %written = graph.cache_write %cache, %keys at %rows, %lengths, %blocks
      : (tensor<65x16x2x8xf32>, tensor<8x2x8xf32>, tensor<5xi32>, tensor<4xi32>, tensor<4x32xi32>)
      -> tensor<65x16x2x8xf32>
    ```

    **Constraints:** dimensions as above; element types agree, or the values are f32, or the cache has a format.
  }];
  let arguments = (ins Graph_CacheTensor:$cache, Graph_FloatTensor:$values, Graph_IndexTensor:$rows,
                   Graph_IndexTensor:$lengths, Graph_IndexTensor:$blocks, OptionalAttr<StrAttr>:$format);
  let results = (outs Graph_CacheTensor:$result);
  let assemblyFormat = [{
    $cache `,` $values `at` $rows `,` $lengths `,` $blocks (`format` $format^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_PagedAttentionOp : Graph_InferredOp<"paged_attention", [
    Interpretable<>, CostModel<["bytesRead"]>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>,
    KernelModel<>], [Graph_Contraction]> {
  let summary = "Causal attention of the rows of a step to keys and values in a cache of blocks";
  let description = [{
    query [T, H, D], keys and values [N, S, K, D]: the row at position p of sequence r attends to positions 0 to p of
    the sequence, or with `window` W to the last W of these. Position q is at `[blocks[r, q / S], q mod S]`; query head
    h uses key head h / (H / K). `scores = scale * query . key`; the result [T, H, D] is the values weighted by their
    softmax. Padding rows get zeros. With a `format` keys and values are bytes [N, S, K, bytes of a row].

    **Constraints:** dimensions as above; keys and values have equal types; D agrees; K divides H; element types agree, or
    the query is f32, or the cache has a format; a window is positive (0, the default, is none).
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_CacheTensor:$keys, Graph_CacheTensor:$values,
                   Graph_IndexTensor:$rows, Graph_IndexTensor:$lengths, Graph_IndexTensor:$blocks, F64Attr:$scale,
                   DefaultValuedOptionalAttr<I64Attr, "0">:$window, OptionalAttr<StrAttr>:$format);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    (`window` $window^)? $query `,` $keys `,` $values `at` $rows `,` $lengths `,` $blocks `scale` custom<Real>($scale)
    (`format` $format^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHCACHEOPS_TD
