#ifndef BOWLINE_PASSES_IMPORT_PASSES_TD
#define BOWLINE_PASSES_IMPORT_PASSES_TD

include "passes/Analysis/PhasePass.td"

def InsertEntries : PhasePass<"insert-entries", "Graph"> {
  let summary = "Make the model's functions callable: add entries eval_step, generate and step";
  let description = [{
    Adds an entry of kind `eval_step` that runs the function of part `loss`, one of kind `generate` for part `generate`,
    and one of kind `step` for each function of part `step`, if the module has such a function and no entry of the kind.
    Adds a mesh of one rank if the module has no mesh. Fails at a step function without `plan.sequences`.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::dist::DistDialect"];
}

#endif // BOWLINE_PASSES_IMPORT_PASSES_TD
