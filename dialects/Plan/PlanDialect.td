#ifndef BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD
#define BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::bowline::plan";
  let summary = "The commands that a rank executes on ranges of arenas: a one-to-one image of the plan file";
  let description = [{
    A plan is a module of modules. Each inner module is a role, the program of some ranks. It has buffers at arena
    offsets, kernels, programs made of segments of commands, and entries that a caller may run. `bowline-translate`
    converts a plan to a file and back, byte for byte. The memory phase gives buffers their offsets.

    A `graph.func` or an `entry` may have `plan.sequences` (`#plan.sequences`), the invariants of three of its inputs
    that callers must obey. See `dialects/Plan/README.md` for the rationale.

    Attributes of the outer module: `plan.target` (`#plan.target`), `plan.seed`, `plan.compiler`. Of a role:
    `plan.arena_bytes`; `plan.other_arenas`, bytes by memory space, as in `{external = 4096}` (absent if all buffers are
    in device memory); `plan.live_bytes`, the peak of live bytes, a lower bound of the arena. Without stages there is
    one role, without a name. The roles of a pipeline are in the order of their coordinates along the mesh axis that the
    outer module's `stage.axis` names.
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
