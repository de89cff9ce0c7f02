#ifndef BOWLINE_PASSES_SHARDING_PASSES_TD
#define BOWLINE_PASSES_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def PropagateShardings : Pass<"propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "From the shardings of parameters and inputs to those of all values";
  let description = [{
    Starts from `dist.sharding` on variables and arguments and extends open dimensions along the factor rule of every
    operation, forward and backward, until nothing changes (the idea of Xu et al., GSPMD, 2021). What a person wrote
    stays; an axis goes only where it divides. Then inserts `dist.reshard` wherever an operation needs an operand, or
    gives a result, in other pieces than those of the value. Sums of parts are completed at once, but those on their way
    into an accumulator where it is read.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect"];
}

def GlobalToLocal : Pass<"global-to-local", "::mlir::ModuleOp"> {
  let summary = "The program of one rank: local tensors, collectives in the place of reshards";
  let description = [{
    Every value has a sharding; its type becomes that of the piece which a rank holds, and each `dist.reshard` the
    collectives that it takes. All ranks run the same program; random numbers are those of the whole tensor. Where an
    embedding or the classes of the loss are cut, indices and labels are seen from the part that the rank has.
  }];
  let dependentDialects = ["::bowline::dist::DistDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // BOWLINE_PASSES_SHARDING_PASSES_TD
