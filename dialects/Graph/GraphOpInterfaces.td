#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD

include "mlir/IR/OpBase.td"

// Properties of operations. Passes query these interfaces and never test an operation's name. The defaults of each
// model are correct for every operation, if not always optimal. An operation must still name each model in its traits,
// so that its author decides knowingly for the defaults.

class Graph_Interface<string name> : OpInterface<name> {
  let cppNamespace = "::bowline::graph";
}

//===----------------------------------------------------------------------===//
// Meaning
//===----------------------------------------------------------------------===//

def Graph_Differentiable : Graph_Interface<"Differentiable"> {
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

def Graph_Interpretable : Graph_Interface<"Interpretable"> {
  let description = [{
    The reference semantics of an operation, over any arithmetic: the definition that every faster implementation is
    tested against.
  }];
  let methods = [
    InterfaceMethod<[{
      Computes the results from the operands' values. `results` holds one tensor of the right shape and kind per
      result. Fails with a diagnostic where the values have no defined result (an index out of range).
    }],
    "::llvm::LogicalResult", "interpret",
    (ins "::llvm::ArrayRef<::bowline::graph::HostTensor>":$operands,
         "::llvm::MutableArrayRef<::bowline::graph::HostTensor>":$results,
         "const ::bowline::graph::Arithmetic &":$arithmetic)>,
    InterfaceMethod<"Whether a negative index in this operand is valid and means that an entry is absent.",
    "bool", "takesAbsent", (ins "unsigned":$operand), "", "return false;">];
  let extraClassDeclaration = [{
    /// Computes the results in f64.
    ::llvm::LogicalResult interpret(::llvm::ArrayRef<::bowline::graph::HostTensor> operands,
                                    ::llvm::MutableArrayRef<::bowline::graph::HostTensor> results) {
      return interpret(operands, results, ::bowline::graph::Arithmetic::reals());
    }
  }];
}

def Graph_CostModel : Graph_Interface<"CostModel"> {
  let description = "The cost of an operation, as a function of its types only.";
  let methods = [
    InterfaceMethod<
    "Floating-point operations of one execution; a multiply-add counts two, a transcendental function one.",
    "double", "flops">,
    InterfaceMethod<"Bytes that one execution must read of an operand, at least.", "double", "bytesRead",
    (ins "unsigned":$operand), "", "return ::bowline::graph::byteCount($_op->getOperand(operand).getType());">,
    InterfaceMethod<"Bytes that one execution must read and write, at least.", "double", "bytes", (ins), "",
    "return ::bowline::graph::bytesTouched($_op);">,
    InterfaceMethod<"The cost of recomputing the results, relative to keeping them in memory.",
    "::bowline::graph::RepeatCost", "repeatCost", (ins), "", "return ::bowline::graph::repeatCostByTraits($_op);">];
}

def Graph_Factored : Graph_Interface<"Factored"> {
  let description = [{
    An operation on tensors that states which dimensions of its operands and results correspond, and hence along which
    dimensions it can be sharded. `FactorRule.h` defines the contract of a rule.
  }];
  let methods = [InterfaceMethod<
    "The rule for the operation's current types and attributes.",
    "::bowline::graph::FactorRule", "factorRule">];
}

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

def Graph_ShardingModel : Graph_Interface<"ShardingModel"> {
  let description = [{
    How a rank computes its shard of the operation, as far as the factor rule does not determine it. By default the rank
    runs the same operation on local types.
  }];
  let methods = [
    InterfaceMethod<[{
      Rewrites the operation, whose types are already local, to compute this rank's shard: converts indices and
      attributes that refer to the global tensor, and inserts exchanges along factors of kind `Exchanged`.
    }],
    "void", "localize", (ins "::bowline::graph::LocalContext &":$context), "", "return;">,
    InterfaceMethod<[{
      Whether the operation distributes over a sum: applied to the ranks' summands it gives summands of the result. An
      all-reduce of the operand can then move behind the operation.
    }],
    "bool", "isAdditive", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether the given dimensions of operands and results may be split. `byRule`: the factor rule allows it, because
      each of these dimensions is a single factor that is not blocked.
    }],
    "bool", "canSplitDims",
    (ins "bool":$byRule, "::llvm::ArrayRef<::bowline::graph::DimSplits>":$operands,
         "::llvm::ArrayRef<::bowline::graph::DimSplits>":$results), "",
    "return byRule && $_op->template hasTrait<::mlir::OpTrait::Elementwise>();">,
    InterfaceMethod<[{
      Updates attributes and result types after dimensions of the operands were split. The caller may insert reshapes in
      front of the operation and behind it.
    }],
    "void", "splitDims",
    (ins "::llvm::ArrayRef<::bowline::graph::DimSplits>":$operands,
         "::llvm::ArrayRef<::bowline::graph::DimSplits>":$results), "",
    "::bowline::graph::setSplitTypes($_op, results);">];
}

