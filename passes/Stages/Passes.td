#ifndef BOWLINE_PASSES_STAGES_PASSES_TD
#define BOWLINE_PASSES_STAGES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignStages : Pass<"assign-stages", "::mlir::ModuleOp"> {
  let summary = "Divide the layers of a model into pipeline stages";
  let description = [{
    Where the module's `dist.strategy` has an axis for stages with more than one rank, divides `@loss` into as many
    virtual stages as the ranks along it hold together, and inserts `stage.transfer` for every value that crosses, from
    neighbour to neighbour. Runs before differentiation, which then gives the transfers of gradients.

    Layers are what most parameters' names are numbered by: `layers.7.attn.wq`. An operation belongs to the latest layer
    among the parameters that it depends on; what comes before the first layer goes with the first stage, what comes
    after the last one with the last. Layers are divided as the strategy says, or such that the most expensive stage is as cheap
    as possible by the cost model.

    What depends on no parameter is there for every stage. A parameter that a second stage uses gets a mirror there
    (`stage.mirror_of`). Afterwards the module has `stage.count`, and parameters `stage.index`.

    Diagnosed: more stages than layers, ranges that do not cover all layers, parameters without numbered layers; each
    with the nearest valid choice.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

#endif // BOWLINE_PASSES_STAGES_PASSES_TD
