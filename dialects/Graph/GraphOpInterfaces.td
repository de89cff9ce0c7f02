#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD

include "mlir/IR/OpBase.td"

def Graph_Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::bowline::graph";
  let description = [{
    An operation that can build its vector-Jacobian product. Upstream `arith` and `math` operations implement it
    through external models (`registerElementwiseModels`).
  }];
  let methods = [InterfaceMethod<[{
      Given the gradients of the results (null where a result has none), appends operations that compute the gradients
      of the operands. `operandGrads` has one entry per operand: null where the operand is not differentiable or its
      gradient is identically zero. Fails only where the derivative does not exist, with a diagnostic.
    }],
    "::llvm::LogicalResult", "buildVjp",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGrads)>];
}

def Graph_Interpretable : OpInterface<"Interpretable"> {
  let cppNamespace = "::bowline::graph";
  let description = [{
    The reference semantics of an operation, in f64: the definition that every faster implementation is tested against.
  }];
  let methods = [InterfaceMethod<[{
      Computes the results from the operands' values. `results` holds one tensor of the right shape and kind per
      result. Fails with a diagnostic where the values have no defined result (an index out of range).
    }],
    "::llvm::LogicalResult", "interpret",
    (ins "::llvm::ArrayRef<::bowline::graph::HostTensor>":$operands,
         "::llvm::MutableArrayRef<::bowline::graph::HostTensor>":$results)>];
}

def Graph_CostModel : OpInterface<"CostModel"> {
  let cppNamespace = "::bowline::graph";
  let description = [{
    What an operation costs, as a function of its types only. The least traffic in bytes is the same for every
    operation, the size of its operands and results, and needs no method.
  }];
  let methods = [InterfaceMethod<
    "Floating-point operations of one execution; a multiply-add counts two, a transcendental function one.",
    "double", "flops">];
}

def Graph_Factored : OpInterface<"Factored"> {
  let cppNamespace = "::bowline::graph";
  let description = [{
    An operation on tensors that says which dimensions of its operands and results are one, and hence along which of
    them it can be computed in parts. `FactorRule.h` states what a rule promises and what the local form of each
    operation does.
  }];
  let methods = [InterfaceMethod<
    "The rule for the operation's present types and attributes.",
    "::bowline::graph::FactorRule", "factorRule">];
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
