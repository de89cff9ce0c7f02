#ifndef BOWLINE_DIALECTS_PLAN_PLANOPS_TD
#define BOWLINE_DIALECTS_PLAN_PLANOPS_TD

include "dialects/Plan/PlanAttrs.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Op<string name, list<Trait> traits = []> : Op<Plan_Dialect, name, traits>;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Plan_BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A typed range of the arena";
  let description = "**Constraints:** the tensor has a static shape and integer or floating-point elements.";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensor), [{
    return $_get(tensor.getContext(), tensor);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes of one slot.
    int64_t getBytes() const;
  }];
}

def Plan_BufferOp : Plan_Op<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A typed range of the arena";
  let description = [{
    With `slots`, an array of ranges `stride` bytes apart; a call of a segment says which slot its commands address.

    ```mlir
    %tokens = plan.buffer "tokens" input : <tensor<2x128xi32>> at 4096 slots 4 stride 1024
    ```

    **Constraints:** the name is not empty; the offset, where there is one, is not negative and a multiple of 64; slots
    are positive; the stride is zero for one slot, otherwise a multiple of 64 and at least the size.
  }];
  let arguments = (ins StrAttr:$name, Plan_BufferKind:$kind, OptionalAttr<I64Attr>:$offset,
                   DefaultValuedAttr<I64Attr, "1">:$slots, DefaultValuedAttr<I64Attr, "0">:$stride);
  let results = (outs Plan_BufferType:$result);
  let assemblyFormat = [{
    $name $kind `:` qualified(type($result)) (`at` $offset^)? (`slots` $slots^ `stride` $stride)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return getResult().getType().getTensor(); }
    int64_t getBytes() { return getResult().getType().getBytes(); }
    /// From the start of the first slot to the end of the last.
    int64_t getExtent() { return getBytes() + (getSlots() - 1) * getStride(); }
  }];
}

