#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_TD

include "dialects/Graph/GraphDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Graph_Attr<string name, string mnemonicName, list<Trait> traits = []> : AttrDef<Graph_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

def Graph_NormalAttr : Graph_Attr<"Normal", "normal"> {
  let summary = "Initialise with independent normal values";
  let description = [{
    `#graph.normal<0.02>`: mean 0, standard deviation 0.02. A counter-based generator computes each value from the seed,
    the variable's key and the global element index alone, so values do not depend on how the variable is sharded.

    **Constraints:** the standard deviation is finite and not negative.
  }];
  let parameters = (ins "::mlir::FloatAttr":$stddevAttr);
  let assemblyFormat = "`<` custom<Real>($stddevAttr) `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "double":$stddev), [{
    return $_get($_ctxt, ::mlir::FloatAttr::get(::mlir::Float64Type::get($_ctxt), stddev));
  }]>];
  let extraClassDeclaration = "double getStddev() const { return getStddevAttr().getValueAsDouble(); }";
}

def Graph_FillAttr : Graph_Attr<"Fill", "fill"> {
  let summary = "Initialise every element with one value";
  let description = [{
    `#graph.fill<1.0>`.

    **Constraints:** the value is finite.
  }];
  let parameters = (ins "::mlir::FloatAttr":$valueAttr);
  let assemblyFormat = "`<` custom<Real>($valueAttr) `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "double":$value), [{
    return $_get($_ctxt, ::mlir::FloatAttr::get(::mlir::Float64Type::get($_ctxt), value));
  }]>];
  let extraClassDeclaration = "double getValue() const { return getValueAttr().getValueAsDouble(); }";
}

def Graph_InitAttr : Attr<Or<[Graph_NormalAttr.predicate, Graph_FillAttr.predicate]>, "#graph.normal or #graph.fill"> {
  let storageType = "::mlir::Attribute";
  let returnType = "::mlir::Attribute";
  let convertFromStorage = "$_self";
}

// Enumerations are integer attributes: an EnumAttr of the dialect would print two spaces in front of the keyword.
class Graph_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::bowline::graph";
}
def Graph_RoleKind : Graph_Enum<"RoleKind", "role of a parameter in its layer", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Column", 1, "column">,
    I32EnumAttrCase<"Row", 2, "row">,
    I32EnumAttrCase<"Keys", 3, "keys">,
    I32EnumAttrCase<"Fused", 4, "fused">,
    I32EnumAttrCase<"Vocabulary", 5, "vocabulary">,
    I32EnumAttrCase<"Expert", 6, "expert">]>;
def Graph_Lifetime : Graph_Enum<"Lifetime", "how long a state keeps its value", [
    I32EnumAttrCase<"Persistent", 0, "persistent">,
    I32EnumAttrCase<"Run", 1, "accumulator">,
    I32EnumAttrCase<"Microbatch", 2, "stash">]>;
def Graph_FunctionPart : Graph_Enum<"FunctionPart", "which part of a model or of a training step a function is", [
    I32EnumAttrCase<"Loss", 0, "loss">,
    I32EnumAttrCase<"Generate", 1, "generate">,
    I32EnumAttrCase<"Begin", 2, "begin">,
    I32EnumAttrCase<"Microbatch", 3, "microbatch">,
    I32EnumAttrCase<"Update", 4, "update">,
    I32EnumAttrCase<"Forward", 5, "forward">,
    I32EnumAttrCase<"Backward", 6, "backward">,
    I32EnumAttrCase<"Step", 7, "step">,
    I32EnumAttrCase<"BackwardInput", 8, "backward_input">,
    I32EnumAttrCase<"BackwardWeight", 9, "backward_weight">]>;
def Graph_ReduceKind : Graph_Enum<"ReduceKind", "how elements are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">]>;
def Graph_GeluKind : Graph_Enum<"GeluKind", "which formula of GELU", [
    I32EnumAttrCase<"Erf", 0, "erf">,
    I32EnumAttrCase<"Tanh", 1, "tanh">]>;

