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
graph.state @s saved : tensor<2x4x3xf32> init(#graph.fill<0.0>)
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

// A member that no result needs is not computed, and what only it reads is no input.
// CHECK-LABEL: graph.func @unused_member
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %{{.*}}: tensor<3xf32>
// CHECK-NEXT: graph.fusion(%[[X]])
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.tanh
// CHECK-NEXT: graph.yield
graph.func @unused_member(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = math.tanh %x : tensor<2x3xf32>
  %1 = graph.rms_norm %0, %s eps 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  graph.return %0 : tensor<2x3xf32>
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

// -----

// Two that read the same rows read them once, though neither reads the other.
// CHECK-LABEL: graph.func @siblings
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[Y:.*]]: tensor<4x3xf32>
// CHECK-NEXT: %[[F:.*]]:2 = graph.fusion(%[[X]], %[[Y]])
// CHECK: math.tanh
// CHECK-NEXT: arith.mulf
// CHECK-NOT: graph.fusion
// CHECK: graph.return %[[F]]#0, %[[F]]#1
// ALONE-LABEL: graph.func @siblings
// ALONE-COUNT-2: graph.fusion
// ALONE: graph.return
graph.func @siblings(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %0 = math.tanh %x : tensor<4x3xf32>
  %1 = arith.mulf %x, %y : tensor<4x3xf32>
  graph.return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The second reader depends on the first through a contraction: they cannot be computed together.
// CHECK-LABEL: graph.func @sibling_behind
// CHECK-COUNT-2: graph.fusion
// CHECK-NOT: graph.fusion
graph.func @sibling_behind(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.dot_general %0, %0 contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.mulf %x, %1 : tensor<3x3xf32>
  graph.return %2 : tensor<3x3xf32>
}

// -----

// A value per row, or one that is repeated, is little: reading it twice is no reason to merge.
// CHECK-LABEL: graph.func @little_shared
// CHECK-COUNT-2: graph.fusion
// CHECK-NOT: graph.fusion
graph.func @little_shared(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %r: tensor<4xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %wide = graph.broadcast %r dims [0] : (tensor<4xf32>) -> tensor<4x3xf32>
  %0 = arith.mulf %x, %wide : tensor<4x3xf32>
  %1 = arith.addf %y, %wide : tensor<4x3xf32>
  graph.return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// A loss and its gradient read the logits once.
// CHECK-LABEL: graph.func loss @loss
// CHECK: %[[F:.*]]:2 = graph.fusion
// CHECK: graph.softmax_cross_entropy
// CHECK: graph.softmax_cross_entropy_grad
// CHECK: graph.yield
// CHECK-NOT: graph.fusion
// CHECK: graph.return %[[F]]#0, %[[F]]#1
graph.func loss @loss(%y: tensor<4x3xf32>, %l: tensor<4xi32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %seed = graph.broadcast %s dims [] : (tensor<f32>) -> tensor<4xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %seed
    : (tensor<4x3xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  graph.return %loss, %g : tensor<4xf32>, tensor<4x3xf32>
}

// -----

// Sums of blocks of rows join what they sum, with the division into blocks; the sum of the blocks follows.
// CHECK-LABEL: graph.func @blocks
// CHECK-NEXT: %[[F:.*]]:2 = graph.fusion
// CHECK: math.tanh
// CHECK-NEXT: %[[R:.*]] = graph.reshape
// CHECK-NEXT: graph.reduce sum %[[R]] dims [1]
// CHECK-NEXT: graph.yield
// CHECK: graph.fusion(%[[F]]#1)
// CHECK: graph.reduce sum %{{.*}} dims [0]
// CHECK-NOT: graph.reshape
// CHECK: graph.return
// ALONE-LABEL: graph.func @blocks
// ALONE: graph.fusion
// ALONE: math.tanh
// ALONE: graph.fusion
// ALONE: graph.reshape
// ALONE-NEXT: graph.reduce sum
// ALONE: graph.fusion
// ALONE-NOT: graph.reshape
// ALONE: graph.return
graph.func @blocks(%x: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<3xf32>) {
  %0 = math.tanh %x : tensor<6x3xf32>
  %1 = graph.reshape %0 : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
  %2 = graph.reduce sum %1 dims [1] : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  %3 = graph.reduce sum %2 dims [0] : (tensor<2x3xf32>) -> tensor<3xf32>
  graph.return %0, %3 : tensor<6x3xf32>, tensor<3xf32>
}

// -----

// Blocks that cut rows, or that something else reads, are tensors like others.
// CHECK-LABEL: graph.func @not_blocks
// CHECK: graph.fusion
// CHECK: math.tanh
// CHECK-NEXT: graph.yield
// CHECK: %[[A:.*]] = graph.reshape {{.*}} -> tensor<4x3x2xf32>
// CHECK-NEXT: graph.fusion(%[[A]])
// CHECK: %[[B:.*]] = graph.reshape {{.*}} -> tensor<2x3x4xf32>
// CHECK-NEXT: graph.fusion(%[[B]])
// CHECK-NOT: graph.reshape
// CHECK: graph.return
graph.func @not_blocks(%x: tensor<6x4xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x3x4xf32>) {
  %0 = math.tanh %x : tensor<6x4xf32>
  %1 = graph.reshape %0 : (tensor<6x4xf32>) -> tensor<4x3x2xf32>
  %2 = graph.reduce sum %1 dims [1] : (tensor<4x3x2xf32>) -> tensor<4x2xf32>
  %3 = graph.reshape %0 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %4 = graph.reduce sum %3 dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  graph.return %2, %4, %3 : tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x3x4xf32>
}

// -----

// Parts of a whole, as the gradients of slices are, are put together without being stored at full size.
// CHECK-LABEL: graph.func @parts
// CHECK-SAME: (%[[X:.*]]: tensor<4x2xf32>, %[[Y:.*]]: tensor<4x3xf32>)
// CHECK-NEXT: graph.fusion
// CHECK-SAME: tensor<4x2xf32>
// CHECK-COUNT-2: graph.pad
// CHECK: arith.addf
// CHECK-NOT: graph.fusion
// CHECK: graph.return
graph.func @parts(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %0 = graph.pad %x low [0, 0] high [0, 3] : (tensor<4x2xf32>) -> tensor<4x5xf32>
  %1 = graph.pad %y low [0, 2] high [0, 0] : (tensor<4x3xf32>) -> tensor<4x5xf32>
  %2 = arith.addf %0, %1 : tensor<4x5xf32>
  graph.return %2 : tensor<4x5xf32>
}
