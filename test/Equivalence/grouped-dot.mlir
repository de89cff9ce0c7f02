// Rows in groups are trained, and keep what they compute in every step of the compiler: on one rank, and where rows,
// groups, of which two ranks do not have equally many, or columns are divided.
// RUN: split-file %s %t
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --verify-each=equiv -o %t.one.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.one.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-translate --plan-to-mlir %t.one.plan -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=LEAVES --input-file %t.one.mlir
// RUN: bowline-translate --mlir-to-plan %t.one.mlir -o %t.again.plan
// RUN: cmp %t.one.plan %t.again.plan
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --dtype bf16 --verify-each=equiv -o %t.bf16.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.bf16.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/rows.mlir --verify-each=equiv -o %t.rows.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.rows.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/groups.mlir --verify-each=equiv -o %t.groups.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.groups.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/columns.mlir --dtype bf16 --verify-each=equiv -o %t.columns.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.columns.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/both.mlir --verify-each=equiv -o %t.both.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.both.plan | FileCheck %s --check-prefix=SOUND

// CHECK: note: equivalence: {{[0-9]+}} steps kept what the program computes
// CHECK-SAME: and 2 gradients with differences of the loss
// SOUND: sound
// What lies between the two products, and its derivative, leaves the last row out.
// LEAVES-COUNT-2: plan.kernel @{{.*}} rows [

//--- model.mlir
graph.param @up : tensor<5x8x6xf32> init(#graph.normal<0.5>) key("up")
graph.param @down : tensor<5x6x8xf32> init(#graph.normal<0.5>) key("down")
graph.func loss @loss(%x: tensor<16x8xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  // Row 15 is of no group, the third group has no rows.
  %offsets = arith.constant dense<[0, 3, 9, 9, 10, 15]> : tensor<6xi32>
  %up = graph.read @up : tensor<5x8x6xf32>
  %h = graph.grouped_dot %x, %up at %offsets : (tensor<16x8xf32>, tensor<5x8x6xf32>, tensor<6xi32>) -> tensor<16x6xf32>
  %capped = graph.softcap %h cap 2.0 : tensor<16x6xf32>
  %down = graph.read @down : tensor<5x6x8xf32>
  %y = graph.grouped_dot %capped, %down at %offsets
      : (tensor<16x6xf32>, tensor<5x6x8xf32>, tensor<6xi32>) -> tensor<16x8xf32>
  %squares = arith.mulf %y, %y : tensor<16x8xf32>
  %sum = graph.reduce sum %squares dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  %positions = arith.constant dense<16.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
}

//--- rows.mlir
dist.strategy @rows {
  mesh @mesh ["dp"] [4]
}

//--- groups.mlir
dist.strategy @groups {
  mesh @mesh ["ep"] [2]
  shard "up" as <[{"ep"}, {}, {}]>
  shard "down" as <[{"ep"}, {}, {}]>
}

//--- columns.mlir
dist.strategy @columns {
  mesh @mesh ["tp"] [2]
  tensor_parallel "tp"
  shard "up" as <[{}, {}, {"tp"}]>
  shard "down" as <[{}, {"tp"}, {}]>
}

//--- both.mlir
dist.strategy @both {
  mesh @mesh ["dp", "ep"] [2, 2]
  shard "up" as <[{"ep"}, {}, {}]>
  shard "down" as <[{"ep"}, {}, {}]>
}
