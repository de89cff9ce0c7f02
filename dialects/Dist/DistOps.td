#ifndef BOWLINE_DIALECTS_DIST_DISTOPS_TD
#define BOWLINE_DIALECTS_DIST_DISTOPS_TD

include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::bowline::dist";
  let summary = "Where the pieces live: device meshes with named axes";
  let description = [{
    Today a program runs on a mesh of one rank, and a mesh is all there is. Shardings, reshards and collectives belong
    here.
  }];
}

def Dist_MeshOp : Op<Dist_Dialect, "mesh", [Symbol]> {
  let summary = "A grid of ranks with named axes";
  let description = [{
    ```mlir
    dist.mesh @mesh ["dp"] [1]
    ```

    **Constraints:** one size per axis, each positive; axis names are not empty and differ.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names, DenseI64ArrayAttr:$axis_sizes);
  let assemblyFormat = "$sym_name $axis_names $axis_sizes attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of ranks: the product of all sizes.
    int64_t getRankCount();
  }];
}

#endif // BOWLINE_DIALECTS_DIST_DISTOPS_TD
