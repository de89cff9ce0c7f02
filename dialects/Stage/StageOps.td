#ifndef BOWLINE_DIALECTS_STAGE_STAGEOPS_TD
#define BOWLINE_DIALECTS_STAGE_STAGEOPS_TD

include "dialects/Graph/GraphOpInterfaces.td"
include "dialects/Stage/StageDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Stage_Scalar : Type<And<[RankedTensorOf<[F32, F64]>.predicate,
                             CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>,
                        "tensor<f32> or tensor<f64>", "::mlir::RankedTensorType">;

def Stage_CrossesStages : OpInterface<"CrossesStages"> {
  let cppNamespace = "::bowline::stage";
  let description = "An operation on values of several stages.";
  let methods = [
    InterfaceMethod<"The stage that an operand is a value of.", "int64_t", "stageOfOperand", (ins "unsigned":$operand)>,
    InterfaceMethod<"The stage that the result is a value of; none where all stages get it.",
    "::std::optional<int64_t>", "stageOfResult", (ins), "", "return ::std::nullopt;">];
}

// Passes see scalars that all stages share, and an identity: the models' defaults are right for both.
class Stage_Op<string name, list<string> ownStages = [], list<string> ownCosts = [], list<Trait> traits = []>
    : Op<Stage_Dialect, name, !listconcat([
    Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<Stage_CrossesStages, ownStages>, Interpretable<>,
    CostModel<ownCosts>, Factored, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>], traits)> {
  let hasVerifier = 1;
}

def Stage_TransferOp : Stage_Op<"transfer", ["stageOfResult"], ["repeatCost"], [Elementwise, Differentiable]> {
  let summary = "A value goes from one stage to another";
  let description = [{
    The identity: the operand is a value of stage `from`, the result the same value in stage `to`. Its gradient is the
    transfer the other way.

    ```mlir
    %y = stage.transfer %x from 0 to 1 : tensor<8x128xf32>
    ```

    **Constraints:** two different stages, below the module's `stage.count`.
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$from, I64Attr:$to);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($result)";
}

def Stage_SumOp : Stage_Op<"sum"> {
  let summary = "The sum of scalars of several stages, for all stages";
  let description = [{
    Operand i is a value of stage `from[i]`; every stage of the pipeline gets the result. Once per step, never per
    microbatch: all stages meet here.

    ```mlir
    %s = stage.sum %a, %b from [0, 1] : tensor<f32>
    ```

    **Constraints:** one stage per operand, ascending, below the module's `stage.count`.
  }];
  let arguments = (ins Variadic<Stage_Scalar>:$inputs, DenseI64ArrayAttr:$from);
  let results = (outs Stage_Scalar:$result);
  let assemblyFormat = "$inputs `from` $from attr-dict `:` type($result)";
}

def Stage_BroadcastOp : Stage_Op<"broadcast"> {
  let summary = "A scalar of one stage, for all stages";
  let description = [{
    The identity: the operand is a value of stage `from`, and every stage of the pipeline gets the result. Once per step
    or evaluation, never per microbatch of a step.

    ```mlir
    %all = stage.broadcast %loss from 3 : tensor<f32>
    ```

    **Constraints:** a stage below the module's `stage.count`.
  }];
  let arguments = (ins Stage_Scalar:$input, I64Attr:$from);
  let results = (outs Stage_Scalar:$result);
  let assemblyFormat = "$input `from` $from attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Operations in the program of one rank
//===----------------------------------------------------------------------===//

def Stage_Links : Resource<"::bowline::stage::LinksResource">;

// These operations have an effect on another rank: they may not be removed, repeated, or change places with each other.
class Stage_LinkOp<string name> : Op<Stage_Dialect, name, [
    MemoryEffects<[MemRead<Stage_Links>, MemWrite<Stage_Links>]>]> {
  let hasVerifier = 1;
}

def Stage_SendOp : Stage_LinkOp<"send"> {
  let summary = "Tensors go to another rank of the pipeline, as one message";
  let description = [{
    To the rank whose coordinate along the axis of the stages is `to`, all other coordinates being equal. Its receive
    with the same channel has the same types; the n-th message that a rank sends to another on a channel is the n-th
    that the other one receives from it.

    ```mlir
    stage.send %x, %y to 1 channel "activation.even" : tensor<8x128xf32>, tensor<8xf32>
    ```

    **Constraints:** at least one tensor; the coordinate is not negative; the channel has a name.
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs, I64Attr:$to, StrAttr:$channel);
  let assemblyFormat = "$inputs `to` $to `channel` $channel attr-dict `:` type($inputs)";
}

def Stage_ReceiveOp : Stage_LinkOp<"receive"> {
  let summary = "Tensors come from another rank of the pipeline, as one message";
  let description = [{
    The other end of a `stage.send`.

    ```mlir
    %x, %y = stage.receive from 0 channel "activation.even" : tensor<8x128xf32>, tensor<8xf32>
    ```

    **Constraints:** as `stage.send`.
  }];
  let arguments = (ins I64Attr:$from, StrAttr:$channel);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = "`from` $from `channel` $channel attr-dict `:` type($results)";
}

#endif // BOWLINE_DIALECTS_STAGE_STAGEOPS_TD
