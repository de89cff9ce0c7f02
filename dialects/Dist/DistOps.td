#ifndef BOWLINE_DIALECTS_DIST_DISTOPS_TD
#define BOWLINE_DIALECTS_DIST_DISTOPS_TD

include "dialects/Dist/DistStrategy.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_MeshOp : Dist_Op<"mesh", [Symbol, Dist_NoFurtherAttributes]> {
  let summary = "A grid of ranks with named axes";
  let description = [{
    Ranks are numbered in row-major order of their coordinates: the last axis varies fastest. A module has one mesh.

    ```mlir
    dist.mesh @mesh ["dp", "tp"] [2, 4]
    ```

    **Constraints:** one size per axis, each positive; axis names are not empty and differ; at most 2^20 ranks.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names, DenseI64ArrayAttr:$axis_sizes);
  let assemblyFormat = "$sym_name $axis_names $axis_sizes `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kMaxRanks = int64_t{1} << 20;
    /// The number of ranks: the product of all sizes.
    int64_t getRankCount();
    /// The product of the sizes of `axes`; an axis that the mesh does not have counts as size 1.
    int64_t getSize(::llvm::ArrayRef<::mlir::StringAttr> axes);
    /// The axes of this mesh that replace `axis` of the user's mesh, outermost first: `axis` itself, or the axes
    /// "axis/0" and "axis/1" into which `apply-strategy` split it. Empty if the mesh has neither.
    ::llvm::SmallVector<::mlir::StringAttr> getParts(::llvm::StringRef axis);
    /// The position of an axis in the list of axes; none where the mesh does not have it.
    std::optional<unsigned> getAxis(::llvm::StringRef name);
    /// The mesh of the outermost module around `op`, or `op` itself, that has one; else null.
    static MeshOp of(::mlir::Operation *op);
  }];
}

