#ifndef BOWLINE_DIALECTS_DIST_DISTATTRS_TD
#define BOWLINE_DIALECTS_DIST_DISTATTRS_TD

include "dialects/Dist/DistDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Dist_Attr<string name, string mnemonicName> : AttrDef<Dist_Dialect, name> {
  let mnemonic = mnemonicName;
}

def Dist_DimAttr : Dist_Attr<"Dim", "dim"> {
  let summary = "The mesh axes over which one dimension of a tensor is sharded, the outermost axis first";
  let description = [{
    `{"tp"}` is closed: sharding propagation does not change it. `{"dp", ?}` is open: propagation may append axes to the
    list. Let n be the product of the sizes of the axes. A dimension of d elements is cut into shards of ceil(d / n)
    elements; if n does not divide d, the last shards are shorter, and `pad-for-divisibility` pads the dimension.

    **Constraints:** the list names no axis twice.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, "bool":$open);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "The shard of a tensor that each rank holds";
  let description = [{
    `dims` has one entry per dimension. The value is a pending sum over the axes in `unreduced`: each rank along them
    holds one summand, of full shape. Ranks that differ only along the mesh's other axes hold equal copies.

    ```mlir
    #dist.sharding<[{"dp"}, {}, {"tp", ?} ], unreduced = {"tp"}>
    ```

    **Constraints:** the attribute names each axis at most once, in one dimension or in `unreduced`.
  }];
  let parameters = (ins ArrayRefParameter<"DimAttr">:$dims, ArrayRefParameter<"::mlir::StringAttr">:$unreduced);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<::llvm::SmallVector<::mlir::StringAttr>>":$axes), [{
    ::llvm::SmallVector<DimAttr> dims;
    for (const auto &dim : axes)
      dims.push_back(DimAttr::get($_ctxt, dim, false));
    return $_get($_ctxt, dims, ::llvm::ArrayRef<::mlir::StringAttr>{});
  }]>];
  let extraClassDeclaration = [{
    /// The sharding of a tensor of `rank` dimensions that every rank holds whole.
    static ShardingAttr replicated(::mlir::MLIRContext *context, int64_t rank);
    int64_t getRank() const { return static_cast<int64_t>(getDims().size()); }
    bool isReplicated() const;
    ::llvm::ArrayRef<::mlir::StringAttr> getAxes(int64_t dim) const { return getDims()[dim].getAxes(); }
    /// The same sharding with no open dimension.
    ShardingAttr closed() const;
    ShardingAttr withUnreduced(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
  }];
}

def Dist_ReduceKindEnum : I32EnumAttr<"ReduceKind", "how a collective combines values", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::bowline::dist";
  let genSpecializedAttr = 0;
}
def Dist_ReduceKind : EnumAttr<Dist_Dialect, Dist_ReduceKindEnum, "reduce_kind"> {
  let assemblyFormat = "$value";
}

def Dist_CollectiveKindEnum : I32EnumAttr<"CollectiveKind", "operation of a group of ranks on their tensors", [
  I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">]> {
  let cppNamespace = "::bowline::dist";
  let genSpecializedAttr = 0;
}
def Dist_CollectiveKind : EnumAttr<Dist_Dialect, Dist_CollectiveKindEnum, "collective_kind"> {
  let assemblyFormat = "$value";
}

#endif // BOWLINE_DIALECTS_DIST_DISTATTRS_TD
