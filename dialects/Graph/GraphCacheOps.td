#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHCACHEOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHCACHEOPS_TD

include "dialects/Graph/GraphOpBase.td"

//===----------------------------------------------------------------------===//
// Sequences side by side, whose keys and values are in a cache of blocks (Kwon et al., 2023)
//===----------------------------------------------------------------------===//
//
// A step computes T rows, one for each new token. `rows` [R + 1] says where the rows of each of R sequences begin and
// where the last ones end; those behind it are padding. `lengths` [R] says how many tokens of a sequence the cache holds
// after the step, so that its rows have the last positions, and `blocks` [R, M] which blocks hold them in order. Block 0
// holds nothing. #program.sequences states the promises on the three together.
//
// A cache has a floating-point type, or it is bytes [N, S, K, bytes of a row] of a format of rows: "int8", a scale and D
// whole numbers (types/cache_rows.h). The reference semantics rounds no more to a format than to a narrow type: a row
// that cache_write wrote there begins with 256, which is no byte, and holds the numbers themselves behind the scale.

def Graph_SequencePositionsOp : Graph_ComputeOp<"sequence_positions", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "The position of each row in its sequence";
  let description = [{
    Row t of sequence r has the position `lengths[r] - (rows[r + 1] - rows[r]) + t - rows[r]`; rows of no sequence have 0.

    ```mlir
    %positions = graph.sequence_positions %rows, %lengths : (tensor<5xi32>, tensor<4xi32>) -> tensor<8xi32>
    ```

    **Constraints:** all have one dimension, and `rows` one element more than `lengths`.
  }];
  let arguments = (ins Graph_IndexTensor:$rows, Graph_IndexTensor:$lengths);
  let results = (outs Graph_IndexTensor:$positions);
  let assemblyFormat = "$rows `,` $lengths attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_CacheWriteOp : Graph_InferredOp<"cache_write", [
    Interpretable<>, CostModel<["bytesRead", "bytes"]>, ShardingModel<>, PaddingModel<>, PrecisionModel<>,
    FusionModel<>, KernelModel<>], [DeclareOpInterfaceMethods<Graph_InPlaceUpdate>]> {
  let summary = "Puts the rows of a step into a cache of blocks";
  let description = [{
    cache [N, S, K, D], values [T, K, D]: the row of position p in sequence r goes to `cache[blocks[r, p / S], p mod S]`.
    Rows of no sequence go nowhere, and nothing goes to block 0. The result is the cache, changed in place. With a format
    the cache has bytes, [N, S, K, bytes of a row], and each row of a head is rounded to that.

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
    query [T, H, D], keys and values [N, S, K, D]: the row of position p in sequence r sees the positions from 0 to p of
    that sequence, with `window` W the last W of these, at `[blocks[r, q / S], q mod S]`; query head h uses key head
    h / (H / K). `scores = scale * query . key`; the result [T, H, D] is the values weighted by their softmax. Rows of no
    sequence get zeros. With a format keys and values are bytes, [N, S, K, bytes of a row].

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
