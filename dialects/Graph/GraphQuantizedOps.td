#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHQUANTIZEDOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHQUANTIZEDOPS_TD

include "dialects/Graph/GraphOpBase.td"

//===----------------------------------------------------------------------===//
// Quantized weights
//===----------------------------------------------------------------------===//
//
// A quantized matrix [N, K] is a tensor of bytes [N, K / B, bytes of a block]. Its format packs B elements in a block.

def Graph_QuantizedDotOp : Graph_InferredOp<"quantized_dot", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>, KernelModel<["prepareForKernel"]>],
    [Graph_Contraction]> {
  let summary = "Product of rows and a quantized matrix";
  let description = [{
    lhs [M..., K], matrix [N, K / B, bytes]: `result[m..., n] = sum over k of lhs[m..., k] * matrix[n, k]`, where
    `matrix[n, k]` is the exact number that the format's bits stand for. Accumulates in f32.

    ```mlir
    %y = graph.quantized_dot %x, %w format "q4_1" : (tensor<1x8x576xf32>, tensor<1536x18x20xui8>) -> tensor<1x8x1536xf32>
    ```

    **Constraints:** the matrix has three dimensions, the last of the size of a block of the format; the blocks of a row
    of the matrix hold as many elements as a row of lhs.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_BlockTensor:$matrix, StrAttr:$format);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $matrix `format` $format attr-dict `:` functional-type(operands, results)";
}

def Graph_QuantizedGatherOp : Graph_ComputeOp<"quantized_gather", [
    Interpretable<>, CostModel<["bytesRead"]>, ShardingModel<["localize"]>, PaddingModel<>, PrecisionModel<>, FusionModel<>,
    KernelModel<["prepareForKernel"]>]> {
  let summary = "Looks up rows of a quantized table by index";
  let description = [{
    table [V, K / B, bytes], indices [N...]: `result[n..., k]` is element k of row `indices[n...]`. An index out of
    range is an error of the caller; kernels then use the nearest row.

    ```mlir
    %x = graph.quantized_gather %table[%tokens] format "q8_0" : (tensor<49152x18x34xui8>, tensor<1x8xi32>) -> tensor<1x8x576xf32>
    ```

    **Constraints:** the table has three dimensions, the last of the size of a block of the format; the result has the
    dimensions of the indices, then one dimension with as many elements as the blocks of a row hold.
  }];
  let arguments = (ins Graph_BlockTensor:$table, Graph_IndexTensor:$indices, StrAttr:$format);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    $table `[` $indices `]` `format` $format attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHQUANTIZEDOPS_TD
