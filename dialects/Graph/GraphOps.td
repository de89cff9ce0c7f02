#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD

include "dialects/Graph/GraphLayerOps.td"
include "dialects/Graph/GraphOpBase.td"
include "dialects/Graph/GraphTensorOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

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
  let extraClassDeclaration = [{
    /// The contraction, with the first inputs, that the other operations are the epilogue of; null where there is none.
    ::mlir::Operation *getContraction();
  }];
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, HasParent<"FusionOp">, ReturnLike, Terminator]> {
  let summary = "The results of a fusion";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPS_TD
