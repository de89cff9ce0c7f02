// One role needs no axis that would tell it apart, and no mesh.
// RUN: bowline-translate --mlir-to-plan %s -o %t.plan
// RUN: bowline-check %t.plan | FileCheck %s --check-prefix=CHECKED
// RUN: bowline-translate --plan-to-mlir %t.plan -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: bowline-translate --mlir-to-plan %t.mlir -o %t.again.plan
// RUN: cmp %t.plan %t.again.plan

// Without a name it is the only one, and the plan has no table of roles.
// RUN: sed 's/module @only/module/' %s > %t.unnamed.mlir
// RUN: bowline-translate --mlir-to-plan %t.unnamed.mlir -o %t.unnamed.plan
// RUN: bowline-check %t.unnamed.plan | FileCheck %s --check-prefix=UNNAMED
// RUN: bowline-translate --plan-to-mlir %t.unnamed.plan -o %t.again.mlir
// RUN: FileCheck %s --check-prefix=AGAIN < %t.again.mlir
// RUN: bowline-translate --mlir-to-plan %t.again.mlir -o %t.unnamed.again.plan
// RUN: cmp %t.unnamed.plan %t.unnamed.again.plan

// A program without a module of its own, and a module without a program, are refused with what to do.
// RUN: sed '/^  module/d; /^  }/d' %s > %t.flat.mlir
// RUN: not bowline-translate --mlir-to-plan %t.flat.mlir -o %t.flat.plan 2>&1 | FileCheck %s --check-prefix=FLAT
// RUN: sed '/^  module/,/^  }/d' %s > %t.none.mlir
// RUN: not bowline-translate --mlir-to-plan %t.none.mlir -o %t.none.plan 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/^  module.*/  module {/' %s > %t.bytes.mlir
// RUN: not bowline-translate --mlir-to-plan %t.bytes.mlir -o %t.bytes.plan 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not ls %t.flat.plan

// CHECKED: of role 'only'

// UNNAMED-NOT: of role
// UNNAMED: sound
// AGAIN: module @alone attributes {
// AGAIN: {{^}}  module attributes {plan.arena_bytes = 16 : i64}
// FLAT: 'plan.buffer' op is in no role: after phase 'local' each role's program is in a nested module, also where there is only one; write 'module { ... }' around it, with its plan.arena_bytes where it has that, and leave dist.mesh, dist.strategy and plan.attachment outside
// NONE: the module has no role: after phase 'local' each role's program is in a nested module
// BYTES: the module of the role has no 'plan.arena_bytes'; run pack-arena first

// CHECK: module @alone attributes {
// CHECK-NOT: stage.axis
// CHECK: module @only attributes {plan.arena_bytes = 16 : i64}
module @alone attributes {
  plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>,
  plan.seed = 7 : i64, plan.compiler = "hand"
} {
  module @only attributes {plan.arena_bytes = 16 : i64} {
    %w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>> at 0
    plan.state %w key "w" trained|saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  }
}
