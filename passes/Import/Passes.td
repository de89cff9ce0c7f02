#ifndef BOWLINE_PASSES_IMPORT_PASSES_TD
#define BOWLINE_PASSES_IMPORT_PASSES_TD

include "passes/Analysis/PhasePass.td"

def InsertEntries : PhasePass<"insert-entries", "Graph"> {
  let summary = "Make the model's functions callable: eval_step and generate";
  let description = [{
    Adds an entry of kind `eval_step` that runs the function that is the `loss`, and one of kind `generate` that runs
    the one that generates, where the module has these functions and no such entry; and a mesh of one rank where it has
    none.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::dist::DistDialect"];
}

#endif // BOWLINE_PASSES_IMPORT_PASSES_TD
