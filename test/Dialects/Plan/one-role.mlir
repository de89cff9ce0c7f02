// One role needs no axis that would tell it apart, and no mesh.
// RUN: bowline-translate --mlir-to-plan %s -o %t.plan
// RUN: bowline-check %t.plan | FileCheck %s --check-prefix=CHECKED
// RUN: bowline-translate --plan-to-mlir %t.plan -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: bowline-translate --mlir-to-plan %t.mlir -o %t.again.plan
// RUN: cmp %t.plan %t.again.plan

// CHECKED: of role 'only'

// CHECK: module @alone attributes {
// CHECK-NOT: plan.role_axis
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
