#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD

include "dialects/Graph/GraphAttrs.td"
include "dialects/Graph/GraphOpInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Types and classes
//===----------------------------------------------------------------------===//

// Static shapes only: memory is decided at compile time. No dimension of size zero: a maximum, a mean or a norm over
// nothing has no value, and no kernel needs to care.
class Graph_TensorOf<list<Type> elements, string elementSummary>
    : Type<And<[HasRankPred, CPred<"::bowline::graph::isStaticAndNotEmpty($_self)">,
                Concat<"[](::mlir::Type elementType) { return ",
                       SubstLeaves<"$_self", "elementType", AnyTypeOf<elements>.predicate>,
                       "; }(::llvm::cast<::mlir::ShapedType>($_self).getElementType())">]>,
           "tensor of " # elementSummary # " with a static shape without zeros", "::mlir::RankedTensorType">;

def Graph_Tensor : Graph_TensorOf<[F32, F64, BF16, F16, I32, I64, I1], "f32, f64, bf16, f16, i32, i64 or i1">;
def Graph_FloatTensor : Graph_TensorOf<[F32, F64, BF16, F16], "f32, f64, bf16 or f16">;
def Graph_StatTensor : Graph_TensorOf<[F32, F64], "f32 or f64">;
def Graph_IntTensor : Graph_TensorOf<[I32, I64], "i32 or i64">;
def Graph_IndexTensor : Graph_TensorOf<[I32], "i32">;

