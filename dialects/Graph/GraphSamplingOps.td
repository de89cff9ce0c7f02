#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHSAMPLINGOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHSAMPLINGOPS_TD

include "dialects/Graph/GraphOpBase.td"

def Graph_SampleTokensOp : Graph_ComputeOp<"sample_tokens", [
    Interpretable<>, CostModel<>, ShardingModel<>,
    PaddingModel<["hasNeutralPadding", "padsWholeDims", "requireNeutralPadding"]>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "Draws the next token of each sequence from its logits";
  let description = [{
    logits [S, V]; all others but `seeds` [S, 2] have one element for each row. A row gets nothing where `wanted` is 0,
    its token where that is 1, and the n most likely tokens beside it where it is 1 + n, at most L of them.

    The token is the largest logit's where the temperature is 0, the first of equals. Otherwise it has the probability
    `softmax(logits / temperature)` among the tokens that limits leave: in the order of falling logits, equal ones in the
    order of indices, of the first `top_k`, or of all where that is 0, the fewest first ones whose probabilities reach
    `top_p` together (Holtzman et al., 2020). Random numbers are counter-based: the one of a row is that of its position
    under its seed, a word of 64 bits with the lower half first (`SamplingUniform`). A logit of -1e30 or less is of no
    token: padding holds such logits (`absentLogit`).

    Results: tokens [S]; their logprobs [S], `log(softmax(logits))`, whatever temperature and limits are; the likely
    tokens [S, L], falling, and their logprobs [S, L]. A row that wants nothing, or has logits that are not finite, has
    the token -1; where there is no token, logprobs are 0 and likely tokens are -1. Values of the other operands that
    are out of range count as the nearest that are not.

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
