// Operations that are computed together.
// RUN: bowline-opt %s --group-fusions --split-input-file | FileCheck %s
// RUN: bowline-opt %s --group-fusions=merge=false --split-input-file | FileCheck %s --check-prefix=ALONE

// Elementwise operations on one shape are one group; constants and broadcasts are computed inside.
// CHECK-LABEL: graph.func @rows
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<3xf32>
// CHECK-NEXT: %[[F:.*]] = graph.fusion(%[[X]], %[[B]])
// CHECK: graph.broadcast
// CHECK: arith.addf
// CHECK: arith.constant
// CHECK: arith.mulf
// CHECK: graph.reduce sum
// CHECK: graph.yield
// CHECK: graph.return %[[F]]
// ALONE-LABEL: graph.func @rows
// ALONE-COUNT-3: graph.fusion
// ALONE: graph.return
graph.func @rows(%x: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {
  %wide = graph.broadcast %b dims [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %half = arith.constant dense<0.5> : tensor<4x3xf32>
  %0 = arith.addf %x, %wide : tensor<4x3xf32>
  %1 = arith.mulf %0, %half : tensor<4x3xf32>
  %2 = graph.reduce sum %1 dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  graph.return %2 : tensor<4xf32>
}

// -----

// A broadcast is repeated in each group that reads it; a value used outside is yielded.
// CHECK-LABEL: graph.func @repeated
// CHECK: %[[A:.*]]:2 = graph.fusion
// CHECK: graph.broadcast
// CHECK: graph.yield %{{.*}}, %{{.*}} : tensor<4x3xf32>, tensor<4x3xf32>
// CHECK: graph.dot_general %[[A]]#1, %[[A]]#1
// CHECK: graph.fusion
// CHECK: graph.broadcast
// CHECK: graph.return %[[A]]#0
graph.func @repeated(%x: tensor<4x3xf32>, %b: tensor<f32>) -> (tensor<4x3xf32>, tensor<3x3xf32>) {
  %wide = graph.broadcast %b dims [] : (tensor<f32>) -> tensor<4x3xf32>
  %0 = arith.addf %x, %wide : tensor<4x3xf32>
  %1 = math.tanh %0 : tensor<4x3xf32>
  %2 = graph.dot_general %1, %1 contract [0] x [0] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %square = graph.broadcast %b dims [] : (tensor<f32>) -> tensor<3x3xf32>
  %3 = arith.addf %2, %square : tensor<3x3xf32>
  graph.return %0, %3 : tensor<4x3xf32>, tensor<3x3xf32>
}

// -----

// A group is computed at its last operation: what the contraction reads cannot wait for the addition.
// CHECK-LABEL: graph.func @user_between
// CHECK: %[[T:.*]] = graph.fusion
// CHECK: math.tanh
// CHECK-NEXT: graph.yield
// CHECK: %[[D:.*]] = graph.dot_general %[[T]]
// CHECK: graph.fusion(%[[D]], %[[T]])
// CHECK: arith.addf
graph.func @user_between(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.dot_general %0, %0 contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.addf %1, %0 : tensor<3x3xf32>
  graph.return %2 : tensor<3x3xf32>
}

// -----

// One value per tensor is no row: the sum of everything and what follows stay apart, so that the rows run in parallel.
// CHECK-LABEL: graph.func @scalars
// CHECK-COUNT-3: graph.fusion
// CHECK-NOT: graph.fusion
graph.func @scalars(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = math.tanh %x : tensor<4x3xf32>
  %sum = graph.reduce sum %0 dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  %wide = graph.broadcast %sum dims [] : (tensor<f32>) -> tensor<4x3xf32>
  %1 = arith.divf %0, %wide : tensor<4x3xf32>
  graph.return %1 : tensor<4x3xf32>
}

// -----

// A broadcast that something else reads is stored, behind the group that computes its operand.
// CHECK-LABEL: graph.func @stored_broadcast
// CHECK: %[[A:.*]]:2 = graph.fusion
// CHECK: %[[B:.*]] = graph.fusion(%[[A]]#0)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.yield
// CHECK: graph.write @s, %[[B]]
// CHECK-NOT: graph.broadcast
graph.state @s optimizer : tensor<2x4x3xf32> init(#graph.fill<0.0>)
graph.func @stored_broadcast(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = math.tanh %x : tensor<3xf32>
  %rows = graph.broadcast %0 dims [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %wide = graph.broadcast %rows dims [1, 2] : (tensor<4x3xf32>) -> tensor<2x4x3xf32>
  %1 = math.cos %0 : tensor<3xf32>
  graph.write @s, %wide : tensor<2x4x3xf32>
  graph.return %1 : tensor<3xf32>
}

// -----

// A constant with several values is data, not code: the group reads it.
// CHECK-LABEL: graph.func @table
// CHECK: %[[T:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: graph.fusion(%{{.*}}, %[[T]])
// CHECK-NOT: arith.constant
graph.func @table(%x: tensor<2xf32>) -> tensor<2xf32> {
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = arith.addf %x, %t : tensor<2xf32>
  graph.return %0 : tensor<2xf32>
}

// -----

// What nobody uses is not computed, nor what only that reads.
// CHECK-LABEL: graph.func @unused
// CHECK-NEXT: graph.return
graph.func @unused(%x: tensor<2x3xf32>) {
  %0 = graph.transpose %x perm [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = math.tanh %0 : tensor<3x2xf32>
  graph.return
}