def Graph_PaddingModel : Graph_Interface<"PaddingModel"> {
  let description = [{
    How an operation behaves when padding makes a dimension longer. By default it cannot combine elements along that
    dimension, and the padding of its results has no known value unless the operation is elementwise.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether some padding of the operands leaves the results unchanged even where the operation sums or normalises over
      the padded dimension, or looks up elements along it.
    }],
    "bool", "hasNeutralPadding", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether the same holds for a dimension that stays whole on each rank (FactorRule::Kind::Blocked), as long as
      requireNeutralPadding requires a value for its padding.
    }],
    "bool", "padsWholeDims", (ins), "", "return false;">,
    InterfaceMethod<"Requires values for the operands' padding that leave the results' real elements unchanged.",
    "void", "requireNeutralPadding", (ins "::bowline::graph::PaddingContext &":$context), "", "return;">,
    InterfaceMethod<"The number in every element of a result's padding; none if it is not known.",
    "::std::optional<double>", "resultPadding",
    (ins "const ::bowline::graph::PaddingContext &":$context, "unsigned":$result), "",
    "return ::bowline::graph::paddingByTraits($_op, context);">,
    InterfaceMethod<"Gives a result a larger type; the elements computed before keep their indices.",
    "void", "growResult", (ins "unsigned":$result, "::mlir::RankedTensorType":$type), "",
    "$_op->getResult(result).setType(type);">];
}

//===----------------------------------------------------------------------===//
// Precision and code
//===----------------------------------------------------------------------===//

def Graph_PrecisionModel : Graph_Interface<"PrecisionModel"> {
  let description = "The element types of an operation in a program that computes in a type narrower than f32.";
  let methods = [
    InterfaceMethod<"How its types follow the narrow type.", "::bowline::graph::Precision", "precision", (ins), "",
    "return ::bowline::graph::precisionByTraits($_op);">,
    InterfaceMethod<"Whether an operand keeps f32 even if the other operands are narrower.",
    "bool", "isWideOperand", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Whether a result keeps f32 even if the operands are narrower.",
    "bool", "isWideResult", (ins "unsigned":$result), "", "return false;">,
    InterfaceMethod<
    "Whether its only result may be f32, the unrounded accumulator, while the operands are narrower.",
    "bool", "accumulatesWide", (ins), "", "return false;">];
}

def Graph_FusionModel : Graph_Interface<"FusionModel"> {
  let description = "How the compiler generates code for an operation, alone or fused with others.";
  let methods = [
    InterfaceMethod<"The role of the operation in a group of operations that becomes one kernel.",
    "::bowline::graph::FusionRole", "fusionRole", (ins), "", "return ::bowline::graph::fusionRoleByTraits($_op);">,
    InterfaceMethod<"The shape over whose rows the operation iterates.",
    "::llvm::ArrayRef<int64_t>", "fusionDomain", (ins), "", "return ::bowline::graph::fusionDomainByTraits($_op);">,
    InterfaceMethod<[{
      Builds the operation from elementwise operations of `arith` and `math`, `reduce`, and operations that move
      elements; returns the results, or nothing if the operation is one of these. Formulas avoid needless overflow.
    }],
    "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder), "", "return {};">,
    InterfaceMethod<[{
      Builds element `index` of the only result, for an operation that `decompose` leaves as it is. Returns null after a
      diagnostic. The default handles elementwise operations of `arith` and `math` and diagnoses all others.
    }],
    "::bowline::graph::Element", "elementAt",
    (ins "::bowline::graph::ElementBuilder &":$elements, "::llvm::ArrayRef<::mlir::AffineExpr>":$index), "",
    "return elements.compute($_op, index);">];
}

