#ifndef BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD
#define BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::bowline::plan";
  let summary = "What a rank executes: commands on arena ranges, a one-to-one image of the plan file";
  let description = [{
    A module in this dialect is a plan: buffers at arena offsets, kernels, programs of segments of commands, and the
    entries that a caller may run. `bowline-translate` turns it into a plan file and back, byte for byte. Before the
    memory phase buffers have no offset yet. See `dialects/Plan/README.md` for the rationale.

    Module attributes: `plan.target` (`#plan.target`), `plan.arena_bytes`, `plan.other_arenas` (bytes by memory space,
    `{external = 4096}`; absent where all is in space device), `plan.live_bytes` (the most bytes alive at one time, below
    which no arena goes), `plan.seed`, `plan.compiler`.

    Where ranks have several roles, such as stages of a pipeline, the module holds a module for each, in the order of the
    coordinates along the axis of the mesh that `plan.role_axis` names.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerOps();

    static constexpr ::llvm::StringLiteral kTargetAttr = "plan.target";
    static constexpr ::llvm::StringLiteral kArenaBytesAttr = "plan.arena_bytes";
    static constexpr ::llvm::StringLiteral kOtherArenasAttr = "plan.other_arenas";
    static constexpr ::llvm::StringLiteral kLiveBytesAttr = "plan.live_bytes";
    static constexpr ::llvm::StringLiteral kSeedAttr = "plan.seed";
    static constexpr ::llvm::StringLiteral kCompilerAttr = "plan.compiler";
    static constexpr ::llvm::StringLiteral kRoleAxisAttr = "plan.role_axis";
  }];
}

// Include rule: PlanAttrs.td includes this file; PlanOps.td includes PlanAttrs.td.

#endif // BOWLINE_DIALECTS_PLAN_PLANDIALECT_TD
