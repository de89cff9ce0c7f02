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

class Stage_Op<string name, list<Trait> traits = []> : Op<Stage_Dialect, name, !listconcat([
    Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<Graph_Interpretable>,
    DeclareOpInterfaceMethods<Graph_CostModel>, DeclareOpInterfaceMethods<Graph_Factored>], traits)> {
  let hasVerifier = 1;
}

def Stage_TransferOp : Stage_Op<"transfer", [Elementwise, DeclareOpInterfaceMethods<Graph_Differentiable>]> {
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

#endif // BOWLINE_DIALECTS_STAGE_STAGEOPS_TD
