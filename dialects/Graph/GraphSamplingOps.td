#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHSAMPLINGOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHSAMPLINGOPS_TD

include "dialects/Graph/GraphOpBase.td"

def Graph_SampleTokensOp : Graph_ComputeOp<"sample_tokens", [
    Interpretable<>, CostModel<>, ShardingModel<>,
    PaddingModel<["hasNeutralPadding", "padsWholeDims", "requireNeutralPadding"]>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "Draws the next token of each sequence from its logits";
  let description = [{
    logits [S, V], seeds [S, 2]; every other operand has one element per row. `wanted` says which results a row needs:
    0 means none, 1 means its token, 1 + n means also the n most likely tokens, of which at most L are returned.

    With temperature 0 the token is the first one with the largest logit. Otherwise it is drawn with the probabilities
    `softmax(logits / temperature)` among some candidates. Tokens are sorted by falling logit, then rising index; the
    candidates are the first `top_k` of them (0: all), and of these the shortest prefix whose probabilities sum to
    `top_p` or more (Holtzman et al., 2020). The random number of a row depends only on its seed, 64 bits with the lower
    half first, and its position (`SamplingUniform`). A logit of -1e30 or less belongs to no token; padding holds such
    logits (`absentLogit`).

    Results: tokens [S]; their logprobs [S], `log(softmax(logits))` regardless of temperature and limits; the likely
    tokens [S, L], most likely first, and their logprobs [S, L]. The token is -1 if the row wants none or has a logit
    that is not finite. Where there is no token, the logprob is 0, and a likely token is -1. An operand's value that is
    out of range counts as the nearest value in range.

    ```mlir
    %tokens, %logprobs, %likely, %likely_logprobs = graph.sample_tokens %logits temperature %temperature top_k %top_k
        top_p %top_p seeds %seeds at %positions wanted %wanted
      : (tensor<4x256xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4x2xi32>, tensor<4xi32>, tensor<4xi32>)
      -> (tensor<4xi32>, tensor<4xf32>, tensor<4x20xi32>, tensor<4x20xf32>)
    ```

    **Constraints:** shapes as above; temperature, top_p and logprobs have the logits' element type.
  }];
  let arguments = (ins Graph_StatTensor:$logits, Graph_StatTensor:$temperature, Graph_IndexTensor:$top_k,
                   Graph_StatTensor:$top_p, Graph_IndexTensor:$seeds, Graph_IndexTensor:$positions,
                   Graph_IndexTensor:$wanted);
  let results = (outs Graph_IndexTensor:$tokens, Graph_StatTensor:$logprobs, Graph_IndexTensor:$likely,
                 Graph_StatTensor:$likely_logprobs);
  let assemblyFormat = [{
    $logits `temperature` $temperature `top_k` $top_k `top_p` $top_p `seeds` $seeds `at` $positions `wanted` $wanted
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHSAMPLINGOPS_TD
