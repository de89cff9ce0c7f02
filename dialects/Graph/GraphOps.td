#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD

include "dialects/Graph/GraphCacheOps.td"
include "dialects/Graph/GraphLayerOps.td"
include "dialects/Graph/GraphQuantizedOps.td"
include "dialects/Graph/GraphOpBase.td"
include "dialects/Graph/GraphSamplingOps.td"
include "dialects/Graph/GraphTensorOps.td"
include "dialects/Program/ProgramEnums.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

//===----------------------------------------------------------------------===//
// Functions, entries and variables
//===----------------------------------------------------------------------===//

def Graph_FuncOp : Graph_Op<"func", [
    IsolatedFromAbove, AutomaticAllocationScope, FunctionOpInterface, SingleBlockImplicitTerminator<"ReturnOp">,
    OpAsmOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function on global tensors";
  let description = [{
    Arguments and results may carry `graph.name = "tokens"`, the name of the input or output in the plan. Arguments may
    carry `graph.limit = 32000 : i64`: callers keep integer elements in [0, limit), and f32 elements in [0, limit].

    A keyword before the symbol says which part of a model or of its training step the function is. Passes find a
    function by this part; the symbol is for people.

    | part | computation |
    |---|---|
    | `loss` | maps a microbatch to its summed loss and the number of its positions; `differentiate` derives it |
    | `generate` | maps one sequence to the logits of its next token |
    | `step` | maps new tokens of several sequences, and their cached keys and values, to the logits of the next tokens |
    | `begin` | runs once per training step, before its microbatches |
    | `microbatch` | runs once per microbatch: forward pass, backward pass, accumulation of gradients |
    | `update` | runs once per training step, after its microbatches |
    | `forward`, `backward` | one pass of a microbatch in the pipeline stage that `stage.index` names |
    | `backward_input`, `backward_weight` | the halves of `backward`: gradients for the previous stage, and all others |

    **Constraints:** arguments and results are tensors of static shape without zeros; `graph.name` is a string;
    `graph.limit` is a positive integer, on an argument of integers or f32; `graph.return` has the results' types; a
    module has at most one function per part, but one `forward` and `backward` per stage, and any number of `step`.

    ```mlir
    graph.func loss @loss(%tokens: tensor<8x128xi32> {graph.name = "tokens", graph.limit = 256 : i64}) -> tensor<f32> {
      %zero = arith.constant dense<0.0> : tensor<f32>
      graph.return %zero : tensor<f32>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<Graph_FunctionPart>:$part, SymbolNameAttr:$sym_name,
                   TypeAttrOf<FunctionType>:$function_type, OptionalAttr<StrAttr>:$sym_visibility,
                   OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                                 CArg<"std::optional<FunctionPart>", "{}">:$part)>];
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
    /// The function of `module` that is this part; null where there is none.
    static FuncOp find(::mlir::ModuleOp module, FunctionPart part);
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
  let summary = "A program that a caller of the plan may run: a list of functions, each with a repeat count";
  let description = [{
    Callers of the plan find an entry by its `kind`, which states its purpose; an entry of kind `custom` by its name. An
    entry of kind `step` or `embed` has a `bucket`, the number of tokens that it computes; there may be one such entry
    per bucket. This training step runs one function for each of four microbatches, then another once:

    ```mlir
    graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [4, 1]
    ```

    In a pipeline, passes of different microbatches alternate. A `timeline` lists the calls in the order in which they
    run. Each call is a pair: the function's position in the list, and the microbatch. Every argument has one value per
    microbatch, and arguments of equal name are one input.

    ```mlir
    graph.entry train_step @train_step [@forward.0, @backward.0, @update] repeat [1, 1, 1]
      timeline [0, 0, 0, 1, 1, 0, 1, 1, 2, 0] microbatches 2
    ```

    **Constraints:** the kind is not `prepare`, which the compiler reserves; one entry per kind (and bucket) in a
    module; a `step` or `embed` has a positive bucket that fits an i32, other kinds have none; every function exists and
    has a positive repeat count; arguments of a function that is repeated more than once hold one value per repetition;
    only the last function returns results. With a timeline: repeat counts are 1, every function occurs, positions and
    microbatches are in range, and the last function runs once, at the end.
  }];
  let arguments = (ins DefaultValuedAttr<Program_EntryKind, "::bowline::EntryKind::Custom">:$kind,
                   SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "0">:$bucket,
                   FlatSymbolRefArrayAttr:$functions, DenseI64ArrayAttr:$repeat,
                   OptionalAttr<DenseI64ArrayAttr>:$timeline, OptionalAttr<I64Attr>:$microbatches);
  let assemblyFormat = [{
    (custom<EntryKind>($kind)^)? $sym_name (`bucket` $bucket^)? $functions `repeat` $repeat (`timeline` $timeline^)?
    (`microbatches` $microbatches^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::bowline::EntryKind":$kind, "::llvm::StringRef":$name,
                                 "::mlir::ArrayAttr":$functions, "::llvm::ArrayRef<int64_t>":$repeat)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// A position in the list of functions, and a microbatch.
    using Call = std::pair<int64_t, int64_t>;
    /// All calls in order: the timeline, or else `repeat` expanded, with the repetition as the microbatch.
    ::llvm::SmallVector<Call> getCalls();
    /// The entry of `module` of this kind; null where there is none. Not for kinds with buckets.
    static EntryOp find(::mlir::ModuleOp module, ::bowline::EntryKind kind);
  }];
}

def Graph_ParamOp : Graph_Op<"param", [
    Symbol, Graph_Variable, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A parameter: a tensor of the model's weights";
  let description = [{
    `key` is the tensor's name in safetensors files. A training step updates every parameter that is not `frozen`, and
    checkpoints contain all parameters. `role` is the parameter's role in its layer (`#graph.role`), and `layer` is the
    index of this layer, from 0 in the order of the forward pass. Passes that shard a model read `role` and `layer`, and
    ignore the symbol's name.

    A mirror (`mirror_of`) is a copy of another parameter, rounded if its own type is narrower. It has the same key and
    initial value, and each update of the parameter writes the mirror too. Loading weights fills it from the same
    tensor, and checkpoints leave it out. The program of one rank may have a mirror without its parameter.

    ```mlir
    graph.param @layers.0.attn.wq : tensor<768x768xf32> init(#graph.normal<0.02>) key("model.layers.0.self_attn.q_proj.weight") role(column) layer(0)
    graph.param frozen @scale : tensor<768xf32> init(#graph.fill<1.0>) key("scale")
    graph.param @embed.mirror1 : tensor<32x8xbf16> init(#graph.normal<0.02>) key("embed") mirror_of @embed
    ```

    A quantized matrix [N, K] is a tensor of bytes [N, K / B, bytes of a block] with B elements per block, and `format`
    names its GGUF format (`types/block_formats.h`).

    ```mlir
    graph.param frozen @layers.0.attn.wq : tensor<576x18x20xui8> init(#graph.fill<0.0>) key("model.layers.0.self_attn.q_proj.weight") format("q4_1")
    ```

    **Constraints:** a static shape without zeros; floating-point elements, or bytes with a `format` that the last
    dimension fits, and then `frozen`; the layer is not negative; a mirror has the global shape, initial value, key and
    `frozen` of its owner, and the same or narrower elements; its owner is no mirror.
  }];
  let arguments = (ins UnitAttr:$frozen, SymbolNameAttr:$sym_name, TypeAttrOf<Graph_WeightTensor>:$type,
                   Graph_InitAttr:$init, StrAttr:$key, OptionalAttr<FlatSymbolRefAttr>:$mirror_of,
                   OptionalAttr<Graph_RoleAttr>:$role, OptionalAttr<I64Attr>:$layer, OptionalAttr<StrAttr>:$format);
  let assemblyFormat = [{
    (`frozen` $frozen^)? $sym_name `:` $type `init` `(` $init `)` `key` `(` $key `)` (`mirror_of` $mirror_of^)?
    (`role` `(` custom<Role>($role)^ `)`)? (`layer` `(` $layer^ `)`)?
    (`format` `(` $format^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type, "::mlir::Attribute":$init,
                                 "::llvm::StringRef":$key)>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    bool isPersistent() { return true; }
    ::bowline::StateFlags getFlags();
    ::llvm::StringRef getFileKey() { return getKey(); }
    ::mlir::FlatSymbolRefAttr getOwnerAttr() { return getMirrorOfAttr(); }
    bool isMirror() { return getMirrorOf().has_value(); }
    bool isTrained() { return !getFrozen(); }
  }];
}