def Graph_RoleAttr : Graph_Attr<"Role", "role"> {
  let summary = "The role of a parameter in its layer, which determines how ranks shard it";
  let description = [{
    | role | meaning |
    |---|---|
    | `none` | a parameter that ranks do not shard: a norm, positions, the bias of a `row` |
    | `column` | a projection into a layer's inner space, with independent columns or heads; or the bias of one |
    | `row` | a projection from the inner space back into the residual stream, which sums over rows or heads |
    | `keys` | a `column` that computes keys or values; with `keys shared 3`, three query heads use each of its heads |
    | `fused 64, 64, 64` | several `column` side by side, with these sizes along the output dimension |
    | `vocabulary` | an embedding of tokens, or the projection to logits |
    | `expert` | one matrix for each expert of a layer |

    A role describes the whole parameter, also where a rank holds only a shard of it.

    **Constraints:** `fused` has at least two sizes, all positive; no other role has sizes; only `keys` has `shared`,
    with a number of at least one.
  }];
  let parameters = (ins "::bowline::graph::RoleKind":$kind, ArrayRefParameter<"int64_t">:$parts,
                    DefaultValuedParameter<"int64_t", "1">:$sharedBy);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::bowline::graph::RoleKind":$kind), [{
    return $_get($_ctxt, kind, ::llvm::ArrayRef<int64_t>{}, /*sharedBy=*/1);
  }]>];
}

def Graph_RopeScalingAttr : Graph_Attr<"RopeScaling", "rope_scaling"> {
  let summary = "How rotary position embedding lowers its frequencies, for longer contexts";
  let description = [{
    `#graph.rope_scaling<factor 8.0>` divides all frequencies by 8, as `linear` of Hugging Face does.

    `#graph.rope_scaling<factor 8.0 original 8192 low 1.0 high 4.0>`, which is `llama3` of Hugging Face, keeps a
    frequency that makes at least `high` full turns within `original` positions, and divides by `factor` one that makes
    at most `low`. In between it interpolates linearly in the number of turns: `f * (s + (1 - s) / factor)` with
    `s = clamp((original * f / (2 pi) - low) / (high - low), 0, 1)`.

    **Constraints:** the factor is finite and at least 1; `original` is positive, and `0 < low < high`, both finite.
  }];
  // A scaling by a factor alone has `original` 0, and null for `lowAttr` and `highAttr`.
  let parameters = (ins "::mlir::FloatAttr":$factorAttr, DefaultValuedParameter<"int64_t", "0">:$original,
                    OptionalParameter<"::mlir::FloatAttr">:$lowAttr, OptionalParameter<"::mlir::FloatAttr">:$highAttr);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "double":$factor), [{
      auto f64 = ::mlir::Float64Type::get($_ctxt);
      return $_get($_ctxt, ::mlir::FloatAttr::get(f64, factor), /*original=*/0, ::mlir::FloatAttr(),
                   ::mlir::FloatAttr());
    }]>,
    AttrBuilder<(ins "double":$factor, "int64_t":$original, "double":$low, "double":$high), [{
      auto f64 = ::mlir::Float64Type::get($_ctxt);
      return $_get($_ctxt, ::mlir::FloatAttr::get(f64, factor), original, ::mlir::FloatAttr::get(f64, low),
                   ::mlir::FloatAttr::get(f64, high));
    }]>];
  let extraClassDeclaration = [{
    double getFactor() const { return getFactorAttr().getValueAsDouble(); }
    /// Whether the scaling depends on a frequency's number of turns. Only then may callers ask for getLow and getHigh.
    bool isByTurns() const { return getOriginal() != 0; }
    double getLow() const { return getLowAttr().getValueAsDouble(); }
    double getHigh() const { return getHighAttr().getValueAsDouble(); }
    double scale(double frequency) const;
  }];
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_TD
