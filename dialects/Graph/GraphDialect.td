#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_TD

include "mlir/IR/OpBase.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::bowline::graph";
  let summary = "The computation: operations on global tensors, without devices";
  let description = [{
    Represents a model and its training step on global tensors. Elementwise arithmetic uses upstream `arith` and `math`
    on tensors; this dialect adds the operations that those two lack. Parameters and persistent state are symbols that
    functions read and write. All shapes are static. See `dialects/Graph/README.md` for the rationale.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerOps();
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

// Include rule: GraphAttrs.td includes this file; GraphOpBase.td includes that and GraphOpInterfaces.td; operations
// include GraphOpBase.td, and GraphOps.td includes them all.

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_TD
