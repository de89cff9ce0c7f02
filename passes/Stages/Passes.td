#ifndef BOWLINE_PASSES_STAGES_PASSES_TD
#define BOWLINE_PASSES_STAGES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignStages : Pass<"assign-stages", "::mlir::ModuleOp"> {
  let summary = "Divide the layers of a model into pipeline stages";
  let description = [{
    Where the module's `dist.strategy` has an axis for stages with more than one rank, divides the loss into as many
    virtual stages as the ranks along it hold together, and inserts `stage.transfer` for every value that crosses, from
    neighbour to neighbour. Runs before differentiation, which then gives the transfers of gradients.

    Layers are those that parameters say. An operation belongs to the latest layer
    among the parameters that it depends on; what comes before the first layer goes with the first stage, what comes
    after the last one with the last. Layers are divided as the strategy says, or such that the most expensive stage is as cheap
    as possible by the cost model.

    What depends on no parameter is there for every stage. A parameter that a second stage uses gets a mirror there
    (`mirror_of`). Afterwards the module has `stage.count`, and parameters `stage.index`.

    Diagnosed: more stages than layers, ranges that do not cover all layers, no parameter in a layer; each with the
    nearest valid choice.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

def LabelStages : Pass<"label-stages", "::mlir::ModuleOp"> {
  let summary = "Write down which stage computes what";
  let description = [{
    For a module with `stage.count`, global or local, at any time: `stage.index` on every variable and operation, by the
    transfers between stages, and `stage.phase` on the operations of the loss and of the `microbatch`. What was there is
    replaced.

    A transfer is in its two stages; an operation is in the stage of its operands; what depends on no stage is in every
    stage that needs it. A variable is in the stage of what is written to it, or in those that read it. An operation is
    forward if the loss or the token count depends on it, `both` if each phase may as well make its own, and backward
    else.

    In functions that run once per step or evaluation, scalars of several stages that are added become one `stage.sum`,
    after those of each stage are added; other scalars that a second stage or the caller needs get a `stage.broadcast`.

    Diagnosed: tensors of two stages that meet without a transfer, a parameter that two stages use, transfers of a
    microbatch that do not go from each stage to the next and back, a tensor as a result.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

def SplitStages : Pass<"split-stages", "::mlir::ModuleOp"> {
  let summary = "Make one program per rank of a pipeline";
  let description = [{
    Where the module's `dist.strategy` has an axis for stages with more than one rank, labels the program of one rank
    and replaces its functions, entries and variables by nested modules `@stage0`, `@stage1`, ..., one per coordinate
    along that axis. Each has a copy of mesh and strategy and the attributes of the outer module, the variables of its
    stages, and entries of the same names.

    The `microbatch` becomes functions `@forward.S`, `@backward.S` (or `@backward_input.S` and `@backward_weight.S`,
    where the schedule splits them), `@send_activation.S`, `@receive_activation.S`, `@send_gradient.S` and
    `@receive_gradient.S` for each stage S of the rank. Values go from one to another in states with the role `stash`.
    The timeline of the training step is the schedule's.

    All other functions stay, each rank having what its stages need; scalars that stages share go through all-reduces
    over the axis of the stages.

    Runs on local tensors, after ZeRO and before anything that may treat the two ends of a transfer differently.
    Diagnosed: a schedule that does not fit the numbers of ranks, microbatches and stages, or divides backward passes
    that should be computed again, and what `label-stages`
    diagnoses.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect", "::bowline::dist::DistDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif // BOWLINE_PASSES_STAGES_PASSES_TD
