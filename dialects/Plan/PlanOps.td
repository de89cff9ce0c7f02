#ifndef BOWLINE_DIALECTS_PLAN_PLANOPS_TD
#define BOWLINE_DIALECTS_PLAN_PLANOPS_TD

include "dialects/Plan/PlanAttrs.td"
include "dialects/Program/ProgramEnums.td"
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
    /// The size in bytes of one slot.
    int64_t getBytes() const;
  }];
}

def Plan_BufferOp : Plan_Op<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A typed range of the arena in a memory space";
  let description = [{
    The buffer is in device memory, unless `in` says `pinned_host`, which only copies can access, or `external`: memory
    that the caller provides, such as a mapped file, and that no command writes. The address is a multiple of `align`
    bytes; default: 64.

    With `slots` the buffer is an array of ranges, `stride` bytes apart; a segment's call selects the slot that it uses.

    ```mlir
    %tokens = plan.buffer "tokens" input : <tensor<2x128xi32>> at 4096 slots 4 stride 1024
    %w = plan.buffer "w" parameter in external : <tensor<64x64xbf16>> at 16384 align 2
    ```

    `layout` says which shard of a global tensor the buffer holds; without it every rank holds the whole tensor.

    A buffer with `view` aliases bytes of another temporary. With `over` axes it starts, relative to its offset, at `by`
    bytes times the rank's index along these axes. So a rank can address its own part of a tensor gathered in place:

    ```mlir
    %own = plan.buffer "own" temporary : <tensor<16xf32>> at 4096 view %whole : !plan.buffer<tensor<48xf32>> over ["tp"] by 64
    ```

    **Constraints:** the name is not empty; the alignment is a power of two up to 4096; the offset, if present, is not
    negative and a multiple of the alignment; `slots` is positive; the stride is 0 for one slot, otherwise a multiple of
    the alignment and at least the size; an external buffer is a parameter with one slot; a view and the viewed buffer
    are temporary and have the same element type, memory space, slots and stride; the viewed buffer is no view; `by` is
    at least the view's size with axes, and 0 without.
  }];
  let arguments = (ins StrAttr:$name, Plan_BufferKind:$kind, OptionalAttr<I64Attr>:$offset,
                   DefaultValuedAttr<I64Attr, "1">:$slots, DefaultValuedAttr<I64Attr, "0">:$stride,
                   OptionalAttr<Plan_LayoutAttr>:$layout,
                   DefaultValuedAttr<Plan_MemorySpace, "::bowline::plan::MemorySpace::Device">:$space,
                   DefaultValuedAttr<I64Attr, "64">:$alignment,
                   Optional<Plan_BufferType>:$viewed, OptionalAttr<StrArrayAttr>:$view_axes,
                   DefaultValuedAttr<I64Attr, "0">:$view_stride);
  let results = (outs Plan_BufferType:$result);
  let assemblyFormat = [{
    $name $kind (`in` $space^)? `:` qualified(type($result)) (`at` $offset^)? (`align` $alignment^)? (`slots` $slots^ `stride` $stride)? (`layout` $layout^)?
    (`view` $viewed^ `:` qualified(type($viewed)) (`over` $view_axes^ `by` $view_stride)?)? attr-dict
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::bowline::plan::BufferType":$type, "::mlir::StringRef":$name,
                                 "::bowline::plan::BufferKind":$kind, "::mlir::IntegerAttr":$offset,
                                 CArg<"uint64_t", "1">:$slots, CArg<"uint64_t", "0">:$stride,
                                 CArg<"::bowline::plan::LayoutAttr", "{}">:$layout,
                                 CArg<"::bowline::plan::MemorySpace", "::bowline::plan::MemorySpace::Device">:$space,
                                 CArg<"uint64_t", "64">:$alignment), [{
    build($_builder, $_state, type, name, kind, offset, slots, stride, layout, space, alignment,
          /*viewed=*/::mlir::Value(), /*view_axes=*/::mlir::ArrayAttr(), /*view_stride=*/0);
  }]>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return getResult().getType().getTensor(); }
    int64_t getBytes() { return getResult().getType().getBytes(); }
    /// The number of bytes from the start of the first slot to the end of the last.
    int64_t getExtent() { return getBytes() + (getSlots() - 1) * getStride(); }
  }];
}

