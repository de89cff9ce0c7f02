#ifndef BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD
#define BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::bowline::plan";
  let summary = "The commands that a rank executes on ranges of arenas: a one-to-one image of the plan file";
  let description = [{
    A module of modules in this dialect is a plan. Each inner module is a role, run by ranks: buffers at arena offsets,
    kernels, programs of segments of commands, and entries that a caller may run. `bowline-translate` turns it into a plan
    file and back, byte for byte. Before the memory phase buffers have no offset yet. See `dialects/Plan/README.md`.

    A `graph.func` or an `entry` may have `plan.sequences` (`#plan.sequences`), the promise of its callers on three
    inputs together.

    Attributes of the outer module: `plan.target` (`#plan.target`), `plan.seed`, `plan.compiler`; of a role: `plan.arena_bytes`,
    `plan.other_arenas` (bytes by memory space, `{external = 4096}`; absent where all is in space device), `plan.live_bytes`
    (the most bytes alive at one time, below which no arena goes).
    Without stages there is one role, which has no name. Several, such as the stages of a pipeline, are in the order of the
    coordinates along the axis of the mesh that the outer module's `stage.axis` names.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerOps();

    static constexpr ::llvm::StringLiteral kTargetAttr = "plan.target";
    static constexpr ::llvm::StringLiteral kArenaBytesAttr = "plan.arena_bytes";
    static constexpr ::llvm::StringLiteral kOtherArenasAttr = "plan.other_arenas";
    static constexpr ::llvm::StringLiteral kLiveBytesAttr = "plan.live_bytes";
    static constexpr ::llvm::StringLiteral kSequencesAttr = "plan.sequences";
    static constexpr ::llvm::StringLiteral kSeedAttr = "plan.seed";
    static constexpr ::llvm::StringLiteral kCompilerAttr = "plan.compiler";
  }];
}

// Include rule: PlanAttrs.td includes this file; PlanOps.td includes PlanAttrs.td.

#endif // BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD
