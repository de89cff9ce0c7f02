// Folders and canonicalization patterns.
// RUN: bowline-opt %s --canonicalize --split-input-file | FileCheck %s

// Two transposes become one; a permutation that changes nothing disappears.
// CHECK-LABEL: graph.func @transposes
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5xf32>
graph.func @transposes(%x: tensor<2x3x5xf32>) -> (tensor<3x2x5xf32>, tensor<2x3x5xf32>) {
  // CHECK-NEXT: %[[ONE:.*]] = graph.transpose %[[X]] perm [1, 0, 2]
  // CHECK-NEXT: graph.return %[[ONE]], %[[X]]
  %0 = graph.transpose %x perm [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %1 = graph.transpose %0 perm [2, 1, 0] : (tensor<5x2x3xf32>) -> tensor<3x2x5xf32>
  %2 = graph.transpose %0 perm [1, 2, 0] : (tensor<5x2x3xf32>) -> tensor<2x3x5xf32>
  graph.return %1, %2 : tensor<3x2x5xf32>, tensor<2x3x5xf32>
}

// -----

// Two reshapes become one; a reshape to the same shape disappears.
// CHECK-LABEL: graph.func @reshapes
// CHECK-SAME: %[[X:.*]]: tensor<2x6xf32>
graph.func @reshapes(%x: tensor<2x6xf32>) -> (tensor<3x4xf32>, tensor<2x6xf32>) {
  // CHECK-NEXT: %[[ONE:.*]] = graph.reshape %[[X]] : (tensor<2x6xf32>) -> tensor<3x4xf32>
  // CHECK-NEXT: graph.return %[[ONE]], %[[X]]
  %0 = graph.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
  %1 = graph.reshape %0 : (tensor<12xf32>) -> tensor<3x4xf32>
  %2 = graph.reshape %0 : (tensor<12xf32>) -> tensor<2x6xf32>
  graph.return %1, %2 : tensor<3x4xf32>, tensor<2x6xf32>
}

// -----

// Splat constants pass through reshape and broadcast.
// CHECK-LABEL: graph.func @splats
graph.func @splats() -> (tensor<6xf32>, tensor<4x3xi32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<1.500000e+00> : tensor<6xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<7> : tensor<4x3xi32>
  // CHECK: graph.return %[[A]], %[[B]]
  %a = arith.constant dense<1.5> : tensor<2x3xf32>
  %b = arith.constant dense<7> : tensor<3xi32>
  %0 = graph.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = graph.broadcast %b dims [1] : (tensor<3xi32>) -> tensor<4x3xi32>
  graph.return %0, %1 : tensor<6xf32>, tensor<4x3xi32>
}

// -----

// A constant with different elements is left for the lowering.
// CHECK-LABEL: graph.func @not_splat
graph.func @not_splat() -> tensor<2x2xi32> {
  // CHECK: graph.reshape
  %a = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = graph.reshape %a : (tensor<4xi32>) -> tensor<2x2xi32>
  graph.return %0 : tensor<2x2xi32>
}

// -----

// A slice of everything, a broadcast to the same shape and a concat of one tensor are their operand.
// CHECK-LABEL: graph.func @identities
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
graph.func @identities(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: graph.return %[[X]]
  %0 = graph.slice %x at [0, 0] sizes [2, 3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = graph.broadcast %0 dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = graph.concat %1 dim 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return %2 : tensor<2x3xf32>
}

// -----

// Pure operations without users disappear; a write stays, and so does a read before it that is used.
graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func @effects
graph.func @effects(%x: tensor<2x3xf32>) {
  // CHECK-NEXT: %[[STEP:.*]] = graph.read @step
  // CHECK-NEXT: graph.write @step, %[[STEP]]
  // CHECK-NEXT: graph.return
  %unused = graph.silu %x : tensor<2x3xf32>
  %never = graph.read @step : tensor<i32>
  %step = graph.read @step : tensor<i32>
  graph.write @step, %step : tensor<i32>
  graph.return
}
