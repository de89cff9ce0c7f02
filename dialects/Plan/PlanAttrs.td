#ifndef BOWLINE_DIALECTS_PLAN_PLANATTRS_TD
#define BOWLINE_DIALECTS_PLAN_PLANATTRS_TD

include "dialects/Plan/PlanDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Plan_Attr<string name, string mnemonicName> : AttrDef<Plan_Dialect, name> {
  let mnemonic = mnemonicName;
}

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::bowline::plan";
  let genSpecializedAttr = 0;
}

// Values are those of runtime/plan/plan.fbs.
def Plan_AccessEnum : Plan_Enum<"Access", "what a command does with an operand", [
  I32EnumAttrCase<"Read", 1, "read">, I32EnumAttrCase<"Write", 2, "write">,
  I32EnumAttrCase<"ReadWrite", 3, "read_write">]>;

def Plan_BufferKindEnum : Plan_Enum<"BufferKind", "how long a buffer lives and who writes it", [
  I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"State", 1, "state">,
  I32EnumAttrCase<"Input", 2, "input">, I32EnumAttrCase<"Output", 3, "output">,
  I32EnumAttrCase<"Constant", 4, "constant">, I32EnumAttrCase<"Temporary", 5, "temporary">,
  I32EnumAttrCase<"Scratch", 6, "scratch">]>;
def Plan_BufferKind : EnumAttr<Plan_Dialect, Plan_BufferKindEnum, "buffer_kind"> {
  let assemblyFormat = "$value";
}

def Plan_MemorySpaceEnum : Plan_Enum<"MemorySpace", "where the bytes of a buffer are", [
  I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"PinnedHost", 1, "pinned_host">,
  I32EnumAttrCase<"External", 2, "external">]>;
def Plan_MemorySpace : EnumAttr<Plan_Dialect, Plan_MemorySpaceEnum, "memory_space"> {
  let assemblyFormat = "$value";
}

def Plan_CollectiveKindEnum : Plan_Enum<"CollectiveKind", "what a collective does with the tensors of a group", [
  I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"AllToAll", 3, "all_to_all">,
  I32EnumAttrCase<"Permute", 4, "permute">]>;
def Plan_CollectiveKind : EnumAttr<Plan_Dialect, Plan_CollectiveKindEnum, "collective_kind"> {
  let assemblyFormat = "$value";
}

def Plan_ReductionEnum : Plan_Enum<"Reduction", "how the ranks' values become one", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]>;

def Plan_LayoutAttr : Plan_Attr<"Layout", "layout"> {
  let summary = "Which shard of a global tensor the buffer of a rank holds";
  let description = [{
    From the global tensor to the local one: the elements of `global_shape`, row-major, are seen as `view` (empty: the
    same shape); each dimension is padded at its end with zeros to a multiple of the ranks along its axes in
    `dim_shardings` and divided among them, the first axis outermost (an empty list: whole). With `flat_axes` that shard
    is seen as one dimension, padded and sharded once more.

    `#plan.layout<global_shape = [5, 64], view = [], dim_shardings = [["tp"], []], flat_axes = []>`

    **Constraints:** as many shardings as dimensions of the view, or none.
  }];
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$global_shape, "::mlir::DenseI64ArrayAttr":$view,
                    "::mlir::ArrayAttr":$dim_shardings, "::mlir::ArrayAttr":$flat_axes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_SequencesAttr : Plan_Attr<"Sequences", "sequences"> {
  let summary = "The promise of callers about inputs that say where sequences and their blocks are";
  let description = [{
    Names of three inputs, which have elements of i32: `rows` [R + 1], `lengths` [R] and `blocks` [R, M], of a step of at
    most `tokens` rows over caches of `block_count` blocks for `block_tokens` tokens each. The promise is in
    `runtime/plan/sequences.h`: rows ascend from 0, lengths fit into the blocks that are listed, and a block that is
    written is in no other place. Sessions check it, proofs rely on it, and verification draws inputs that keep it.

    `#plan.sequences<rows = "rows", lengths = "lengths", blocks = "blocks", tokens = 8, block_tokens = 16, block_count = 65>`

    **Constraints:** at least one token of a step and of a block, and two blocks, of which the first one holds nothing.
  }];
  let parameters = (ins StringRefParameter<>:$rows, StringRefParameter<>:$lengths, StringRefParameter<>:$blocks,
                    "int64_t":$tokens, "int64_t":$block_tokens, "int64_t":$block_count);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_TargetAttr : Plan_Attr<"Target", "target"> {
  let summary = "The machine that a plan is compiled for";
  let description = [{
    `#plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v4", threads = 2>`

    **Constraints:** threads is positive.
  }];
  let parameters = (ins StringRefParameter<>:$device, StringRefParameter<>:$arch, StringRefParameter<>:$cpu,
                    "uint32_t":$threads);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_ArgumentAttr : Plan_Attr<"Argument", "arg"> {
  let summary = "One argument of a kernel: how it is accessed, its element type, shape and alignment";
  let description = [{
    `#plan.arg<read, tensor<8x128xf32>>`, `#plan.arg<write, tensor<8x128xf32>, align 64>`

    Its address is a multiple of `align` bytes: 0, which need not be said, stands for the size of an element.

    **Constraints:** the type is a ranked tensor of static shape with integer or floating-point elements; the alignment
    is 0 or a power of two up to 4096.
  }];
  let parameters = (ins EnumParameter<Plan_AccessEnum>:$access, "::mlir::TypeAttr":$typeAttr,
                    DefaultValuedParameter<"int64_t", "0">:$alignment);
  let builders = [AttrBuilder<(ins "Access":$access, "::mlir::Type":$type, CArg<"int64_t", "0">:$alignment), [{
    return $_get($_ctxt, access, ::mlir::TypeAttr::get(type), alignment);
  }]>];
  let assemblyFormat = "`<` $access `,` $typeAttr (`,` `align` $alignment^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getType() const;
  }];
}

#endif // BOWLINE_DIALECTS_PLAN_PLANATTRS_TD
