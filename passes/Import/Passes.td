#ifndef BOWLINE_PASSES_IMPORT_PASSES_TD
#define BOWLINE_PASSES_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InsertEntries : Pass<"insert-entries", "::mlir::ModuleOp"> {
  let summary = "Make the model's functions callable: eval_step and generate";
  let description = [{
    Adds the entry `@eval_step` that runs `graph.func @loss`, and the entry `@generate` that runs `graph.func @generate`,
    renamed to `@generate_logits`, where the module has them; and a mesh of one rank where it has none.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::dist::DistDialect"];
}

#endif // BOWLINE_PASSES_IMPORT_PASSES_TD
