// A program that all ranks run becomes the one nested module. What is for all roles stays where it is.
// RUN: split-file %s %t
// RUN: bowline-opt %t/ranks.mlir --nest-program | FileCheck %s
// Twice is once, and what split-stages made is left alone.
// RUN: bowline-opt %t/ranks.mlir --nest-program --nest-program | FileCheck %s
// RUN: bowline-opt %t/stages.mlir --nest-program | FileCheck %s --check-prefix=STAGES
// What asks for the mesh finds it around the role; a pass runs on a role as on a module that stands alone.
// RUN: bowline-opt %t/ranks.mlir --pass-pipeline="builtin.module(nest-program,builtin.module(lower-collectives))" | FileCheck %s --check-prefix=LOWERED
// RUN: bowline-opt %t/ranks.mlir --pass-pipeline="builtin.module(nest-program,builtin.module(lower-collectives))" --verify-each=equiv | FileCheck %s --check-prefix=LOWERED
// Programs of commands are past it.
// RUN: not bowline-opt %t/commands.mlir --nest-program 2>&1 | FileCheck %s --check-prefix=COMMANDS

// CHECK: module @model attributes {plan.seed = 7 : i64} {
// CHECK-NEXT: dist.mesh @mesh ["tp"] [2]
// CHECK-NEXT: plan.attachment "config.json" "{}"
// CHECK-NEXT: module {
// CHECK-NEXT: graph.func @f(
// CHECK: graph.entry @run [@f] repeat [1]
// CHECK-NEXT: }
// CHECK-NEXT: }

// STAGES-COUNT-2: module @stage
// STAGES-NOT: module

// LOWERED: module {
// LOWERED: dist.all_gather %{{.*}} dim 0 over ["tp"]
// LOWERED: graph.transpose

// COMMANDS: is a program of commands, which 'nest-program', a pass of phase 'local', comes before

//--- ranks.mlir
module @model attributes {plan.seed = 7 : i64} {
  dist.mesh @mesh ["tp"] [2]
  graph.func @f(%x: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>, dist.global_shape = array<i64: 3, 8>}) -> tensor<3x8xf32> {
    %0 = dist.all_gather %x dim 1 over ["tp"] : tensor<3x4xf32> -> tensor<3x8xf32>
    graph.return %0 : tensor<3x8xf32>
  }
  plan.attachment "config.json" "{}"
  graph.entry @run [@f] repeat [1]
}
//--- stages.mlir
module {
  module @stage0 {
  }
  module @stage1 {
  }
}
//--- commands.mlir
plan.program @p timeline [0, 0] {
  plan.segment "s" {
  }
}