// A number that a rank knows about itself.
def Graph_Place : Type<And<[Graph_IndexTensor.predicate, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>,
                       "tensor<i32>", "::mlir::RankedTensorType">,
                  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

class Graph_Op<string name, list<Trait> traits = []> : Op<Graph_Dialect, name, traits>;

// A pure function of tensors with reference semantics, a cost and a rule of how it can be cut.
class Graph_ComputeOp<string name, list<Trait> traits = []> : Graph_Op<name, !listconcat([
    Pure, DeclareOpInterfaceMethods<Graph_Interpretable>, DeclareOpInterfaceMethods<Graph_CostModel>,
    DeclareOpInterfaceMethods<Graph_Factored>], traits)>;

// Result types follow from operands and attributes: the verifier checks them and builders do not ask for them.
class Graph_InferredOp<string name, list<Trait> traits = []>
    : Graph_ComputeOp<name, !listconcat([InferTypeOpAdaptor], traits)>;

defvar Differentiable = DeclareOpInterfaceMethods<Graph_Differentiable>;

//===----------------------------------------------------------------------===//
// Functions, entries and variables
//===----------------------------------------------------------------------===//

def Graph_FuncOp : Graph_Op<"func", [
    IsolatedFromAbove, AutomaticAllocationScope, FunctionOpInterface, SingleBlockImplicitTerminator<"ReturnOp">,
    OpAsmOpInterface]> {
  let summary = "A function on global tensors";
  let description = [{
    Arguments and results may carry `graph.name = "tokens"` (the name of the port in the plan); an integer argument may
    carry `graph.limit = 32000 : i64`: its values lie in [0, limit).

    **Constraints:** arguments and results are tensors of static shape without zeros; `graph.name` is a string;
    `graph.limit` is a positive integer, on an argument with integer elements; `graph.return` has the results' types.

    ```mlir
    graph.func @loss(%tokens: tensor<8x128xi32> {graph.name = "tokens", graph.limit = 256 : i64}) -> tensor<f32> {
      %zero = arith.constant dense<0.0> : tensor<f32>
      graph.return %zero : tensor<f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                   OptionalAttr<StrAttr>:$sym_visibility,
                   OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kNameAttr = "graph.name";
    static constexpr ::llvm::StringLiteral kLimitAttr = "graph.limit";
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
    /// The port name of an argument or result; "arg0" / "result0" where none is given.
    std::string getArgName(unsigned index);
    std::string getResultName(unsigned index);
  }];
}

def Graph_ReturnOp : Graph_Op<"return", [Pure, HasParent<"FuncOp">, ReturnLike, Terminator]> {
  let summary = "Ends a function";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Graph_EntryOp : Graph_Op<"entry", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "What a caller of the plan may run: functions in order, each repeated";
  let description = [{
    A training step runs one function per microbatch and another once:

    ```mlir
    graph.entry @train_step [@train_microbatch, @train_update] repeat [4, 1]
    ```

    In a pipeline microbatches take turns. A `timeline` says so: pairs of a function, as its position in the list, and a
    microbatch, in the order in which they run. All arguments hold one value per microbatch, and arguments of one name
    are one input.

    ```mlir
    graph.entry @train_step [@forward.0, @backward.0, @update] repeat [1, 1, 1]
      timeline [0, 0, 0, 1, 1, 0, 1, 1, 2, 0] microbatches 2
    ```

    **Constraints:** the name is not `prepare`, which compiled plans use; every function exists; one positive repeat count
    per function; arguments of a function that is repeated more than once hold one value per repetition; only the last
    function may return results. With a timeline, repeat counts are 1, every function is in it, those it names exist,
    microbatches are below their number, and the last function runs once, at the end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$functions, DenseI64ArrayAttr:$repeat,
                   OptionalAttr<DenseI64ArrayAttr>:$timeline, OptionalAttr<I64Attr>:$microbatches);
  let assemblyFormat = [{
    $sym_name $functions `repeat` $repeat (`timeline` $timeline^)? (`microbatches` $microbatches^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::ArrayAttr":$functions,
                                 "::llvm::ArrayRef<int64_t>":$repeat)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Position in the list of functions, and microbatch.
    using Call = std::pair<int64_t, int64_t>;
    /// All calls in order, those of `repeat` written out; a repetition counts as a microbatch.
    ::llvm::SmallVector<Call> getCalls();
  }];
}

def Graph_ParamOp : Graph_Op<"param", [Symbol]> {
  let summary = "A trainable parameter";
  let description = [{
    `key` is the tensor's name in safetensors files. `role` says what the parameter is to its layer (`#graph.role`), and
    `layer` which one that is, counted from 0 in the order of the forward pass. Both are for those who divide a model
    among ranks; a name means nothing to them.

    ```mlir
    graph.param @layers.0.attn.wq : tensor<768x768xf32> init(#graph.normal<0.02>) key("model.layers.0.self_attn.q_proj.weight") role(column) layer(0)
    ```

    **Constraints:** the type is a tensor of static shape without zeros and with floating-point elements; the layer is
    not negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Graph_FloatTensor>:$type, Graph_InitAttr:$init,
                   StrAttr:$key, OptionalAttr<Graph_RoleAttr>:$role, OptionalAttr<I64Attr>:$layer);
  let assemblyFormat = [{
    $sym_name `:` $type `init` `(` $init `)` `key` `(` $key `)` (`role` `(` custom<Role>($role)^ `)`)?
    (`layer` `(` $layer^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def Graph_StateOp : Graph_Op<"state", [Symbol]> {
  let summary = "A persistent tensor that is no parameter";
  let description = [{
    Optimizer moments and the step counter live across steps and belong to a checkpoint; an `accumulator` lives within
    one run of an entry, whose functions write it before they read it, and does not.

    A `stash` keeps a value of a microbatch from one function of an entry's timeline to another. It has `slots`: what
    runs for microbatch m writes and reads slot m mod `slots`. It belongs to no checkpoint, and no rank has another
    rank's.

    ```mlir
    graph.state @step step : tensor<i32> init(#graph.fill<0.0>)
    graph.state @activations stash : tensor<8x128xf32> init(#graph.fill<0.0>) slots 4
    ```

    **Constraints:** the type is a tensor of static shape without zeros; `#graph.normal` only for floating-point
    elements; integer elements are filled with a whole number that they can hold; an accumulator and a stash start from
    `#graph.fill`; a stash has at least one slot, and nothing else has slots.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Graph_StateRole:$role, TypeAttrOf<Graph_Tensor>:$type,
                   Graph_InitAttr:$init, OptionalAttr<I64Attr>:$slots);
  let assemblyFormat = "$sym_name $role `:` $type `init` `(` $init `)` (`slots` $slots^)? attr-dict";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "StateRole":$role, "::mlir::RankedTensorType":$type,
                                 "::mlir::Attribute":$init)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def Graph_Variables : Resource<"::bowline::graph::VariablesResource">;

def Graph_ReadOp : Graph_Op<"read", [
    MemoryEffects<[MemRead<Graph_Variables>]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The current value of a parameter or state";
  let description = "**Constraints:** the variable exists and has the type of the result.";
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}

def Graph_WriteOp : Graph_Op<"write", [
    MemoryEffects<[MemWrite<Graph_Variables>]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Replaces the value of a parameter or state";
  let description = [{
    Later reads see the new value; values read before keep the old one.

    **Constraints:** the variable exists and has the type of the value.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Graph_Tensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Contraction and reduction
//===----------------------------------------------------------------------===//

def Graph_DotGeneralOp : Graph_ComputeOp<"dot_general", [InferTypeOpAdaptorWithIsCompatible, Differentiable]> {
  let summary = "Tensor contraction with batch dimensions";
  let description = [{
    `result[batch..., lhs free..., rhs free...] = sum over contracted of lhs * rhs`, free dimensions in their order.
    Accumulates in f32 or wider; the sum is rounded to the result's element type once.

    ```mlir
    %y = graph.dot_general %x, %w contract [2] x [1] : (tensor<8x128x384xf32>, tensor<1024x384xf32>) -> tensor<8x128x1024xf32>
    ```

    **Constraints:** dimension lists of both sides have equal length, are in range and name no dimension twice; paired
    dimensions have equal size; element types of the operands agree, and the result has theirs, or f32 where theirs is
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

def Graph_ReduceOp : Graph_InferredOp<"reduce", [Differentiable]> {
  let summary = "Combines elements along dimensions, which disappear";
  let description = [{
    The order of combination is not specified, but fixed for a plan. `max` is differentiable where the maximum is
    unique; elsewhere every maximal element gets the gradient.

    **Constraints:** dimensions are in range and strictly increasing.
  }];
  let arguments = (ins Graph_ReduceKind:$kind, Graph_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` $dims attr-dict `:` functional-type(operands, results)";
}

def Graph_BroadcastOp : Graph_ComputeOp<"broadcast", [Differentiable]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    `dims[i]` is the result dimension that operand dimension i becomes; the others are new.

    **Constraints:** one entry per operand dimension, in range and strictly increasing; sizes agree; element types agree.
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

def Graph_TransposeOp : Graph_InferredOp<"transpose", [Differentiable]> {
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

def Graph_ReshapeOp : Graph_ComputeOp<"reshape", [Differentiable]> {
  let summary = "The same elements in row-major order under another shape";
  let description = "**Constraints:** the element count and the element type do not change.";
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Graph_SliceOp : Graph_InferredOp<"slice", [Differentiable]> {
  let summary = "A contiguous box of a tensor";
  let description = "**Constraints:** one offset and one size per dimension; sizes are positive; the box lies inside.";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$sizes);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `at` $offsets `sizes` $sizes attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Graph_PadOp : Graph_InferredOp<"pad", [Differentiable]> {
  let summary = "Surrounds a tensor with zeros";
  let description = "**Constraints:** one amount per dimension on each side, none negative.";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
}

def Graph_ConcatOp : Graph_InferredOp<"concat", [Differentiable]> {
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

def Graph_GatherOp : Graph_InferredOp<"gather", [Differentiable]> {
  let summary = "Rows of a table by index";
  let description = [{
    `result[i..., d...] = table[indices[i...], d...]`. An index out of range is an error of the caller, checked where
    the indices enter the program.

    **Constraints:** the table has at least one dimension.
  }];
  let arguments = (ins Graph_Tensor:$table, Graph_IndexTensor:$indices);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$table `[` $indices `]` attr-dict `:` functional-type(operands, results)";
}

def Graph_ScatterAddOp : Graph_ComputeOp<"scatter_add"> {
  let summary = "Adds rows into a table of zeros by index: the transpose of gather";
  let description = [{
    `result[r, d...] = sum over i with indices[i...] = r of updates[i..., d...]`, in increasing order of i.

    **Constraints:** updates have the indices' dimensions, then the result's dimensions after the first.
  }];
  let arguments = (ins Graph_FloatTensor:$updates, Graph_IndexTensor:$indices);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$updates `at` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_IotaOp : Graph_ComputeOp<"iota"> {
  let summary = "Element values equal their index along one dimension";
  let description = "**Constraints:** the dimension is in range.";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Graph_IntTensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Graph_RandomOp : Graph_ComputeOp<"random"> {
  let summary = "Independent normal values from a counter-based generator";
  let description = [{
    Philox4x32-10 (Salmon et al., SC 2011) keyed by `seed` and `stream`, counted by the global element index, then
    Box-Muller: the value of an element depends on nothing else. `kernels/registry/philox.h` is the definition.

    The result may be a part of a tensor of shape `whole` that is cut along `cut_dims` into parts of the result's sizes;
    `places` says, per cut dimension, which part it is, from 0. An element that lies outside of the whole is zero: a
    part may go beyond its end.

    ```mlir
    %w = graph.random normal(0.02) seed(1) stream(7) : tensor<256x384xf32>
    %p = graph.random normal(0.02) seed(1) stream(7) part %i along [0] of [256, 384] : tensor<128x384xf32>
    %z = graph.random normal(0.02) seed(1) stream(7) of [250, 384] : tensor<256x384xf32>
    ```

    **Constraints:** the standard deviation is finite and not negative; one place per cut dimension, which differ and are
    in range, and the whole shape with them; along other dimensions the result has at least the size of the whole.
  }];
  let arguments = (ins F64Attr:$stddev, I64Attr:$seed, I64Attr:$stream, Variadic<Graph_Place>:$places,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$cut_dims, OptionalAttr<DenseI64ArrayAttr>:$whole);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = [{
    `normal` `(` custom<Real>($stddev) `)` `seed` `(` $seed `)` `stream` `(` $stream `)`
    (`part` $places^ `along` $cut_dims)? (`of` $whole^)? attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::FloatAttr":$stddev, "::mlir::IntegerAttr":$seed,
                                 "::mlir::IntegerAttr":$stream), [{
    build($_builder, $_state, result, stddev, seed, stream, ::mlir::ValueRange{},
          $_builder.getDenseI64ArrayAttr({}), ::mlir::DenseI64ArrayAttr());
  }]>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

class Graph_UnaryOp<string name> : Graph_ComputeOp<name, [SameOperandsAndResultType, Elementwise, Differentiable]> {
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

def Graph_GeluOp : Graph_ComputeOp<"gelu", [SameOperandsAndResultType, Elementwise, Differentiable]> {
  let summary = "x * Phi(x) (Hendrycks and Gimpel, 2016)";
  let description = [{
    `erf`: x/2 * (1 + erf(x / sqrt 2)). `tanh`: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), GPT-2's `gelu_new`.
  }];
  let arguments = (ins Graph_GeluKind:$kind, Graph_FloatTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` type($result)";
}

def Graph_RmsNormOp : Graph_InferredOp<"rms_norm", [Differentiable]> {
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

def Graph_LayerNormOp : Graph_InferredOp<"layer_norm", [Differentiable]> {
  let summary = "Layer normalisation over the last dimension (Ba et al., 2016)";
  let description = [{
    `(x - mean) / sqrt(variance + eps) * scale + bias`, with the biased variance; statistics in f32 or wider.

    **Constraints:** as for rms_norm, for `scale` and `bias`.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$scale, Graph_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale `,` $bias `eps` custom<Real>($eps) attr-dict `:` functional-type(operands, results)";
}

def Graph_RopeAnglesOp : Graph_ComputeOp<"rope_angles"> {
  let summary = "Cosines and sines of rotary position embedding (Su et al., 2021)";
  let description = [{
    For positions [S] and a head dimension D: `angle[s, i] = positions[s] * theta^(-2i/D)`, results [S, D/2].

    **Constraints:** positions have one dimension; both results have the shape [S, D/2]; theta is finite and positive.
  }];
  let arguments = (ins Graph_IndexTensor:$positions, F64Attr:$theta);
  let results = (outs Graph_FloatTensor:$cosine, Graph_FloatTensor:$sine);
  let assemblyFormat = "$positions `theta` custom<Real>($theta) attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_RopeOp : Graph_InferredOp<"rope", [Differentiable]> {
  let summary = "Rotary position embedding: rotates pairs (i, i + D/2) of the last dimension";
  let description = [{
    Input [B, S, H, D], cosine and sine [S, D/2]:
    `out[.., i] = x[.., i] * cos - x[.., i + D/2] * sin`, `out[.., i + D/2] = x[.., i + D/2] * cos + x[.., i] * sin`.
    `inverse` rotates backwards, which is the transpose. Only the input is differentiable: angles are constants of a model.

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

def Graph_AttentionOp : Graph_InferredOp<"attention", [Differentiable]> {
  let summary = "Scaled dot-product attention with grouped heads (Vaswani et al., 2017; Ainslie et al., 2023)";
  let description = [{
    query [B, S, H, D], key and value [B, T, K, D]; query head h uses key head h / (H / K).
    `scores = scale * query . key`; with `causal`, query s sees keys t <= s + T - S. Results: the weighted values
    [B, S, H, D], and the logarithm of the sum of exponentials of each row of scores [B, H, S], which the backward
    pass uses. Only the first result is differentiable.

    **Constraints:** four dimensions each; key and value have equal types; B and D agree; K divides H; with `causal`,
    S <= T; element types agree.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value, F64Attr:$scale,
                   UnitAttr:$causal);
  let results = (outs Graph_FloatTensor:$result, Graph_StatTensor:$logsumexp);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value `scale` custom<Real>($scale) attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_AttentionGradOp : Graph_InferredOp<"attention_grad"> {
  let summary = "Gradients of attention with respect to query, key and value";
  let description = [{
    Recomputes the probabilities from the logsumexp, so that nothing of size S x T is stored (Dao et al., 2022).

    **Constraints:** as for attention; `result` and `resultGrad` have the query's type, `logsumexp` is [B, H, S].
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value,
                   Graph_FloatTensor:$result, Graph_StatTensor:$logsumexp, Graph_FloatTensor:$result_grad,
                   F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Graph_FloatTensor:$query_grad, Graph_FloatTensor:$key_grad, Graph_FloatTensor:$value_grad);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value `,` $result `,` $logsumexp `,` $result_grad `scale` custom<Real>($scale)
    attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_SoftmaxCrossEntropyOp : Graph_InferredOp<"softmax_cross_entropy", [Differentiable]> {
  let summary = "Negative log-likelihood of labels under softmax over the last dimension";
  let description = [{
    logits [N..., V], labels [N...]: `loss = logsumexp(logits) - logits[label]`; a negative label counts as absent: its
    loss and its gradient are zero. A label of V names a class that is not among the logits, because another rank has
    them: its logit counts as zero, and the gradient is the softmax alone. Results: the loss per position and the logsumexp, both [N...] in f32 or wider. Only
    the first result is differentiable, with respect to the logits.

    **Constraints:** the labels' shape is the logits' without the last dimension.
  }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_IndexTensor:$labels);
  let results = (outs Graph_StatTensor:$loss, Graph_StatTensor:$logsumexp);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

def Graph_SoftmaxCrossEntropyGradOp : Graph_InferredOp<"softmax_cross_entropy_grad"> {
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

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def Graph_FusionOp : Graph_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Operations that become one kernel";
  let description = [{
    Made by fusion grouping, replaced by a launch in kernel selection. The body computes the results from its
    arguments, which stand for the inputs.

    **Constraints:** body arguments have the inputs' types; `graph.yield` has the results' types.
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs);
  let results = (outs Variadic<Graph_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, HasParent<"FusionOp">, ReturnLike, Terminator]> {
  let summary = "The results of a fusion";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
