#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD

include "mlir/IR/OpBase.td"

// Properties of operations. Passes ask these interfaces and never an operation's name. The defaults of each model are
// right for every operation, if not the best answer; an operation names each model in its traits, so that nobody takes
// its defaults without knowing.

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
    InterfaceMethod<"Whether an index below zero in this operand has a meaning: there is nothing.",
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
    InterfaceMethod<"Least bytes that one execution reads of an operand.", "double", "bytesRead",
    (ins "unsigned":$operand), "", "return ::bowline::graph::byteCount($_op->getOperand(operand).getType());">,
    InterfaceMethod<"Least traffic of one execution in bytes.", "double", "bytes", (ins), "",
    "return ::bowline::graph::bytesTouched($_op);">,
    InterfaceMethod<"The cost of computing the results a second time, beside that of keeping them.",
    "::bowline::graph::RepeatCost", "repeatCost", (ins), "", "return ::bowline::graph::repeatCostByTraits($_op);">];
}

def Graph_Factored : Graph_Interface<"Factored"> {
  let description = [{
    An operation on tensors that says which dimensions of its operands and results are one, and hence along which of
    them it can be sharded. `FactorRule.h` states the promises of a rule.
  }];
  let methods = [InterfaceMethod<
    "The rule for the operation's present types and attributes.",
    "::bowline::graph::FactorRule", "factorRule">];
}

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

def Graph_ShardingModel : Graph_Interface<"ShardingModel"> {
  let description = [{
    The computation of a rank for its shard, where the factor rule does not say it all. By default the rank computes
    the same operation on local types.
  }];
  let methods = [
    InterfaceMethod<[{
      Makes the operation, whose types are those of one rank already, compute that rank's shard: indices and attributes
      that mean the whole tensor are changed, and ranks exchange values along the rule's exchanged factors.
    }],
    "void", "localize", (ins "::bowline::graph::LocalContext &":$context), "", "return;">,
    InterfaceMethod<[{
      Whether the operation on summands gives summands of the result, so that the sum may as well be completed behind
      the operation.
    }],
    "bool", "isAdditive", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether dimensions of operands and results may be split. `byRule` says that the factor rule has nothing against
      it: each of them is one factor that is not blocked.
    }],
    "bool", "canSplitDims",
    (ins "bool":$byRule, "::llvm::ArrayRef<::bowline::graph::DimSplits>":$operands,
         "::llvm::ArrayRef<::bowline::graph::DimSplits>":$results), "",
    "return byRule && $_op->template hasTrait<::mlir::OpTrait::Elementwise>();">,
    InterfaceMethod<[{
      Changes attributes and result types after dimensions of the operands were split; in front of the operation and
      behind it there may be reshapes then.
    }],
    "void", "splitDims",
    (ins "::llvm::ArrayRef<::bowline::graph::DimSplits>":$operands,
         "::llvm::ArrayRef<::bowline::graph::DimSplits>":$results), "",
    "::bowline::graph::setSplitTypes($_op, results);">];
}

def Graph_PaddingModel : Graph_Interface<"PaddingModel"> {
  let description = [{
    The effect of an operation on dimensions that padding has made longer. By default it cannot combine elements along
    them, and nothing is known about the padding of its results unless it is elementwise.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether the operation, where it sums or normalises over a dimension, or looks up elements along it, can be given
      padding that changes nothing.
    }],
    "bool", "hasNeutralPadding", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether that holds, too, of dimensions that stay whole on each rank (FactorRule::Kind::Blocked), as far as
      requireNeutralPadding requires a number of their padding.
    }],
    "bool", "padsWholeDims", (ins), "", "return false;">,
    InterfaceMethod<"Requires padding of the operands that leaves the results outside of padding as they are.",
    "void", "requireNeutralPadding", (ins "::bowline::graph::PaddingContext &":$context), "", "return;">,
    InterfaceMethod<"The one number that the padding of a result holds; none where it may be any.",
    "::std::optional<double>", "resultPadding",
    (ins "const ::bowline::graph::PaddingContext &":$context, "unsigned":$result), "",
    "return ::bowline::graph::paddingByTraits($_op, context);">,
    InterfaceMethod<"Gives a result a larger type: the elements of before stay where they are.",
    "void", "growResult", (ins "unsigned":$result, "::mlir::RankedTensorType":$type), "",
    "$_op->getResult(result).setType(type);">];
}

//===----------------------------------------------------------------------===//
// Precision and code
//===----------------------------------------------------------------------===//

def Graph_PrecisionModel : Graph_Interface<"PrecisionModel"> {
  let description = "The form of an operation in a program that computes in a narrower type than f32.";
  let methods = [
    InterfaceMethod<"The types that it computes in.", "::bowline::graph::Precision", "precision", (ins), "",
    "return ::bowline::graph::precisionByTraits($_op);">,
    InterfaceMethod<"Whether an operand has f32 whatever the others have.",
    "bool", "isWideOperand", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Whether a result has f32 whatever the operands have.",
    "bool", "isWideResult", (ins "unsigned":$result), "", "return false;">,
    InterfaceMethod<
    "Whether its only result may be f32 where the operands are narrower: the result before it is rounded.",
    "bool", "accumulatesWide", (ins), "", "return false;">];
}

