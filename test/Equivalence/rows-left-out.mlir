// Kernels that gather rows for products in groups, and that scatter their gradients back, leave out what is behind the last
// offset, and what is computed stays the same in every step of the compiler: on one rank, and where rows or groups are
// divided.
// RUN: split-file %s %t
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --verify-each=equiv -o %t.one.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.one.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-translate --plan-to-mlir %t.one.plan -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=LEAVES --input-file %t.one.mlir
// RUN: bowline-translate --mlir-to-plan %t.one.mlir -o %t.again.plan
// RUN: cmp %t.one.plan %t.again.plan
// RUN: bowline-inspect --kernels %t.one.plan | FileCheck %s --check-prefix=SHOWN
// RUN: bowline-inspect %t.one.plan | FileCheck %s --check-prefix=LISTED
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --dtype bf16 --verify-each=equiv -o %t.bf16.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.bf16.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/rows.mlir --verify-each=equiv -o %t.rows.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.rows.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %t/model.mlir --mode train --threads 1 --strategy %t/groups.mlir --verify-each=equiv -o %t.groups.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.groups.plan | FileCheck %s --check-prefix=SOUND

// CHECK: note: equivalence: {{[0-9]+}} steps kept what the program computes
// CHECK-SAME: and 3 gradients with differences of the loss
// SOUND: sound

// LEAVES-DAG: plan.kernel @{{.*}} registered "gather_rows" config {{{.*}}leaves_rows_out = 1
// LEAVES-DAG: plan.kernel @{{.*}} registered "grouped_matmul" config {{{.*}}leaves_rows_out = 1
// LEAVES-DAG: plan.kernel @{{.*}} registered "scatter_add_rows" config {{{.*}}leaves_rows_out = 1

// SHOWN: gather_rows (Registered)
// SHOWN: leaves out rows of arguments [1,3] behind the last element of argument 2
// SHOWN: scatter_add_rows (Registered)
// SHOWN: leaves out rows of arguments [0,1] behind the last element of argument 2

// LISTED: gather_rows {{.*}} launches {{.*}} bytes, leaves out rows of arguments [1,3] behind the last element of argument 2

//--- model.mlir
graph.param @table : tensor<10x8xf32> init(#graph.normal<0.5>) key("table")
graph.param @up : tensor<4x8x6xf32> init(#graph.normal<0.5>) key("up")
graph.param @down : tensor<4x6x8xf32> init(#graph.normal<0.5>) key("down")
graph.func loss @loss(%x: tensor<16x8xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  // Rows 13 to 15 are of no group, the second group has no rows.
  %offsets = arith.constant dense<[0, 3, 3, 9, 13]> : tensor<5xi32>
  %ids = arith.constant dense<[0, 5, 9, 2, 2, 5, 7, 8, 1, 0, 4, 4, 6, 3, 9, 9]> : tensor<16xi32>
  %table = graph.read @table : tensor<10x8xf32>
  %rows = graph.gather %table[%ids] : (tensor<10x8xf32>, tensor<16xi32>) -> tensor<16x8xf32>
  %up = graph.read @up : tensor<4x8x6xf32>
  %h = graph.grouped_dot %rows, %up at %offsets : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  %capped = graph.softcap %h cap 2.0 : tensor<16x6xf32>
  %down = graph.read @down : tensor<4x6x8xf32>
  %y = graph.grouped_dot %capped, %down at %offsets
      : (tensor<16x6xf32>, tensor<4x6x8xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  %scaled = arith.mulf %y, %x : tensor<16x8xf32>
  %squares = arith.mulf %scaled, %scaled : tensor<16x8xf32>
  %sum = graph.reduce sum %squares dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  %positions = arith.constant dense<16.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
}

//--- rows.mlir
dist.strategy @rows {
  mesh @mesh ["dp"] [2]
}

//--- groups.mlir
dist.strategy @groups {
  mesh @mesh ["ep"] [2]
  shard "up" as <[{"ep"}, {}, {}]>
  shard "down" as <[{"ep"}, {}, {}]>
}