def Plan_StateOp : Plan_Op<"state"> {
  let summary = "A buffer that belongs to a checkpoint";
  let description = [{
    `key` is the tensor's name in safetensors files; `init` says for people how it starts.

    ```mlir
    plan.state %wq key "model.layers.0.self_attn.q_proj.weight" role parameter init "normal(0, 0.02)" : !plan.buffer<tensor<768x768xf32>>
    ```

    **Constraints:** the buffer is a parameter or a state.
  }];
  let arguments = (ins Plan_BufferType:$buffer, StrAttr:$key, Plan_StateRole:$role, StrAttr:$init);
  let assemblyFormat = "$buffer `key` $key `role` $role `init` $init attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Plan_ConstantOp : Plan_Op<"constant"> {
  let summary = "The content of a constant buffer, filled in once at load";
  let description = "**Constraints:** the buffer is a constant; the content is dense and has its type.";
  let arguments = (ins Plan_BufferType:$buffer, ElementsAttr:$value);
  let assemblyFormat = "$buffer `=` $value attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [Symbol]> {
  let summary = "Something that can be launched";
  let description = [{
    Either a name of the runtime's kernel registry with the attributes it is specialised on, or generated code. Before
    code generation, `body` names a `func.func` that computes the outputs from the inputs; afterwards `symbol` is a symbol
    of the module's `plan.image`, to be called on sub-ranges of [0, `extent`).

    A registered kernel with a `body`, afterwards a `symbol`, has that as its epilogue: generated code that computes the
    outputs from tiles of the kernel's own result while these are in the cache. The body's first argument is that result
    in f32, and the others are the kernel's arguments after the operands of its own.

    `in_place` lists pairs (output, input) of argument indices that may be exactly the same bytes. A last argument of
    element type `ui8` is workspace of a registered kernel.

    ```mlir
    plan.kernel @matmul.0 registered "matmul" config {k = 384, m = 2048, n = 1024} [#plan.arg<read, tensor<8x256x384xf32>>, #plan.arg<read, tensor<1024x384xf32>>, #plan.arg<write, tensor<8x256x1024xf32>>] cost 1.6e9, 1.3e7
    ```

    **Constraints:** at most one of `body` and `symbol` is given, and one where nothing is `registered`; a symbol has an
    extent unless it is an epilogue; in-place pairs name a written and a read argument
    of equal size.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$registered, OptionalAttr<DictionaryAttr>:$config,
                   TypedArrayAttrBase<Plan_ArgumentAttr, "kernel arguments">:$arguments,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$in_place,
                   OptionalAttr<FlatSymbolRefAttr>:$body, OptionalAttr<StrAttr>:$symbol, OptionalAttr<I64Attr>:$extent,
                   F64Attr:$flops, F64Attr:$bytes_moved);
  let assemblyFormat = [{
    $sym_name (`registered` $registered^ (`config` $config^)?)? (`body` $body^)? (`symbol` $symbol^)? (`extent` $extent^)? $arguments
    (`in_place` $in_place^)? `cost` $flops `,` $bytes_moved attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ArgumentAttr getArgument(unsigned index) { return ::llvm::cast<ArgumentAttr>(getArguments()[index]); }
    unsigned getNumArguments() { return getArguments().size(); }
    /// Whether the last argument is workspace: bytes without a meaning, as `ui8`.
    bool hasScratch();
    /// Whether a registered kernel has generated code, or the body of it, for its results.
    bool hasEpilogue() { return getRegistered() && (getBody() || getSymbol()); }
  }];
}

def Plan_ImageOp : Plan_Op<"image"> {
  let summary = "Machine code of the generated kernels: an ELF shared object";
  let arguments = (ins StrAttr:$format, ElementsAttr:$data);
  let assemblyFormat = "$format $data attr-dict";
}

def Plan_CallOp : Plan_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A launch on values: before memory exists";
  let description = [{
    Between kernel selection and command scheduling: operands are the arguments that the kernel reads, results those it
    writes, scratch left out.

    **Constraints:** the kernel exists; operand and result types have the element types and counts of its arguments.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [Symbol, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "What all ranks of one role execute for one entry";
  let description = [{
    Segments of commands, and the order in which they run: `timeline` holds pairs (segment, slot).

    **Constraints:** the timeline has an even number of values and names existing segments.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$timeline);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `timeline` $timeline attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Plan_SegmentOp : Plan_Op<"segment", [HasParent<"ProgramOp">, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Commands that run in order";
  let description = "**Constraints:** it holds `plan.launch` and `plan.copy` only.";
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Plan_LaunchOp : Plan_Op<"launch", [HasParent<"SegmentOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel on buffers";
  let description = [{
    `pass` names the pass that made the command; its location is the place in the user's model.

    **Constraints:** the kernel exists; one buffer per argument, each of the argument's size and element type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$operands,
                   DefaultValuedAttr<StrAttr, "\"\"">:$pass);
  let assemblyFormat = "$kernel `(` $operands `)` (`from` $pass^)? attr-dict (`:` qualified(type($operands))^)?";
}

def Plan_CopyOp : Plan_Op<"copy", [HasParent<"SegmentOp">]> {
  let summary = "Copies a buffer";
  let description = "**Constraints:** source and destination have the same size.";
  let arguments = (ins Plan_BufferType:$source, Plan_BufferType:$destination,
                   DefaultValuedAttr<StrAttr, "\"\"">:$pass);
  let assemblyFormat = [{
    $source `to` $destination (`from` $pass^)? attr-dict `:` qualified(type($source)) `to` qualified(type($destination))
  }];
  let hasVerifier = 1;
}

def Plan_EntryOp : Plan_Op<"entry", [Symbol, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "What a caller may run: a program and its named inputs and outputs";
  let description = [{
    An input whose limit is not zero takes integers in [0, limit).

    **Constraints:** the program exists; one name per buffer, one limit per input.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$program,
                   StrArrayAttr:$input_names, DenseI64ArrayAttr:$input_limits, Variadic<Plan_BufferType>:$inputs,
                   StrArrayAttr:$output_names, Variadic<Plan_BufferType>:$outputs);
  let assemblyFormat = [{
    $sym_name `program` $program `inputs` $input_names `limits` $input_limits `(` $inputs (`:` qualified(type($inputs))^)? `)`
    `outputs` $output_names `(` $outputs (`:` qualified(type($outputs))^)? `)` attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_AttachmentOp : Plan_Op<"attachment"> {
  let summary = "A text that travels with the plan, such as the model's config.json";
  let arguments = (ins StrAttr:$name, StrAttr:$text);
  let assemblyFormat = "$name $text attr-dict";
}

#endif // BOWLINE_DIALECTS_PLAN_PLANOPS_TD
