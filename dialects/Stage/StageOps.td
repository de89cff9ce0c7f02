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
    InterfaceMethod<"The stage that computes an operand.", "int64_t", "stageOfOperand", (ins "unsigned":$operand)>,
    InterfaceMethod<"The stage that receives the result; none if all stages receive it.",
    "::std::optional<int64_t>", "stageOfResult", (ins), "", "return ::std::nullopt;">];
}

// To passes these operations are an identity or work on scalars that all stages share. The models' defaults fit both.
class Stage_Op<string name, list<string> ownStages = [], list<string> ownCosts = [], list<Trait> traits = []>
    : Op<Stage_Dialect, name, !listconcat([
    Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<Stage_CrossesStages, ownStages>, Interpretable<>,
    CostModel<ownCosts>, Factored, ShardingModel<>, PaddingModel<>, PrecisionModel<>, FusionModel<>], traits)> {
  let hasVerifier = 1;
}

def Stage_TransferOp : Stage_Op<"transfer", ["stageOfResult"], ["repeatCost"], [Elementwise, Differentiable]> {
  let summary = "Moves a value from one stage to another";
  let description = [{
    The identity: the operand is a value of stage `from`, the result is the same value in stage `to`. The gradient is a
    transfer in the opposite direction.

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
  let summary = "Sums scalars of several stages, and gives the sum to all stages";
  let description = [{
    Operand i is a value of stage `from[i]`; every stage of the pipeline gets the result. Runs once per step, never per
    microbatch, because all stages wait for each other.

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
  let summary = "Gives a scalar of one stage to all stages";
  let description = [{
    The identity: the operand is a value of stage `from`, and every stage of the pipeline gets the result. Runs once per
    step or evaluation, never per microbatch of a step.

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

// These operations affect another rank: passes must not remove, repeat or reorder them.
class Stage_LinkOp<string name> : Op<Stage_Dialect, name, [
    MemoryEffects<[MemRead<Stage_Links>, MemWrite<Stage_Links>]>]> {
  let hasVerifier = 1;
}

def Stage_SendOp : Stage_LinkOp<"send"> {
  let summary = "Sends tensors to another rank of the pipeline, as one message";
  let description = [{
    The receiver is the rank with coordinate `to` along the stages' mesh axis, and this rank's coordinates along all
    other axes. Its `stage.receive` of the same channel must have the same types. Messages of a channel between two
    ranks keep their order: the n-th send matches the n-th receive.

    ```mlir
    stage.send %x, %y to 1 channel "activation.even" : tensor<8x128xf32>, tensor<8xf32>
    ```

    **Constraints:** at least one tensor; the coordinate is not negative; the channel has a name.
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs, I64Attr:$to, StrAttr:$channel);
  let assemblyFormat = "$inputs `to` $to `channel` $channel attr-dict `:` type($inputs)";
}

def Stage_ReceiveOp : Stage_LinkOp<"receive"> {
  let summary = "Receives tensors from another rank of the pipeline, as one message";
  let description = [{
    The receiving end of a `stage.send`.

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