def Graph_FusionModel : Graph_Interface<"FusionModel"> {
  let description = "How an operation becomes generated code, together with others.";
  let methods = [
    InterfaceMethod<"The part that it takes in groups of operations that become one kernel.",
    "::bowline::graph::FusionRole", "fusionRole", (ins), "", "return ::bowline::graph::fusionRoleByTraits($_op);">,
    InterfaceMethod<"The shape whose rows it works on.",
    "::llvm::ArrayRef<int64_t>", "fusionDomain", (ins), "", "return ::bowline::graph::fusionDomainByTraits($_op);">,
    InterfaceMethod<[{
      Computes the same by elementwise operations of `arith` and `math`, `reduce`, and operations that move elements;
      nothing where the operation is one of these. The formulas do not overflow where their result does not.
    }],
    "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder), "", "return {};">,
    InterfaceMethod<[{
      For an operation that is not decomposed further: the element `index` of the only result. Null after a
      diagnostic, which the default gives for all but elementwise operations of `arith` and `math`.
    }],
    "::bowline::graph::Element", "elementAt",
    (ins "::bowline::graph::ElementBuilder &":$elements, "::llvm::ArrayRef<::mlir::AffineExpr>":$index), "",
    "return elements.compute($_op, index);">];
}

def Graph_KernelModel : Graph_Interface<"KernelModel"> {
  let description = [{
    An operation that a hand-written kernel computes. The kernel's arguments are the operands, then the results.
  }];
  let methods = [
    StaticInterfaceMethod<"The name of the kernel.", "::llvm::StringRef", "kernelName">,
    InterfaceMethod<[{
      Whether the kernel can compute it as it is. An operation that still has no kernel after prepareForKernel stays: it
      is a constant that the plan stores.
    }],
    "bool", "hasKernel", (ins), "", "return true;">,
    InterfaceMethod<"Changes the operation, or puts another in its place, so that the kernel can compute it.",
    "void", "prepareForKernel", (ins "::mlir::OpBuilder &":$builder), "", "return;">,
    InterfaceMethod<"The attributes that specialise the kernel; with an epilogue, the epilogue decides where results go.",
    "::mlir::DictionaryAttr", "kernelConfig", (ins "bool":$hasEpilogue)>,
    InterfaceMethod<[{
      How many of the first dimensions of the only result are rows of the matrix that the kernel hands to an epilogue,
      tile by tile in f32; none where it takes no epilogue.
    }],
    "::std::optional<int64_t>", "epilogueRowDims", (ins), "", "return ::std::nullopt;">,
    StaticInterfaceMethod<[{
      The way back: builds operations that compute the same as the kernel, and gives the results, or the values that an
      epilogue gets. Fails without a diagnostic where the configuration has no meaning.
    }],
    "::llvm::LogicalResult", "buildFromKernel",
    (ins "::mlir::ImplicitLocOpBuilder &":$builder, "const ::bowline::graph::KernelUse &":$use,
         "::mlir::ValueRange":$operands, "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>];
}

def Graph_InPlaceUpdate : Graph_Interface<"InPlaceUpdate"> {
  let description = [{
    An operation whose only result is one of its operands, changed in a part. The operand is the value of a variable, to
    which the result is written; nobody needs the old value afterwards, so that nothing is copied
    (`passes/Analysis/InPlaceUpdates.h`).
  }];
  let methods = [InterfaceMethod<"The operand that is changed.", "::mlir::OpOperand &", "getUpdated">];
}

// The result has the bytes of the only operand: nothing is computed.
def Graph_View : NativeOpTrait<"View"> {
  let cppNamespace = "::bowline::graph";
}

// Sums products of the operands' elements: many operations for each element, in a kernel of its own.
def Graph_Contraction : NativeOpTrait<"Contraction"> {
  let cppNamespace = "::bowline::graph";
}

//===----------------------------------------------------------------------===//
// Traits by which an operation implements an interface. They name the methods that the operation defines itself; for
// the others it has the defaults. It always defines methods without a default.
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
    A tensor that functions read and write by its name. Its flags state its purpose: whether it is trained, whether
    a checkpoint has it, whether it comes from a model's weights. Passes ask for the flag that matters to them.
  }];
  let methods = [
    InterfaceMethod<"The name under which functions read and write it.",
                    "::llvm::StringRef", "getVariableName", (ins), [{ return $_op.getSymName(); }]>,
    InterfaceMethod<"", "::mlir::RankedTensorType", "getTensorType">,
    InterfaceMethod<"Changes the type; reads and writes are left as they are.",
                    "void", "setTensorType", (ins "::mlir::RankedTensorType":$type), [{ $_op.setType(type); }]>,
    InterfaceMethod<"The initial value: `#graph.normal` or `#graph.fill`.", "::mlir::Attribute", "getInit">,
    InterfaceMethod<"The name of the tensor in files.", "::llvm::StringRef", "getFileKey">,
    InterfaceMethod<"Whether it keeps its value when an entry has run.", "bool", "isPersistent">,
    InterfaceMethod<"The purposes of a persistent tensor; none for all others.", "::bowline::StateFlags", "getFlags">,
    InterfaceMethod<"The parameter that it mirrors, or whose gradient or optimizer state it is; null: none.",
                    "::mlir::FlatSymbolRefAttr", "getOwnerAttr">];
  let extraSharedClassDeclaration = [{
    bool has(::bowline::StateFlags flag) { return ::bowline::bitEnumContainsAny($_op.getFlags(), flag); }
  }];
}

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_TD
