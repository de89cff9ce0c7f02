#ifndef BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD
#define BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD

include "mlir/IR/OpBase.td"

def Stage_Dialect : Dialect {
  let name = "stage";
  let cppNamespace = "::bowline::stage";
  let summary = "Which pipeline stage computes which operations, and which values go from one to another";
  let description = [{
    Stages are counted from 0 over the whole pipeline ("virtual stages"); which rank holds which is the schedule's
    choice. Discardable attributes on operations of other dialects:

    | attribute | on | meaning |
    |---|---|---|
    | `stage.count` | the module | how many stages there are |
    | `stage.axis` | the module around the roles | the axis of the mesh along which the pipeline's ranks lie |
    | `stage.index` | variables, operations in functions, functions of one stage | the stages that need it, ascending |
    | `stage.phase` | operations that run per microbatch | `"forward"`, `"backward"`; `"both"`: each makes its own |

    **Constraints:** at least one stage; the axis has a name; indices are ascending and below the module's count; a
    phase is one of the three.

    See `dialects/Stage/README.md` for the rationale.
  }];
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kCountAttr = "stage.count";
    /// The attribute of the module around the roles that names the axis of the mesh along which the pipeline's ranks lie.
    static constexpr ::llvm::StringLiteral kAxisAttr = "stage.axis";
    static constexpr ::llvm::StringLiteral kIndexAttr = "stage.index";
    static constexpr ::llvm::StringLiteral kPhaseAttr = "stage.phase";
    static constexpr ::llvm::StringLiteral kForward = "forward";
    static constexpr ::llvm::StringLiteral kBackward = "backward";
    static constexpr ::llvm::StringLiteral kBoth = "both";
  }];
}

#endif // BOWLINE_DIALECTS_STAGE_STAGEDIALECT_TD