def Graph_KernelModel : Graph_Interface<"KernelModel"> {
  let description = [{
    An operation that a hand-written kernel computes. The kernel's arguments are the operands, followed by the results.
  }];
  let methods = [
    StaticInterfaceMethod<"The name of the kernel.", "::llvm::StringRef", "kernelName">,
    InterfaceMethod<[{
      Whether the kernel can compute the operation in its present form. After prepareForKernel only constants may lack a
      kernel; the plan stores their values.
    }],
    "bool", "hasKernel", (ins), "", "return true;">,
    InterfaceMethod<"Changes or replaces the operation so that the kernel can compute it.",
    "void", "prepareForKernel", (ins "::mlir::OpBuilder &":$builder), "", "return;">,
    InterfaceMethod<"The attributes that specialise the kernel; an epilogue, if any, decides where results go.",
    "::mlir::DictionaryAttr", "kernelConfig", (ins "bool":$hasEpilogue)>,
    InterfaceMethod<[{
      The number of leading dimensions of the only result that form the rows of the matrix which the kernel passes to an
      epilogue, tile by tile in f32; none if the kernel takes no epilogue.
    }],
    "::std::optional<int64_t>", "epilogueRowDims", (ins), "", "return ::std::nullopt;">,
    StaticInterfaceMethod<[{
      The inverse: builds operations that compute the same as a kernel, and returns the kernel's results, or with an
      epilogue the values passed to it. Fails without a diagnostic if the configuration is invalid.
    }],
    "::llvm::LogicalResult", "buildFromKernel",
    (ins "::mlir::ImplicitLocOpBuilder &":$builder, "const ::bowline::graph::KernelUse &":$use,
         "::mlir::ValueRange":$operands, "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>];
}

def Graph_InPlaceUpdate : Graph_Interface<"InPlaceUpdate"> {
  let description = [{
    An operation whose only result is one of its operands with some elements changed. The operand is a read of a
    variable, and the result is written back to it. No operation uses the old value afterwards, so the buffer is updated
    in place without a copy (`passes/Analysis/InPlaceUpdates.h`).
  }];
  let methods = [InterfaceMethod<"The operand that is updated.", "::mlir::OpOperand &", "getUpdated">];
}

// The operation computes nothing: its result consists of the bytes of its only operand.
def Graph_View : NativeOpTrait<"View"> {
  let cppNamespace = "::bowline::graph";
}

// The operation sums products of the operands' elements. It does much arithmetic per element and has its own kernel.
def Graph_Contraction : NativeOpTrait<"Contraction"> {
  let cppNamespace = "::bowline::graph";
}

//===----------------------------------------------------------------------===//
// Traits by which an operation implements an interface. The list `own` names the methods with a default that the
// operation overrides. It must also define each method that has no default.
//===----------------------------------------------------------------------===//

class Interpretable<list<string> own = []> : DeclareOpInterfaceMethods<Graph_Interpretable, own>;
class CostModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_CostModel, own>;
class ShardingModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_ShardingModel, own>;
class PaddingModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_PaddingModel, own>;
class PrecisionModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_PrecisionModel, own>;
class FusionModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_FusionModel, own>;
class KernelModel<list<string> own = []> : DeclareOpInterfaceMethods<Graph_KernelModel, own>;
defvar Differentiable = DeclareOpInterfaceMethods<Graph_Differentiable>;
defvar Factored = DeclareOpInterfaceMethods<Graph_Factored>;

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

def Graph_Variable : OpInterface<"Variable"> {
  let cppNamespace = "::bowline::graph";
  let description = [{
    A tensor that functions read and write by name. Its flags state its purpose: whether training updates it, whether
    checkpoints contain it, whether it comes from a model's weights. Each pass tests the flag that matters to it.
  }];
  let methods = [
    InterfaceMethod<"The name under which functions read and write it.",
                    "::llvm::StringRef", "getVariableName", (ins), [{ return $_op.getSymName(); }]>,
    InterfaceMethod<"", "::mlir::RankedTensorType", "getTensorType">,
    InterfaceMethod<"Changes the type; reads and writes are left as they are.",
                    "void", "setTensorType", (ins "::mlir::RankedTensorType":$type), [{ $_op.setType(type); }]>,
    InterfaceMethod<"The initial value: `#graph.normal` or `#graph.fill`.", "::mlir::Attribute", "getInit">,
    InterfaceMethod<"The name of the tensor in files.", "::llvm::StringRef", "getFileKey">,
    InterfaceMethod<"Whether it keeps its value between runs of entries.", "bool", "isPersistent">,
    InterfaceMethod<"The flags of a persistent tensor; `none` for all others.", "::bowline::StateFlags", "getFlags">,
    InterfaceMethod<"The parameter that it mirrors, or of which it is the gradient or optimizer state; or null.",
                    "::mlir::FlatSymbolRefAttr", "getOwnerAttr">];
  let extraSharedClassDeclaration = [{
    bool has(::bowline::StateFlags flag) { return ::bowline::bitEnumContainsAny($_op.getFlags(), flag); }
  }];
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