//===----------------------------------------------------------------------===//
// Operations on global tensors
//===----------------------------------------------------------------------===//

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "Changes the sharding of a global tensor, not its elements";
  let description = [{
    `why` tells a reader which pass inserted the reshard, and the reason: `PASS: REASON`. Collectives have `why` too.

    ```mlir
    %y = dist.reshard %x to #dist.sharding<[{"dp"}, {} ]> why "the operands of an addition" : tensor<8x128xf32>
    ```

    **Constraints:** the sharding has one entry per dimension of the tensor; the module's mesh has all of its axes.
  }];
  let arguments = (ins AnyRankedTensor:$input, Dist_ShardingAttr:$sharding, DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `to` $sharding (`why` $why^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operations on the local tensors of each rank
//===----------------------------------------------------------------------===//

def Dist_Collective : OpInterface<"Collective"> {
  let cppNamespace = "::bowline::dist";
  let description = [{
    A collective exchange of tensors among the ranks of a group. Passes and interpreters query this interface and the
    definition of the collective's kind (kernels/registry/collectives.h) instead of testing for single operations.
  }];
  let methods = [
    InterfaceMethod<"The ranks that differ only in these axes form a group.", "::mlir::ArrayAttr", "getGroupAxes", (ins),
                    [{ return $_op.getAxes(); }]>,
    InterfaceMethod<"The exchange of each operand: kind, parameter, dimensions.", "::bowline::dist::CollectiveForm",
                    "getForm">];
}

// The ranks that differ only in `axes` form a group, ordered by their coordinates along `axes`, the first outermost.
class Dist_CollectiveOp<string name, list<Trait> traits = []> : Dist_Op<name, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

class Dist_Exchange<string name, list<Trait> traits = []>
    : Dist_CollectiveOp<name, !listconcat([DeclareOpInterfaceMethods<Dist_Collective>], traits)>;

def Dist_AllReduceOp : Dist_Exchange<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Combines the tensors of a group; every rank gets the result";
  let description = [{
    ```mlir
    %y = dist.all_reduce sum %x over ["tp"] : tensor<8x128xf32>
    ```

    **Constraints:** at least one axis, all axes of the mesh, none twice; integer or float elements of 8 bits or more.
  }];
  let arguments = (ins Dist_ReduceKind:$kind, AnyRankedTensor:$input, StrArrayAttr:$axes,
                   DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $input `over` $axes (`why` $why^)? attr-dict `:` type($result)";
}

def Dist_AllGatherOp : Dist_Exchange<"all_gather"> {
  let summary = "Concatenates the tensors of a group along a dimension; every rank gets the result";
  let description = [{
    ```mlir
    %y = dist.all_gather %x dim 1 over ["tp"] : tensor<8x64xf32> -> tensor<8x128xf32>
    ```

    **Constraints:** as `all_reduce`; along `dim` the result is the group's size times as large as the operand; all
    other dimensions and the element type are equal.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, StrArrayAttr:$axes,
                   DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $axes (`why` $why^)? attr-dict `:` type($input) `->` type($result)";
}

def Dist_ReduceScatterOp : Dist_Exchange<"reduce_scatter"> {
  let summary = "Combines the tensors of a group; each rank gets its shard along a dimension";
  let description = [{
    ```mlir
    %y = dist.reduce_scatter sum %x dim 0 over ["dp"] : tensor<8x64xf32> -> tensor<4x64xf32>
    ```

    **Constraints:** as `all_reduce`; along `dim` the operand is the group's size times as large as the result; all
    other dimensions and the element type are equal.
  }];
  let arguments = (ins Dist_ReduceKind:$kind, AnyRankedTensor:$input, I64Attr:$dim, StrArrayAttr:$axes,
                   DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind $input `dim` $dim `over` $axes (`why` $why^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Dist_AllToAllOp : Dist_Exchange<"all_to_all"> {
  let summary = "The ranks of a group exchange chunks of one dimension, and each joins the received ones along another";
  let description = [{
    A tensor that was sharded along `concat_dim` becomes sharded along `split_dim`. If both are the same dimension, the
    shape does not change: chunk p of this rank's result is the chunk that rank p of the group sent to this rank.

    ```mlir
    %y = dist.all_to_all %x split 0 concat 1 over ["tp"] : tensor<8x64xf32> -> tensor<4x128xf32>
    %z = dist.all_to_all %x split 0 concat 0 over ["tp"] : tensor<8x64xf32> -> tensor<8x64xf32>
    ```

    **Constraints:** as `all_reduce`; the group's size divides the operand's size along `split_dim`; the result has the
    shape of that many such chunks, concatenated along `concat_dim`.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$split_dim, I64Attr:$concat_dim, StrArrayAttr:$axes,
                   DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `split` $split_dim `concat` $concat_dim `over` $axes (`why` $why^)? attr-dict `:` type($input) `->`
    type($result)
  }];
}

def Dist_PermuteOp : Dist_Exchange<"permute", [SameOperandsAndResultType]> {
  let summary = "Each rank of a group sends its tensor to the rank that is `shift` places further on a ring";
  let description = [{
    In a group of n ranks, rank p sends its tensor to rank (p + shift) mod n and receives the tensor of rank
    (p - shift) mod n. A negative shift reverses the direction.

    ```mlir
    %y = dist.permute %x by 1 over ["cp"] : tensor<8x64xf32>
    %z = dist.permute %y by -1 over ["cp"] : tensor<8x64xf32>
    ```

    **Constraints:** axes as for `all_reduce`; any element type; the shift is not a multiple of the group's size.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$shift, StrArrayAttr:$axes,
                   DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `by` $shift `over` $axes (`why` $why^)? attr-dict `:` type($result)";
}

def Dist_BucketOp : Dist_Exchange<"bucket"> {
  let summary = "Several collectives of one kind as one operation";
  let description = [{
    Each result equals the result of the collective on its operand alone. Gathers and scatters work on dimension 0. A
    communicator runs the bucket as one operation on a list of buffers, so no operand is copied into a joint buffer.

    ```mlir
    %a, %b = dist.bucket all_gather %x, %y over ["fsdp"] : (tensor<8xf32>, tensor<3xf32>) -> (tensor<16xf32>, tensor<6xf32>)
    %c, %d = dist.bucket reduce_scatter(sum) %p, %q over ["dp"] : (tensor<6xf32>, tensor<2xf32>) -> (tensor<3xf32>, tensor<1xf32>)
    ```

    **Constraints:** at least one operand; one result per operand; one element type; each pair satisfies the constraints
    of the collective; `reduction` is present exactly for the kinds that reduce.
  }];
  let arguments = (ins Dist_CollectiveKind:$kind, OptionalAttr<Dist_ReduceKind>:$reduction,
                   Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes, DefaultValuedAttr<StrAttr, "\"\"">:$why);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kind (`(` $reduction^ `)`)? $inputs `over` $axes (`why` $why^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Dist_SliceOp : Dist_CollectiveOp<"slice"> {
  let summary = "Each rank of a group keeps its shard along a dimension; nothing is sent";
  let description = [{
    ```mlir
    %y = dist.slice %x dim 1 over ["tp"] : tensor<8x128xf32> -> tensor<8x64xf32>
    ```

    **Constraints:** as `reduce_scatter`.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $axes attr-dict `:` type($input) `->` type($result)";
}

def Dist_CoordinateOp : Dist_CollectiveOp<"coordinate"> {
  let summary = "The index of this rank in its group, from 0";
  let description = [{
    ```mlir
    %i = dist.coordinate over ["tp"] : tensor<i32>
    ```

    **Constraints:** axes of the mesh, none twice.
  }];
  let arguments = (ins StrArrayAttr:$axes);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "`over` $axes attr-dict `:` type($result)";
}

#endif // BOWLINE_DIALECTS_DIST_DISTOPS_TD
