#ifndef BOWLINE_PASSES_TRAINING_PASSES_TD
#define BOWLINE_PASSES_TRAINING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def LowerPrecision : PhasePass<"lower-precision", "Train"> {
  let summary = "Compute in 16 bits, keep parameters and statistics in f32";
  let description = [{
    Mixed precision (Micikevicius et al., 2018) with bf16, which needs no scaling of the loss, or for programs that train
    nothing with f16. Runs before differentiation, on every function. Contractions and attention take this narrow type
    and give it, accumulating and keeping statistics in f32 as they always do; movements of elements and elementwise
    operations follow their operands. Where one operand is narrow and another an f32 value that the program computes, both
    are f32: the residual stream, which sums over all layers, and the norms on it stay f32. The loss and everything on it stays f32. A parameter is rounded where a
    contraction reads it, so that its gradient and the
    optimizer's update are f32.

    With `keep-master=false`, for programs that train nothing, parameters themselves are stored in the narrow type.
  }];
  let options = [Option<"keepMaster", "keep-master", "bool", "true", "Store parameters in f32">,
                 Option<"to", "to", "std::string", "\"bf16\"", "Type of the computation: bf16 or f16">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def AssignStages : PhasePass<"assign-stages", "Train"> {
  let summary = "Divide the layers of a model into pipeline stages";
  let description = [{
    Where the module's `dist.strategy` has an axis for stages with more than one rank, divides the loss into as many
    virtual stages as the ranks along it hold together, and inserts `stage.transfer` for every value that crosses, from
    neighbour to neighbour. Runs before differentiation, which then gives the transfers of gradients.

    Layers are those that parameters say. An operation belongs to the latest layer
    among the parameters that it depends on; operations before the first layer go with the first stage, those
    after the last one with the last. Layers are divided as the strategy says, or such that the most expensive stage is as cheap
    as possible by the cost model.

    Each stage has the operations that depend on no parameter. A parameter that a second stage uses gets a mirror there
    (`mirror_of`). Afterwards the module has `stage.count`, and parameters `stage.index`.

    Diagnosed: more stages than layers, ranges that do not cover all layers, no parameter in a layer; each with the
    nearest valid choice.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

def Differentiate : PhasePass<"differentiate", "Train"> {
  let summary = "Build the function that runs per microbatch: forward, backward, accumulation";
  let description = [{
    Expects a function that is the `loss`, whose first result is the loss summed over the microbatch and whose second
    one counts the positions that contributed. Adds the part `microbatch` with the same arguments and no results: it
    computes the gradient of the summed loss for every parameter that is not frozen and adds it to an accumulator `of`
    this parameter; the sums of losses and positions go to `@loss_sum` and `@token_count`. With several `microbatches`
    of the strategy, the part `begin` clears the accumulators; with one they are written without being read. The loss
    stays for evaluation.

    Backward operations carry the location of the operation whose gradient they compute, named "gradient".

    Diagnosed: an operation between a parameter and the loss that is not differentiable.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def InsertOptimizer : PhasePass<"insert-optimizer", "Train"> {
  let summary = "Build the function that runs once per step: normalise, clip, update";
  let description = [{
    Adds the part `update`, which divides the accumulated gradients by the token count, clips them by their global norm
    and updates every parameter, together with the optimizer's states and the step counter; and the entry of kind
    `train_step` that runs the part `begin` if there is one, `microbatch` per microbatch of the strategy and `update`
    once. Results: loss (mean over the tokens of the step), grad_norm (before clipping) and lr.

    AdamW (Loshchilov and Hutter, 2019): with gradient g and step t from 1, `m = b1 m + (1 - b1) g`,
    `v = b2 v + (1 - b2) g^2`, `p = p - lr wd p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`; weight decay only
    for parameters of rank two or more. SGD: `p = p - lr g`.

    Learning rate: linear warmup over `warmup-steps`, then constant, or a cosine from `lr` to `min-lr` that ends at
    `decay-steps` (Loshchilov and Hutter, 2017). Clipping scales by `min(1, clip-norm / (norm + 1e-6))`.

    A parameter with `mirror_of` has no states and no update of its own: its gradient is transferred to its owner's
    stage and added there, before the norm, and the owner's new value is transferred back.
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "adamw or sgd">,
    Option<"lr", "lr", "double", "1e-3", "Learning rate after warmup">,
    Option<"beta1", "beta1", "double", "0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", "1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "Decoupled weight decay">,
    Option<"clipNorm", "clip-norm", "double", "1.0", "Largest global gradient norm; 0 for no clipping">,
    Option<"schedule", "schedule", "std::string", "\"constant\"", "constant or cosine">,
    Option<"warmupSteps", "warmup-steps", "int64_t", "0", "Steps of linear warmup">,
    Option<"decaySteps", "decay-steps", "int64_t", "0", "Step at which the cosine reaches min-lr">,
    Option<"minLr", "min-lr", "double", "0.0", "Learning rate at the end of the cosine">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::stage::StageDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def InsertInit : PhasePass<"insert-init", "Train"> {
  let summary = "Build the entry that gives every parameter and state its initial value";
  let description = [{
    Adds `@initialize` and the entry of kind `init`, unless nothing persists that it would
    give a value to. Normal values are drawn from a stream of their own per variable, named by
    its key, so that adding a parameter changes no other one; a mirror has its owner's key, and starts equal.
  }];
  let options = [Option<"seed", "seed", "int64_t", "0", "Seed of all streams">,
                 Option<"weights", "weights", "bool", "true", "Weights too; a program that only generates loads them">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def KeepAccumulators : PhasePass<"keep-accumulators", "Train"> {
  let summary = "Give sums in f32 to those who want them in f32";
  let description = [{
    A contraction accumulates in f32. Where its rounded result is only widened again, as the gradient of a parameter is,
    it gives the sum as it is: one rounding less, and no pass over memory for the cast.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def LabelStages : PhasePass<"label-stages", "Train"> {
  let summary = "Write down which stage computes which operation";
  let description = [{
    For a module with `stage.count`, global or local, at any time: `stage.index` on every variable and operation, by the
    transfers between stages, and `stage.phase` on the operations of the loss and of the `microbatch`. Earlier labels are
    replaced.

    A transfer is in its two stages; an operation is in the stage of its operands; one that depends on no stage is in
    every stage that needs it. A variable is in the stage of the value written to it, or in those that read it. An
    operation is forward if the loss or the token count depends on it, `both` if each phase may as well make its own,
    and backward else.

    In functions that run once per step or evaluation, scalars of several stages that are added become one `stage.sum`,
    after those of each stage are added; other scalars that a second stage or the caller needs get a `stage.broadcast`.

    Diagnosed: tensors of two stages that meet without a transfer, a parameter that two stages use, transfers of a
    microbatch that do not go from each stage to the next and back, a tensor as a result.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

#endif // BOWLINE_PASSES_TRAINING_PASSES_TD
