#ifndef BOWLINE_DIALECTS_DIST_DISTDIALECT_TD
#define BOWLINE_DIALECTS_DIST_DISTDIALECT_TD

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::bowline::dist";
  let summary = "Where the shards of a program's tensors live and how they move: meshes, shardings, collectives";
  let description = [{
    Discardable attributes on operations of other dialects:

    | attribute | on | meaning |
    |---|---|---|
    | `dist.sharding` | `graph.param`, `graph.state`, arguments of a `graph.func` | the sharding of the variable or argument |
    | `dist.global_shape` | the same, once types are local; before, on variables that are viewed otherwise | the shape of the whole tensor, that of a variable in checkpoints |
    | `dist.view` | `graph.param`, `graph.state` | the same elements in row-major order, in the dimensions that are sharded; without padding |
    | `dist.flat_shape`, `dist.flat_axes` | `graph.param`, `graph.state` | the variable is a flat shard: a local tensor of this shape, its elements in row-major order, zeros at the end, sharded over these axes, of which the first is outermost |
    | `dist.prefetch` | gathers of parameters | how many of them may be under way before their results are used |
    | `dist.repetition` | collectives | counts equal ones that are not merged: gathers of one parameter, whose first result is not kept, and chunks |
    | `dist.shardings` | any operation with tensor results | one sharding per result |

    Propagation starts from those that it finds, and leaves one on everything. `Layout.h` reads those of a variable.

    **Constraints:** one dimension in a sharding and in a view per dimension of its tensor; sizes are positive; a view
    has as many elements as the global shape.

    See `dialects/Dist/README.md` for the rationale.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    static constexpr ::llvm::StringLiteral kShardingAttr = "dist.sharding";
    static constexpr ::llvm::StringLiteral kGlobalShapeAttr = "dist.global_shape";
    static constexpr ::llvm::StringLiteral kViewAttr = "dist.view";
    static constexpr ::llvm::StringLiteral kFlatShapeAttr = "dist.flat_shape";
    static constexpr ::llvm::StringLiteral kFlatAxesAttr = "dist.flat_axes";
    static constexpr ::llvm::StringLiteral kPrefetchAttr = "dist.prefetch";
    static constexpr ::llvm::StringLiteral kRepetitionAttr = "dist.repetition";
    static constexpr ::llvm::StringLiteral kShardingsAttr = "dist.shardings";

    /// For an operation that this dialect does not have, returns a hook that refuses it and names the nearest line of a
    /// strategy.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
  }];
}

class Dist_Op<string name, list<Trait> traits = []> : Op<Dist_Dialect, name, traits>;

#endif // BOWLINE_DIALECTS_DIST_DISTDIALECT_TD
