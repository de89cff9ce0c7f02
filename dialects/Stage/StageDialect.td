#ifndef BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD
#define BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD

include "mlir/IR/OpBase.td"

def Stage_Dialect : Dialect {
  let name = "stage";
  let cppNamespace = "::bowline::stage";
  let summary = "The pipeline stage of each operation, and the values that pass between stages";
  let description = [{
    Stages are virtual: they are numbered from 0 over the whole pipeline, and the schedule decides which rank runs which
    stages. Discardable attributes on operations of other dialects:

    | attribute | on | meaning |
    |---|---|---|
    | `stage.count` | the module | the number of stages |
    | `stage.axis` | the module around the roles | the mesh axis along which the pipeline's ranks lie |
    | `stage.index` | variables, operations in functions, functions of one stage | the stages that need it, ascending |
    | `stage.phase` | operations that run per microbatch | `"forward"`, `"backward"`, or `"both"`: each pass repeats it |

    **Constraints:** at least one stage; the axis has a name; indices are ascending and below the module's count; a
    phase is one of the three.

    See `dialects/Stage/README.md` for the rationale.
  }];
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kCountAttr = "stage.count";
    /// The attribute, on the module around the roles, that names the mesh axis along which the pipeline's ranks lie.
    static constexpr ::llvm::StringLiteral kAxisAttr = "stage.axis";
    static constexpr ::llvm::StringLiteral kIndexAttr = "stage.index";
    static constexpr ::llvm::StringLiteral kPhaseAttr = "stage.phase";
    static constexpr ::llvm::StringLiteral kForward = "forward";
    static constexpr ::llvm::StringLiteral kBackward = "backward";
    static constexpr ::llvm::StringLiteral kBoth = "both";
  }];
}

#endif // BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD
