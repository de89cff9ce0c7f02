#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPBASE_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPBASE_TD

include "dialects/Graph/GraphAttrs.td"
include "dialects/Graph/GraphOpInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Types and classes
//===----------------------------------------------------------------------===//

// Shapes are static, because the compiler places all memory. No dimension has size zero: a maximum, a mean or a norm
// over no elements has no value, and kernels need not handle the case.
class Graph_TensorOf<list<Type> elements, string elementSummary>
    : Type<And<[HasRankPred, CPred<"::bowline::graph::isStaticAndNotEmpty($_self)">,
                Concat<"[](::mlir::Type elementType) { return ",
                       SubstLeaves<"$_self", "elementType", AnyTypeOf<elements>.predicate>,
                       "; }(::llvm::cast<::mlir::ShapedType>($_self).getElementType())">]>,
           "tensor of " # elementSummary # " with a static shape without zeros", "::mlir::RankedTensorType">;

def Graph_Tensor : Graph_TensorOf<[F32, F64, BF16, F16, I32, I64, I1, UI8], "f32, f64, bf16, f16, i32, i64, i1 or ui8">;
def Graph_FloatTensor : Graph_TensorOf<[F32, F64, BF16, F16], "f32, f64, bf16 or f16">;
// A quantized matrix in blocks: [rows, blocks per row, bytes per block].
def Graph_BlockTensor : Graph_TensorOf<[UI8], "ui8">;
def Graph_WeightTensor : Graph_TensorOf<[F32, F64, BF16, F16, UI8], "f32, f64, bf16, f16 or ui8">;
def Graph_CacheTensor : Graph_TensorOf<[F32, F64, BF16, F16, UI8], "f32, f64, bf16, f16 or ui8">;
def Graph_StatTensor : Graph_TensorOf<[F32, F64], "f32 or f64">;
def Graph_IntTensor : Graph_TensorOf<[I32, I64], "i32 or i64">;
def Graph_IndexTensor : Graph_TensorOf<[I32], "i32">;

// A scalar i32 that is an index of the executing rank, such as the result of dist.coordinate.
def Graph_Place : Type<And<[Graph_IndexTensor.predicate, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>,
                       "tensor<i32>", "::mlir::RankedTensorType">,
                  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

class Graph_Op<string name, list<Trait> traits = []> : Op<Graph_Dialect, name, traits>;

// A pure function of tensors. `models` must name every model interface of GraphOpInterfaces.td. Each model lists the
// methods that the operation defines itself; the list is empty where the model's defaults are right.
class Graph_ComputeOp<string name, list<OpInterface> models, list<Trait> traits = []> : Graph_Op<name, !listconcat(
    [Pure, Factored], !foreach(model, models, !cast<Trait>(model)), traits)> {
  defvar named = !foreach(model, models, model.cppInterfaceName);
  defvar missing = !filter(model, ["Interpretable", "CostModel", "ShardingModel", "PaddingModel", "PrecisionModel",
                                   "FusionModel"], !empty(!filter(it, named, !eq(it, model))));
  assert !empty(missing), "graph." # name # " says nothing about its " # !interleave(missing, ", ") #
                          ": name each of them, with the answers of its own or without any";
}

// A function whose result types follow from operands and attributes: builders infer them, and the verifier checks them.
class Graph_InferredOp<string name, list<OpInterface> models, list<Trait> traits = []>
    : Graph_ComputeOp<name, models, !listconcat([InferTypeOpAdaptor], traits)>;

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPBASE_TD