def Plan_StateOp : Plan_Op<"state"> {
  let summary = "A persistent tensor, and its purpose";
  let description = [{
    `key` is the tensor's name in safetensors files. Flags say, among others, whether checkpoints contain the tensor and
    whether it comes from a model's weights. `init` describes the initial value for readers. A quantized weight has a
    `format`.

    ```mlir
    plan.state %wq key "model.layers.0.self_attn.q_proj.weight" trained|saved|weight init "normal(0, 0.02)" : !plan.buffer<tensor<768x768xf32>>
    ```

    **Constraints:** the buffer is a parameter if it is a `weight`, else a state; it has exactly one of the flags
    `saved`, `mirror`, `per_request` and `cache`; only a `weight` is `trained`; a `step` is `saved` and no `weight`.
  }];
  let arguments = (ins Plan_BufferType:$buffer, StrAttr:$key, Program_StateFlags:$flags, StrAttr:$init,
                   OptionalAttr<StrAttr>:$format);
  let assemblyFormat = [{
    $buffer `key` $key custom<StateFlags>($flags) `init` $init (`format` $format^)? attr-dict `:` qualified(type($buffer))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer, "::llvm::StringRef":$key, "::bowline::StateFlags":$flags,
                                 "::llvm::StringRef":$init), [{
    build($_builder, $_state, buffer, key, flags, init, /*format=*/::mlir::StringAttr());
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool has(::bowline::StateFlags flag) { return ::bowline::bitEnumContainsAny(getFlags(), flag); }
  }];
}

def Plan_ConstantOp : Plan_Op<"constant"> {
  let summary = "The content of a constant buffer, filled in once at load";
  let description = "**Constraints:** the buffer is a constant; the content is dense and has its type.";
  let arguments = (ins Plan_BufferType:$buffer, ElementsAttr:$value);
  let assemblyFormat = "$buffer `=` $value attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Plan_CoordinateOp : Plan_Op<"coordinate"> {
  let summary = "A constant buffer that holds the rank's index in its group, filled in at load";
  let description = [{
    ```mlir
    plan.coordinate %place over ["tp"] : !plan.buffer<tensor<i32>>
    ```

    **Constraints:** the buffer is a constant of one i32; axes of the module's mesh.
  }];
  let arguments = (ins Plan_BufferType:$buffer, StrArrayAttr:$axes);
  let assemblyFormat = "$buffer `over` $axes attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Plan_CommunicatorOp : Plan_Op<"communicator", [Symbol]> {
  let summary = "The groups of ranks that differ only along some axes";
  let description = [{
    The ranks of a group are ordered by their coordinates along the axes, the first axis outermost. A command matches
    only commands of the same communicator on other ranks, even if another communicator has the same axes.

    ```mlir
    plan.communicator @dp.tp over ["dp", "tp"]
    ```

    **Constraints:** axes of the module's mesh, none twice.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes);
  let assemblyFormat = "$sym_name `over` $axes attr-dict-with-keyword";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [Symbol]> {
  let summary = "Declares a kernel that launches refer to: its code, arguments and cost";
  let description = [{
    A kernel is `registered`, a name in the runtime's kernel registry with a `config` that specialises it, or generated
    code. Before code generation, `body` names a `func.func` that computes the outputs from the inputs. Afterwards
    `symbol` names code in the module's `plan.image`. The runtime calls it on sub-ranges of [0, `extent`), or launches
    it with `grid`: blocks, threads per block, then constants that are passed after the addresses of arguments.

    If a registered kernel also has a `body` (later `symbol`), that is its epilogue: generated code that computes the
    outputs from tiles of the kernel's own result while these are in the cache. The body's first argument is that result
    in f32; the others are the arguments of the kernel that follow its own operands.

    `in_place` lists pairs (output, input) of argument indices that may alias exactly, byte for byte. A last argument of
    element type `ui8` is the workspace of a registered kernel.

    `rows`, for generated code only, lists argument indices. The first argument's last element is a row count; the
    others have rows as their first dimension. The code neither reads nor writes their rows from the count on.

    `depends` lists, for an output of generated code that does not depend on all inputs, the index of the output
    followed by the indices of the inputs on which it depends.

    ```mlir
    plan.kernel @matmul.0 registered "matmul" config {k = 384, m = 2048, n = 1024} [#plan.arg<read, tensor<8x256x384xf32>>, #plan.arg<read, tensor<1024x384xf32>>, #plan.arg<write, tensor<8x256x1024xf32>>] cost 1.6e9, 1.3e7
    ```

    **Constraints:** at most one of `body` and `symbol`, and exactly one if the kernel is not `registered`; a symbol
    that is no epilogue has either an extent or a grid; in-place pairs name a written and a read argument of equal size;
    in `rows`, the count is a read i32 argument of one dimension, the others have equal first dimensions and include
    every written argument; a `body` with `rows` writes floating-point tensors of several rows of several elements.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$registered, OptionalAttr<DictionaryAttr>:$config,
                   TypedArrayAttrBase<Plan_ArgumentAttr, "kernel arguments">:$arguments,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$in_place,
                   OptionalAttr<FlatSymbolRefAttr>:$body, OptionalAttr<StrAttr>:$symbol, OptionalAttr<I64Attr>:$extent,
                   OptionalAttr<DenseI64ArrayAttr>:$grid, OptionalAttr<DenseI64ArrayAttr>:$valid_rows,
                   OptionalAttr<TypedArrayAttrBase<DenseI64ArrayAttr, "lists of arguments">>:$dependences,
                   F64Attr:$flops, F64Attr:$bytes_moved);
  let assemblyFormat = [{
    $sym_name (`registered` $registered^ (`config` $config^)?)? (`body` $body^)? (`symbol` $symbol^)? (`extent` $extent^)? (`grid` $grid^)? $arguments
    (`in_place` $in_place^)? (`rows` $valid_rows^)? (`depends` $dependences^)? `cost` $flops `,` $bytes_moved attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ArgumentAttr getArgument(unsigned index) { return ::llvm::cast<ArgumentAttr>(getArguments()[index]); }
    unsigned getNumArguments() { return getArguments().size(); }
    /// Whether this is a registered kernel whose last argument is workspace, of type `ui8`.
    bool hasScratch();
    /// Whether this is a registered kernel with an epilogue: generated code, or the body for it.
    bool hasEpilogue() { return getRegistered() && (getBody() || getSymbol()); }
    ::llvm::LogicalResult verifyValidRows();
    ::llvm::LogicalResult verifyDependences();
  }];
}

def Plan_ImageOp : Plan_Op<"image"> {
  let summary = "Machine code of the generated kernels: an ELF shared object";
  let description = [{
    `contracts` has two 64-bit numbers for each `plan.kernel` that calls the code. `hash` is the sha256 of data and
    contracts in hexadecimal (runtime/plan/meaning/code_contract.h). Only the pass that generates code writes either: if
    another pass changes a kernel later, the image has no contract for the changed kernel.

    **Constraints:** contracts and hash come together; the hash has 64 hexadecimal digits.
  }];
  let arguments = (ins StrAttr:$format, ElementsAttr:$data, OptionalAttr<DenseI64ArrayAttr>:$contracts,
                   OptionalAttr<StrAttr>:$hash);
  let assemblyFormat = "$format $data (`contracts` $contracts^)? (`hash` $hash^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_CallOp : Plan_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A kernel launch on tensor values, before buffers exist";
  let description = [{
    Exists between kernel selection and command scheduling. The operands are the arguments that the kernel reads, the
    results are the arguments that it writes. Workspace is neither.

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
  let summary = "The commands that all ranks of one role execute for one entry";
  let description = [{
    `timeline` lists calls of segments in the order of issue, as pairs (segment index, slot). The first of the `streams`
    runs the computation.

    **Constraints:** the timeline has an even number of values and names existing segments; stream indices of commands
    are in range.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$timeline,
                   DefaultValuedAttr<StrArrayAttr, "{\"compute\"}">:$streams);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `timeline` $timeline (`streams` $streams^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name), [{
    build($_builder, $_state, name, ::llvm::ArrayRef<int64_t>(), $_builder.getStrArrayAttr({"compute"}));
  }]>];
}

def Plan_SegmentOp : Plan_Op<"segment", [HasParent<"ProgramOp">, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Commands that are issued in order";
  let description = "**Constraints:** it holds commands only: `launch`, `copy`, `collective`, `send`, `receive`, `signal`, `wait`.";
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Plan_Command : OpInterface<"Command"> {
  let cppNamespace = "::bowline::plan";
  let description = "One command of a segment: the stream that it is issued to, and the pass that made it.";
  let methods = [
    InterfaceMethod<"index into the program's streams", "int64_t", "getStreamIndex", (ins), [{
      return $_op.getStream();
    }]>,
    InterfaceMethod<"", "void", "setStreamIndex", (ins "int64_t":$stream), [{ $_op.setStream(stream); }]>,
    InterfaceMethod<"name of the pass", "::llvm::StringRef", "getPassName", (ins), [{ return $_op.getPass(); }]>];
}

// `stream` is an index into the program's streams. `pass` names the pass that created the command. The command's
// location points into the user's model.
class Plan_CommandOp<string name, dag ownArguments, list<Trait> traits = []>
    : Plan_Op<name, !listconcat([HasParent<"SegmentOp">, Plan_Command], traits)> {
  let arguments = !con(ownArguments, (ins DefaultValuedAttr<I64Attr, "0">:$stream,
                                      DefaultValuedAttr<StrAttr, "\"\"">:$pass));
}

def Plan_LaunchOp : Plan_CommandOp<"launch", (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$operands),
                                   [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel on buffers";
  let description = "**Constraints:** the kernel exists; one buffer per argument, each of the argument's size and element type.";
  let assemblyFormat = [{
    $kernel `(` $operands `)` (`on` $stream^)? (`from` $pass^)? attr-dict (`:` qualified(type($operands))^)?
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$kernel, "::mlir::ValueRange":$operands, "::llvm::StringRef":$pass), [{
    build($_builder, $_state, kernel, operands, /*stream=*/0, pass);
  }]>];
}

def Plan_CopyOp : Plan_CommandOp<"copy", (ins Plan_BufferType:$source, Plan_BufferType:$destination)> {
  let summary = "Copies a buffer";
  let description = [{
    The memory spaces of the two say which engine of the device moves the bytes.

    **Constraints:** source and destination have the same size; not both are in pinned memory of the host.
  }];
  let assemblyFormat = [{
    $source `to` $destination (`on` $stream^)? (`from` $pass^)? attr-dict `:` qualified(type($source)) `to`
    qualified(type($destination))
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$destination, "::llvm::StringRef":$pass), [{
    build($_builder, $_state, source, destination, /*stream=*/0, pass);
  }]>];
}

def Plan_CollectiveOp : Plan_CommandOp<"collective",
    (ins Plan_CollectiveKind:$kind, DefaultValuedAttr<I64Attr, "0">:$parameter,
     FlatSymbolRefAttr:$communicator, Variadic<Plan_BufferType>:$sources, Variadic<Plan_BufferType>:$destinations),
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Exchanges buffers among the ranks of a group; several pairs are one operation";
  let description = [{
    With n ranks in a group: `all_reduce` combines the sources of all ranks; `all_gather` concatenates them, so the
    destination is n times as large; `reduce_scatter` combines the sources and keeps this rank's chunk, one n-th;
    `all_to_all` concatenates, from each rank's source, the chunk for this rank; `permute` gives this rank the source of
    the rank `by` places before it on a ring of the group. Chunks are contiguous and in rank order.

    Some kinds have a parameter: `all_reduce` and `reduce_scatter` a reduction (default: `sum`), `permute` the shift
    `by`, from 1 to the group's size minus 1. `kernels/registry/collectives.h` defines the kinds.

    ```mlir
    plan.collective all_gather @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<8xf32>>)
    ```

    **Constraints:** the communicator exists; each source has one destination, of the same element type and of the size
    that the kind requires; source and destination are different buffers, except that an `all_reduce` may be in place.
  }];
  let extraClassDeclaration = [{
    const collectives::Definition &getDefinition() {
      return collectives::Of(static_cast<collectives::Kind>(getKind()));
    }
  }];
  let assemblyFormat = [{
    $kind custom<Parameter>(ref($kind), $parameter) $communicator `(` $sources `)` `to` `(` $destinations `)` (`on` $stream^)? (`from` $pass^)?
    attr-dict `:` `(` qualified(type($sources)) `)` `to` `(` qualified(type($destinations)) `)`
  }];
}

class Plan_TransferOp<string name> : Plan_CommandOp<name,
    (ins FlatSymbolRefAttr:$communicator, I64Attr:$peer, Variadic<Plan_BufferType>:$buffers),
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Plan_SendOp : Plan_TransferOp<"send"> {
  let summary = "Sends buffers to another rank of a group; completes when the peer has received them";
  let description = "**Constraints:** the communicator exists and has the peer; at least one buffer, all of one element type.";
  let assemblyFormat = [{
    $communicator `to` $peer `(` $buffers `)` (`on` $stream^)? (`from` $pass^)? attr-dict `:` qualified(type($buffers))
  }];
}

def Plan_ReceiveOp : Plan_TransferOp<"receive"> {
  let summary = "Receives buffers from another rank of a group";
  let description = "**Constraints:** the communicator exists and has the peer; at least one buffer, all of one element type.";
  let assemblyFormat = [{
    $communicator `from` $peer `(` $buffers `)` (`on` $stream^)? (`from` $pass^)? attr-dict `:` qualified(type($buffers))
  }];
}

def Plan_SignalOp : Plan_CommandOp<"signal", (ins I64Attr:$event, DefaultValuedAttr<I64Attr, "1">:$slots)> {
  let summary = "Records an event on the stream, after all commands issued to the stream before";
  let description = [{
    In a call with slot s, the event's number is `event` + (s mod `slots`): one event for each microbatch in flight.

    **Constraints:** the event is not negative; at least one slot.
  }];
  let assemblyFormat = "$event (`slots` $slots^)? (`on` $stream^)? (`from` $pass^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_WaitOp : Plan_CommandOp<"wait", (ins I64Attr:$event, DefaultValuedAttr<I64Attr, "1">:$slots)> {
  let summary = "Makes later commands of the stream wait for the most recently issued signal of an event";
  let description = [{
    `event`, `slots` and the call's slot select the event as they do for `signal`.

    **Constraints:** the event is not negative; at least one slot.
  }];
  let assemblyFormat = "$event (`slots` $slots^)? (`on` $stream^)? (`from` $pass^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_EntryOp : Plan_Op<"entry", [Symbol, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "An entry that a caller may run: a program and its named inputs and outputs";
  let description = [{
    `kind` states the entry's purpose and contract. `bucket` is the number of tokens that an entry of kind `step` or
    `embed` computes. An input with a limit other than 0 takes integers in [0, limit), or f32 in [0, limit].

    `order` is this role's part of the certificate that ranks cannot deadlock: one number for each communication with
    another role, in the order of issue with the timeline expanded. `values` holds digests that identify the results,
    two numbers each, the lower half first (`runtime/plan/meaning/plan_meaning.h`). The loader verifies both instead of
    trusting the file.

    ```mlir
    plan.entry train_step @step program @run inputs [] limits [] () outputs [] () order [0, 2, 3] values [81985529216486895, -1]
    ```

    **Constraints:** a module has one entry per kind (and bucket); a `step` or `embed` has a positive bucket that fits
    an i32, other kinds have none; the program exists; one name per buffer, one limit per input; numbers in `order` fit
    32 unsigned bits; `values` has an even count of numbers.
  }];
  let arguments = (ins DefaultValuedAttr<Program_EntryKind, "::bowline::EntryKind::Custom">:$kind,
                   SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "0">:$bucket, FlatSymbolRefAttr:$program,
                   StrArrayAttr:$input_names, DenseI64ArrayAttr:$input_limits, Variadic<Plan_BufferType>:$inputs,
                   StrArrayAttr:$output_names, Variadic<Plan_BufferType>:$outputs,
                   OptionalAttr<DenseI64ArrayAttr>:$order, OptionalAttr<DenseI64ArrayAttr>:$values);
  let assemblyFormat = [{
    (custom<EntryKind>($kind)^)? $sym_name (`bucket` $bucket^)? `program` $program
    `inputs` $input_names `limits` $input_limits `(` $inputs (`:` qualified(type($inputs))^)? `)`
    `outputs` $output_names `(` $outputs (`:` qualified(type($outputs))^)? `)` (`order` $order^)? (`values` $values^)?
    attr-dict
  }];
  let hasVerifier = 1;
  // Builds an entry without `order` and `values`.
  let builders = [OpBuilder<(ins "::bowline::EntryKind":$kind, "::llvm::StringRef":$name, "int64_t":$bucket,
                                 "::llvm::StringRef":$program,
                                 "::mlir::ArrayAttr":$inputNames, "::llvm::ArrayRef<int64_t>":$inputLimits,
                                 "::mlir::ValueRange":$inputs, "::mlir::ArrayAttr":$outputNames,
                                 "::mlir::ValueRange":$outputs), [{
    build($_builder, $_state, kind, name, bucket, program, inputNames, inputLimits, inputs, outputNames, outputs,
          /*order=*/nullptr, /*values=*/nullptr);
  }]>];
}

def Plan_AttachmentOp : Plan_Op<"attachment"> {
  let summary = "A text that travels with the plan, such as the model's config.json";
  let arguments = (ins StrAttr:$name, StrAttr:$text);
  let assemblyFormat = "$name $text attr-dict";
}

#endif // BOWLINE_DIALECTS_PLAN_PLANOPS_TD
