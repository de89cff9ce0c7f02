#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHLAYEROPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHLAYEROPS_TD

include "dialects/Graph/GraphOpBase.td"

// An elementwise operation. It defines only `decompose`, its formula for code generation; the defaults of all other
// interface methods follow from its traits.
class Graph_ElementwiseOp<string name> : Graph_ComputeOp<name, [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<["decompose"]>],
    [SameOperandsAndResultType, Elementwise, Differentiable]>;

class Graph_UnaryOp<string name> : Graph_ElementwiseOp<name> {
  let arguments = (ins Graph_FloatTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Graph_LogisticOp : Graph_UnaryOp<"logistic"> {
  let summary = "1 / (1 + exp(-x))";
}

def Graph_SiluOp : Graph_UnaryOp<"silu"> {
  let summary = "x * logistic(x) (Elfwing et al., 2018)";
}

def Graph_GeluOp : Graph_ElementwiseOp<"gelu"> {
  let summary = "x * Phi(x) (Hendrycks and Gimpel, 2016)";
  let description = [{
    `erf`: x/2 * (1 + erf(x / sqrt 2)). `tanh`: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), GPT-2's `gelu_new`.
  }];
  let arguments = (ins Graph_GeluKind:$kind, Graph_FloatTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` type($result)";
}

def Graph_SoftcapOp : Graph_ElementwiseOp<"softcap"> {
  let summary = "cap * tanh(x / cap): keeps values between -cap and cap (Gemma Team, 2024)";
  let description = "**Constraints:** the cap is finite and positive.";
  let arguments = (ins Graph_FloatTensor:$input, F64Attr:$cap);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input `cap` custom<Real>($cap) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Graph_RmsNormOp : Graph_InferredOp<"rms_norm", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>,
    FusionModel<["fusionRole", "decompose"]>], [Differentiable]> {
  let summary = "Root-mean-square normalisation over the last dimension (Zhang and Sennrich, 2019)";
  let description = [{
    `x / sqrt(mean(x^2) + eps) * scale`, statistics in f32 or wider.

    **Constraints:** the input has at least one dimension; `scale` has one dimension of the last one's size; element
    types agree; eps is finite and not negative.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$scale, F64Attr:$eps);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale `eps` custom<Real>($eps) attr-dict `:` functional-type(operands, results)";
}

def Graph_LayerNormOp : Graph_InferredOp<"layer_norm", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>,
    FusionModel<["fusionRole", "decompose"]>], [Differentiable]> {
  let summary = "Layer normalisation over the last dimension (Ba et al., 2016)";
  let description = [{
    `(x - mean) / sqrt(variance + eps) * scale + bias`, with the biased variance; statistics in f32 or wider.

    **Constraints:** as for rms_norm; `bias` obeys the same ones as `scale`.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$scale, Graph_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale `,` $bias `eps` custom<Real>($eps) attr-dict `:` functional-type(operands, results)";
}

def Graph_RopeAnglesOp : Graph_ComputeOp<"rope_angles", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>, KernelModel<>]> {
  let summary = "Cosines and sines of rotary position embedding (Su et al., 2021)";
  let description = [{
    positions [S], head dimension D: the results [S, D/2] are the cosines and sines of
    `angle[s, i] = positions[s] * theta^(-2i/D)`. With `scaled`, `#graph.rope_scaling` scales `theta^(-2i/D)`.

    **Constraints:** positions have one dimension; both results have the shape [S, D/2]; theta is finite and positive.
  }];
  let arguments = (ins Graph_IndexTensor:$positions, F64Attr:$theta, OptionalAttr<Graph_RopeScalingAttr>:$scaling);
  let results = (outs Graph_FloatTensor:$cosine, Graph_FloatTensor:$sine);
  let assemblyFormat = [{
    $positions `theta` custom<Real>($theta) (`scaled` $scaling^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_RopeOp : Graph_InferredOp<"rope", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<["precision", "isWideOperand"]>,
    FusionModel<["fusionRole", "decompose"]>], [Differentiable]> {
  let summary = "Rotary position embedding: rotates pairs (i, i + D/2) of the last dimension";
  let description = [{
    Input [B, S, H, D], cosine and sine [S, D/2]:
    `out[.., i] = x[.., i] * cos - x[.., i + D/2] * sin`, `out[.., i + D/2] = x[.., i + D/2] * cos + x[.., i] * sin`.
    `inverse` rotates by the negative angles, which is the transpose. Only the input gets a gradient, not the angles.

    **Constraints:** the input has four dimensions, the last one even; cosine and sine are [S, D/2] in the
    input's element type, or in f32 for a narrower one.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$cosine, Graph_FloatTensor:$sine,
                   UnitAttr:$inverse);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $input `,` $cosine `,` $sine attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_AttentionOp : Graph_InferredOp<"attention", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<["precision", "isWideResult"]>,
    FusionModel<>, KernelModel<>], [Differentiable, Graph_Contraction]> {
  let summary = "Scaled dot-product attention with grouped heads (Vaswani et al., 2017; Ainslie et al., 2023)";
  let description = [{
    query [B, S, H, D], key and value [B, T, K, D]; query head h uses key head h / (H / K).
    `scores = scale * query . key`; with `causal`, query s attends to keys t <= s + T - S, and with `window` W only to
    the last W of these (Beltagy et al., 2020). Results: the weighted values [B, S, H, D]; and the logsumexp of each row
    of scores [B, H, S], which the backward pass uses. Only the first result is differentiable.

    **Constraints:** four dimensions each; key and value have equal types; B and D agree; K divides H; with `causal`,
    S <= T; a window is positive (0, the default, is none) and needs `causal`; element types agree.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value, F64Attr:$scale,
                   UnitAttr:$causal, DefaultValuedOptionalAttr<I64Attr, "0">:$window);
  let results = (outs Graph_FloatTensor:$result, Graph_StatTensor:$logsumexp);
  let assemblyFormat = [{
    (`causal` $causal^)? (`window` $window^)? $query `,` $key `,` $value `scale` custom<Real>($scale)
    attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_AttentionGradOp : Graph_InferredOp<"attention_grad", [
    Interpretable<>, CostModel<>, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>, KernelModel<>],
    [Graph_Contraction]> {
  let summary = "Gradients of attention with respect to query, key and value";
  let description = [{
    Recomputes the probabilities from the logsumexp, so that nothing of size S x T is stored (Dao et al., 2022).

    **Constraints:** as for attention; `result` and `resultGrad` have the query's type, `logsumexp` is [B, H, S].
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value,
                   Graph_FloatTensor:$result, Graph_StatTensor:$logsumexp, Graph_FloatTensor:$result_grad,
                   F64Attr:$scale, UnitAttr:$causal, DefaultValuedOptionalAttr<I64Attr, "0">:$window);
  let results = (outs Graph_FloatTensor:$query_grad, Graph_FloatTensor:$key_grad, Graph_FloatTensor:$value_grad);
  let assemblyFormat = [{
    (`causal` $causal^)? (`window` $window^)? $query `,` $key `,` $value `,` $result `,` $logsumexp `,` $result_grad
    `scale` custom<Real>($scale) attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_SoftmaxCrossEntropyOp : Graph_InferredOp<"softmax_cross_entropy", [
    Interpretable<["takesAbsent"]>, CostModel<>, ShardingModel<["localize"]>,
    PaddingModel<["hasNeutralPadding", "requireNeutralPadding"]>, PrecisionModel<["precision"]>,
    FusionModel<["fusionRole", "decompose"]>], [Differentiable]> {
  let summary = "Negative log-likelihood of labels under softmax over the last dimension";
  let description = [{
    logits [N..., V], labels [N...]: `loss = logsumexp(logits) - logits[label]`. A negative label means no label: the
    loss and the gradient of its position are zero. The label V means a class whose logit another rank holds: the logit
    counts as zero, and the gradient is the softmax alone. Results: the loss and the logsumexp of each position, both
    [N...] in f32 or wider. Only the loss is differentiable, with respect to the logits.

    **Constraints:** the labels' shape is the logits' without the last dimension.
  }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_IndexTensor:$labels);
  let results = (outs Graph_StatTensor:$loss, Graph_StatTensor:$logsumexp);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

def Graph_SoftmaxCrossEntropyGradOp : Graph_InferredOp<"softmax_cross_entropy_grad", [
    Interpretable<["takesAbsent"]>, CostModel<>, ShardingModel<["localize"]>,
    PaddingModel<["hasNeutralPadding", "requireNeutralPadding", "resultPadding"]>, PrecisionModel<>,
    FusionModel<["fusionRole", "decompose"]>]> {
  let summary = "Gradient of softmax_cross_entropy with respect to the logits";
  let description = [{
    `(exp(logits - logsumexp) - onehot(label)) * lossGrad`, zero where the label is negative.

    **Constraints:** as for softmax_cross_entropy; `logsumexp` and `loss_grad` have the shape of the labels.
  }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_IndexTensor:$labels, Graph_StatTensor:$logsumexp,
                   Graph_StatTensor:$loss_grad);
  let results = (outs Graph_FloatTensor:$logits_grad);
  let assemblyFormat = "$logits `,` $labels `,` $logsumexp `,` $loss_grad attr-dict `:` functional-type(operands, results)";
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHLAYEROPS_TD
