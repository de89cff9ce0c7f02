#ifndef BOWLINE_PASSES_TRAINING_PASSES_TD
#define BOWLINE_PASSES_TRAINING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def LowerPrecision : PhasePass<"lower-precision", "Train"> {
  let summary = "Compute in 16 bits, keep parameters and statistics in f32";
  let description = [{
    Mixed precision (Micikevicius et al., 2018), for every function, before differentiation. Programs that train use
    bf16, which needs no scaled loss; f16 is for programs that do not train. Contractions and attention take operands
    and produce results of this narrow type, but accumulate and keep statistics in f32. Elementwise operations, and
    operations that move elements, have the type of their operands. An elementwise operation with a narrow operand
    computes in f32 if another operand is an f32 value that the program computes. So the residual stream, which sums
    over all layers, and the norms on it stay f32; so does the loss. Parameters stay f32 too: they are rounded before a
    contraction uses them, so that their gradients and the optimizer's update are f32.

    `keep-master=false`, for programs that do not train, stores parameters that no function writes in the narrow type.
  }];
  let options = [Option<"keepMaster", "keep-master", "bool", "true", "Store parameters in f32">,
                 Option<"to", "to", "std::string", "\"bf16\"", "Type of the computation: bf16 or f16">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def AssignStages : PhasePass<"assign-stages", "Train"> {
  let summary = "Divide the layers of a model into pipeline stages";
  let description = [{
    Runs if the mesh axis for stages in the module's `dist.strategy` has more than one rank. Divides the loss function
    into virtual stages: the number of ranks along that axis times the number of stages per rank. Inserts a chain of
    `stage.transfer`, from neighbour to neighbour, for each value that crosses stages. Runs before differentiation,
    which then creates the transfers of gradients.

    A `graph.param` states its layer. An operation belongs to the latest layer among the parameters that it depends on.
    Operations before the first layer are in the first stage, operations after the last layer in the last one. The
    strategy states the layers of each stage; else the most expensive stage is made as cheap as the cost model allows.

    Every stage computes the operations that depend on no parameter. If a second stage uses a parameter, it gets a
    mirror of it (`mirror_of`). The pass sets `stage.count` on the module and `stage.index` on parameters.

    Fails if there are more stages than layers, if the ranges of layers do not cover all layers, or if a layer has no
    parameter. Each diagnostic names the nearest valid choice.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

def Differentiate : PhasePass<"differentiate", "Train"> {
  let summary = "Build the function that runs per microbatch: forward, backward, accumulation";
  let description = [{
    Expects a function of part `loss`. Its first result is the loss, summed over the microbatch; its second result is
    the number of positions that contributed. Adds a function of part `microbatch` with the same arguments and without
    results. It computes the gradient of the summed loss for every parameter that is not frozen, and adds it to an
    accumulator `of` this parameter. It adds the results of the loss to `@loss_sum` and `@token_count`. If the strategy
    has several `microbatches`, a function of part `begin` clears all accumulators before the first one; if it has one,
    `microbatch` writes the accumulators without reading them. The loss function remains, for evaluation.

    Backward operations have the location of the operation whose gradient they compute, named "gradient".

    Fails at an operation between a parameter and the loss that is not differentiable.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def InsertOptimizer : PhasePass<"insert-optimizer", "Train"> {
  let summary = "Build the function that runs once per step: normalise, clip, update";
  let description = [{
    Adds a function of part `update`. It divides the accumulated gradients by the token count, clips them by their
    global norm, and updates parameters, optimizer states and the step counter. It returns the loss (mean over the
    tokens of the step), grad_norm (before clipping) and lr. Also adds an entry of kind `train_step`, which runs the
    function of part `begin` if there is one, then `microbatch` once per microbatch of the strategy, then `update` once.

    AdamW (Loshchilov and Hutter, 2019): with gradient g and step t from 1, `m = b1 m + (1 - b1) g`,
    `v = b2 v + (1 - b2) g^2`, `p = p - lr wd p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`; weight decay only
    for parameters of rank two or more. SGD: `p = p - lr g`.

    Learning rate: linear warmup over `warmup-steps`, then constant, or a cosine from `lr` to `min-lr` that ends at
    `decay-steps` (Loshchilov and Hutter, 2017). Clipping scales by `min(1, clip-norm / (norm + 1e-6))`.

    A parameter with `mirror_of` has no optimizer states. `update` transfers its gradient to the stage of its owner,
    adds it to the owner's gradient before computing the norm, and transfers the owner's new value back.
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
    Adds `@initialize` and an entry of kind `init` that runs it, if the module has variables that persist. Each
    variable with normal values draws them from a random stream chosen by its key, so that adding a parameter does not
    change the values of others. A mirror has its owner's key, so both start with equal values.
  }];
  let options = [Option<"seed", "seed", "int64_t", "0", "Seed of all streams">,
                 Option<"weights", "weights", "bool", "true", "Weights too; a program that only generates loads them">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def KeepAccumulators : PhasePass<"keep-accumulators", "Train"> {
  let summary = "Let contractions produce f32 where their results are widened to f32";
  let description = [{
    A contraction accumulates in f32. If the only use of its rounded result is a cast to f32, as for the gradient of a
    parameter, the contraction produces f32 instead: the value is not rounded, and the cast and its memory pass vanish.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def LabelStages : PhasePass<"label-stages", "Train"> {
  let summary = "Write down which stage computes which operation";
  let description = [{
    Labels a module with `stage.count`, of global or local tensors, and replaces earlier labels. Sets `stage.index` on
    every variable and operation, and `stage.phase` on the operations of the functions `loss` and `microbatch`.

    A transfer is in both of its stages. Any other operation is in the stage of its operands. If it depends on no stage,
    it is in every stage that needs it. A variable is in the stage of the value written to it, else in those that read
    it. An operation is `forward` if the loss or the token count depends on it, `both` if both phases need it and each
    can compute it from arguments or parameters, and `backward` otherwise.

    In functions that run once per step or evaluation, a sum of scalars of several stages becomes one sum per stage and
    a `stage.sum` of these. Any other scalar that a second stage or the caller needs gets a `stage.broadcast`.

    Fails if an operation uses tensors of two stages without a transfer, if two stages use one parameter, if transfers
    of a microbatch do not go from each stage to the next and back, or if a function returns a tensor that belongs to
    one stage.
  }];
  let dependentDialects = ["::bowline::stage::StageDialect"];
}

#endif // BOWLINE_PASSES_TRAINING_PASSES_TD