def Graph_StateOp : Graph_Op<"state", [
    Symbol, Graph_Variable, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor that functions share and that is not a parameter";
  let description = [{
    The flags of a persistent state state its purpose. Checkpoints contain a `saved` state, such as the moments of an
    optimizer; the count of finished steps is `saved|step`. `of` names the parameter of a moment or gradient.

    An `accumulator` lives during one run of an entry, whose functions write it before they read it.

    A `stash` passes a value of a microbatch from one function of an entry's timeline to a later one. With its `slots`,
    the functions of microbatch m write and read slot m mod `slots`. Ranks do not share a stash.

    ```mlir
    graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
    graph.state @wq.m saved of @wq : tensor<8x8xf32> init(#graph.fill<0.0>)
    graph.state @wq.grad accumulator of @wq : tensor<8x8xf32> init(#graph.fill<0.0>)
    graph.state @activations stash : tensor<8x128xf32> init(#graph.fill<0.0>) slots 4
    ```

    **Constraints:** the type is a tensor of static shape without zeros; a persistent state has exactly one of `saved`,
    `per_request` and `cache`, which says how its value is restored; `trained`, `weight` and `mirror` are flags of
    parameters only; a `step` is a `tensor<i32>`;
    `#graph.normal` needs floating-point elements; integer elements are filled with an integer in their range;
    an accumulator and a stash have no flags and start from `#graph.fill`; a stash has at least one slot, and other
    states have no `slots`; `of` names a parameter.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Graph_Lifetime:$lifetime, Program_StateFlags:$flags,
                   OptionalAttr<FlatSymbolRefAttr>:$of, TypeAttrOf<Graph_Tensor>:$type, Graph_InitAttr:$init,
                   OptionalAttr<I64Attr>:$slots);
  let assemblyFormat = [{
    $sym_name custom<Purpose>($lifetime, $flags) (`of` $of^)? `:` $type `init` `(` $init `)` (`slots` $slots^)?
    attr-dict
  }];
  let builders = [
    // Builds a persistent state.
    OpBuilder<(ins "::llvm::StringRef":$name, "::bowline::StateFlags":$flags, "::mlir::RankedTensorType":$type,
                   "::mlir::Attribute":$init, CArg<"::mlir::FlatSymbolRefAttr", "{}">:$of)>,
    // Builds an accumulator or a stash. The caller sets the slots of a stash.
    OpBuilder<(ins "::llvm::StringRef":$name, "Lifetime":$lifetime, "::mlir::RankedTensorType":$type,
                   "::mlir::Attribute":$init, CArg<"::mlir::FlatSymbolRefAttr", "{}">:$of)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    bool isPersistent() { return getLifetime() == Lifetime::Persistent; }
    bool isAccumulator() { return getLifetime() == Lifetime::Run; }
    bool isStash() { return getLifetime() == Lifetime::Microbatch; }
    ::llvm::StringRef getFileKey() { return getSymName(); }
    ::mlir::FlatSymbolRefAttr getOwnerAttr() { return getOfAttr(); }
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
// Fusion
//===----------------------------------------------------------------------===//

def Graph_FusionOp : Graph_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Operations that become one kernel";
  let description = [{
    `group-fusions` creates fusions, and `select-kernels` replaces each by a kernel call. The body computes the results
    from its arguments, which stand for the inputs.

    `valid_rows` is a list of indices into the inputs followed by the results. The first names an input whose last
    element counts rows, as for graph.valid_rows; the others name tensors with rows. The kernel neither reads nor writes
    rows from the count on, so no one may use them. A body of one kernel operation calls its form that skips rows.

    `epilogue` names a library's epilogue: the library computes the contraction with which the body begins, and the rest
    of the body (kernels/registry/product_epilogue.h). Inputs and results are in the order of that kernel's arguments.

    **Constraints:** body arguments have the inputs' types; `graph.yield` has the results' types. With `epilogue`: the
    body begins with a contraction, and there are no `valid_rows`. With `valid_rows`: the count is i32 with one
    dimension; indices differ, and the other tensors have equal first dimensions; if the body becomes generated code,
    all results are listed, and are floating-point tensors of several rows, each of several elements.
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, OptionalAttr<DenseI64ArrayAttr>:$valid_rows,
                   OptionalAttr<StrAttr>:$epilogue);
  let results = (outs Variadic<Graph_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$outputs, "::mlir::ValueRange":$inputs), [{
    build($_builder, $_state, outputs, inputs, ::mlir::DenseI64ArrayAttr(), ::mlir::StringAttr());
  }]>];
  let assemblyFormat = [{
    `(` $inputs `)` (`rows` $valid_rows^)? (`epilogue` $epilogue^)? attr-dict `:` functional-type($inputs, $outputs) $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The contraction at the start of the body, of which the other operations are the epilogue; null if there is none.
    ::mlir::Operation *getContraction();
    ::llvm::LogicalResult verifyValidRows();
  }];
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, HasParent<"FusionOp">, ReturnLike, Terminator]> {
  let summary = "The results of a fusion";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
