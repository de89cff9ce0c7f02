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
    | `dist.global_shape` | the same, after `global-to-local`; before it, only variables with a `dist.view` | the shape of the whole tensor; for a variable, its shape in checkpoints |
    | `dist.view` | `graph.param`, `graph.state` | the shape, without padding, to which the elements are reshaped in row-major order; the sharding applies to its dimensions |
    | `dist.flat_shape`, `dist.flat_axes` | `graph.param`, `graph.state` | the variable is a flat shard: a local tensor of this shape, its elements in row-major order, zeros at the end, sharded over these axes, of which the first is outermost |
    | `dist.prefetch` | gathers of parameters | how many gathers may be in flight ahead of the first use of their results |
    | `dist.repetition` | collectives | a number that keeps CSE from merging equal collectives: repeated gathers of one parameter, chunks of one collective |
    | `dist.shardings` | any operation with tensor results | one sharding per result |

    Propagation starts from the shardings present and gives every value one. `Layout.h` reads a variable's attributes.

    **Constraints:** a sharding and a view have one entry per dimension of the tensor; sizes are positive; a view has as
    many elements as the global shape.

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

    /// Returns, for the name of an operation that this dialect does not define, a parse hook that reports an error and
    /// names the operation of this dialect with the most similar name, or lists the lines of a strategy.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
  }];
}

class Dist_Op<string name, list<Trait> traits = []> : Op<Dist_Dialect, name, traits>;

#endif // BOWLINE_DIALECTS_DIST_DISTDIALECT_TD
