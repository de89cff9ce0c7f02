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
def Plan_AccessEnum : Plan_Enum<"Access", "access of a command to an operand", [
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

def Plan_CollectiveKindEnum : Plan_Enum<"CollectiveKind", "operation of a collective on the tensors of a group", [
  I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"AllToAll", 3, "all_to_all">,
  I32EnumAttrCase<"Permute", 4, "permute">]>;
def Plan_CollectiveKind : EnumAttr<Plan_Dialect, Plan_CollectiveKindEnum, "collective_kind"> {
  let assemblyFormat = "$value";
}

def Plan_ReductionEnum : Plan_Enum<"Reduction", "how the ranks' values become one", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]>;

def Plan_LayoutAttr : Plan_Attr<"Layout", "layout"> {
  let summary = "The shard of a global tensor that the buffer of a rank holds";
  let description = [{
    The local tensor results from the global one in steps. The elements of `global_shape`, in row-major order, are
    reshaped to `view` (empty: no change). Each dimension is padded with zeros at its end to a multiple of the number of
    ranks along its axes in `dim_shardings`, and divided among these ranks, the first axis outermost (empty: whole).
    With `flat_axes` that shard is flattened to one dimension, which is padded and divided once more.

    `#plan.layout<global_shape = [5, 64], view = [], dim_shardings = [["tp"], []], flat_axes = []>`

    **Constraints:** `dim_shardings` has one entry per dimension of the view, or is empty.
  }];
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$global_shape, "::mlir::DenseI64ArrayAttr":$view,
                    "::mlir::ArrayAttr":$dim_shardings, "::mlir::ArrayAttr":$flat_axes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_SequencesAttr : Plan_Attr<"Sequences", "sequences"> {
  let summary = "The invariants of the three inputs of a serving step that describe sequences and their cache blocks";
  let description = [{
    Names three inputs of i32: `rows` [R + 1], `lengths` [R] and `blocks` [R, M]. The step computes at most `tokens`
    rows, and its caches have `block_count` blocks for `block_tokens` tokens each. `runtime/plan/sequences.h` states the
    invariants: rows ascend from 0, the listed blocks hold the length, and a block that the step writes is listed once.
    Sessions check them, the checker's proofs rely on them, and verification draws inputs that obey them.

    `#plan.sequences<rows = "rows", lengths = "lengths", blocks = "blocks", tokens = 8, block_tokens = 16, block_count = 65>`

    **Constraints:** `tokens` and `block_tokens` are at least 1, `block_count` at least 2: block 0 holds nothing.
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
  let summary = "One argument of a kernel: access mode, element type, shape and alignment";
  let description = [{
    `#plan.arg<read, tensor<8x128xf32>>`, `#plan.arg<write, tensor<8x128xf32>, align 64>`

    The argument's address is a multiple of `align` bytes. The default, 0, stands for the size of an element.

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
