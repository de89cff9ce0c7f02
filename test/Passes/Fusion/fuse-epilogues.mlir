// Elementwise work on the result of a contraction joins it.
// RUN: bowline-opt %s --group-fusions --fuse-epilogues --split-input-file | FileCheck %s

// Bias and activation: the product itself is not stored.
// CHECK-LABEL: graph.func @bias
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[B:.*]]: tensor<5xf32>
// CHECK-NEXT: %[[F:.*]] = graph.fusion(%[[X]], %[[W]], %[[B]]) : {{.*}} -> tensor<4x5xf32>
// CHECK-NEXT: ^bb0(%[[FX:.*]]: tensor<4x3xf32>, %[[FW:.*]]: tensor<5x3xf32>, %[[FB:.*]]: tensor<5xf32>)
// CHECK-NEXT: %[[D:.*]] = graph.dot_general %[[FX]], %[[FW]] contract [1] x [1]
// CHECK-NEXT: %[[R:.*]] = graph.broadcast %[[FB]] dims [1]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[D]], %[[R]]
// CHECK-NEXT: %[[A:.*]] = graph.silu %[[S]]
// CHECK-NEXT: graph.yield %[[A]]
// CHECK: graph.return %[[F]]
graph.func @bias(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %rows = graph.broadcast %b dims [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %1 = arith.addf %0, %rows : tensor<4x5xf32>
  %2 = graph.silu %1 : tensor<4x5xf32>
  graph.return %2 : tensor<4x5xf32>
}

// -----

// What else reads the product, behind, gets it from the group.
// CHECK-LABEL: graph.func @product_kept
// CHECK: %[[F:.*]]:2 = graph.fusion
// CHECK: %[[D:.*]] = graph.dot_general
// CHECK: %[[A:.*]] = graph.silu %[[D]]
// CHECK: graph.yield %[[A]], %[[D]]
// CHECK: %[[E:.*]] = graph.dot_general %[[F]]#1, %[[F]]#0
// CHECK: graph.return %[[E]]
graph.func @product_kept(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<5x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.silu %0 : tensor<4x5xf32>
  %2 = graph.dot_general %0, %1 contract [0] x [0] : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
  graph.return %2 : tensor<5x5xf32>
}

// -----

// Of two products the last one takes the group; the other is stored for it.
// CHECK-LABEL: graph.func @gate
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[V:.*]]: tensor<5x3xf32>
// CHECK-NEXT: %[[G:.*]] = graph.dot_general %[[X]], %[[W]]
// CHECK-NEXT: %[[F:.*]] = graph.fusion(%[[X]], %[[V]], %[[G]])
// CHECK-NEXT: ^bb0(%{{.*}}, %{{.*}}, %[[GATE:.*]]: tensor<4x5xf32>)
// CHECK-NEXT: %[[U:.*]] = graph.dot_general
// CHECK-NEXT: %[[S:.*]] = graph.silu %[[GATE]]
// CHECK-NEXT: arith.mulf %[[S]], %[[U]]
// CHECK: graph.return %[[F]]
graph.func @gate(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %v: tensor<5x3xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.dot_general %x, %v contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %2 = graph.silu %0 : tensor<4x5xf32>
  %3 = arith.mulf %2, %1 : tensor<4x5xf32>
  graph.return %3 : tensor<4x5xf32>
}

// -----

// Batch and sequence are the rows; a value for everything, one per row and one per column. A residual that is an operand
// of the product is read twice.
// CHECK-LABEL: graph.func @rows
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5xf32>, %[[W:.*]]: tensor<5x5xf32>
// CHECK-NEXT: graph.fusion(%[[X]], %[[W]], %[[X]], %{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK: graph.dot_general
// CHECK: graph.broadcast %{{.*}} dims []
// CHECK: graph.broadcast %{{.*}} dims [0, 1]
// CHECK: graph.broadcast %{{.*}} dims [2]
// CHECK: graph.yield
// CHECK-NOT: graph.dot_general
// CHECK-NOT: graph.fusion
// CHECK: graph.return
graph.func @rows(%x: tensor<2x3x5xf32>, %w: tensor<5x5xf32>, %s: tensor<f32>, %r: tensor<2x3xf32>, %c: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %0 = graph.dot_general %x, %w contract [2] x [0] : (tensor<2x3x5xf32>, tensor<5x5xf32>) -> tensor<2x3x5xf32>
  %1 = arith.addf %x, %0 : tensor<2x3x5xf32>
  %sb = graph.broadcast %s dims [] : (tensor<f32>) -> tensor<2x3x5xf32>
  %2 = arith.mulf %1, %sb : tensor<2x3x5xf32>
  %rb = graph.broadcast %r dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x5xf32>
  %3 = arith.mulf %2, %rb : tensor<2x3x5xf32>
  %cb = graph.broadcast %c dims [2] : (tensor<5xf32>) -> tensor<2x3x5xf32>
  %4 = arith.mulf %3, %cb : tensor<2x3x5xf32>
  graph.return %4 : tensor<2x3x5xf32>
}

// -----

// The sum is rounded in the epilogue.
// CHECK-LABEL: graph.func @half
// CHECK: %[[F:.*]] = graph.fusion
// CHECK: graph.dot_general {{.*}} -> tensor<4x5xf32>
// CHECK: arith.truncf
// CHECK: graph.return %[[F]]
graph.func @half(%x: tensor<4x3xbf16>, %w: tensor<5x3xbf16>, %r: tensor<4x5xf32>) -> tensor<4x5xbf16> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xbf16>, tensor<5x3xbf16>) -> tensor<4x5xf32>
  %1 = arith.addf %0, %r : tensor<4x5xf32>
  %2 = arith.truncf %1 : tensor<4x5xf32> to tensor<4x5xbf16>
  graph.return %2 : tensor<4x5xbf16>
}

// -----

// A residual addition in front of a norm: its result is stored anyway, and the norm reads it.
// CHECK-LABEL: graph.func @residual
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[R:.*]]: tensor<4x5xf32>, %[[S:.*]]: tensor<5xf32>
// CHECK-NEXT: %[[A:.*]] = graph.fusion(%[[X]], %[[W]], %[[R]])
// CHECK: graph.dot_general
// CHECK: arith.addf
// CHECK-NEXT: graph.yield
// CHECK: %[[N:.*]] = graph.fusion(%[[S]], %[[A]])
// CHECK-NEXT: ^bb0(%[[BS:.*]]: tensor<5xf32>, %[[BA:.*]]: tensor<4x5xf32>)
// CHECK-NEXT: graph.rms_norm %[[BA]], %[[BS]]
// CHECK-NEXT: graph.yield %{{.*}} : tensor<4x5xf32>
// CHECK: graph.return %[[A]], %[[N]]
graph.func @residual(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %r: tensor<4x5xf32>, %s: tensor<5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = arith.addf %r, %0 : tensor<4x5xf32>
  %2 = graph.rms_norm %1, %s eps 1.0e-5 : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  graph.return %1, %2 : tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// The sum in front of the norm is not stored for anyone: storing it would cost what the fusion saves.
// CHECK-LABEL: graph.func @residual_inside
// CHECK-NEXT: %[[D:.*]] = graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: graph.rms_norm
// CHECK-NEXT: graph.yield
graph.func @residual_inside(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %r: tensor<4x5xf32>, %s: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = arith.addf %r, %0 : tensor<4x5xf32>
  %2 = graph.rms_norm %1, %s eps 1.0e-5 : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  graph.return %2 : tensor<4x5xf32>
}

// -----

// An intermediate value that the norm's group needs too keeps the addition there.
// CHECK-LABEL: graph.func @shared_inside
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: arith.addf
// CHECK: graph.silu
// CHECK: graph.rms_norm
// CHECK-NOT: graph.fusion
graph.func @shared_inside(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %r: tensor<4x5xf32>, %s: tensor<5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = arith.addf %r, %0 : tensor<4x5xf32>
  %2 = graph.silu %1 : tensor<4x5xf32>
  %3 = graph.rms_norm %1, %s eps 1.0e-5 : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  graph.return %2, %3 : tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// What is left alone. The product is needed before the group is computed:
// CHECK-LABEL: graph.func @used_before
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.write
// CHECK-NEXT: graph.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.silu
graph.state @s saved : tensor<4x5xf32> init(#graph.fill<0.0>)
graph.func @used_before(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  graph.write @s, %0 : tensor<4x5xf32>
  %1 = graph.silu %0 : tensor<4x5xf32>
  graph.return %1 : tensor<4x5xf32>
}

// The product is transposed first:
// CHECK-LABEL: graph.func @transposed
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.transpose
graph.func @transposed(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<5x4xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.transpose %0 perm [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %2 = graph.silu %1 : tensor<5x4xf32>
  graph.return %2 : tensor<5x4xf32>
}

// It is reshaped first:
// CHECK-LABEL: graph.func @reshaped
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: graph.fusion
graph.func @reshaped(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<2x2x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.reshape %0 : (tensor<4x5xf32>) -> tensor<2x2x5xf32>
  %2 = graph.silu %1 : tensor<2x2x5xf32>
  graph.return %2 : tensor<2x2x5xf32>
}

// One value per sequence, or per position of every sequence, is neither a row nor a column:
// CHECK-LABEL: graph.func @part_of_rows
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: graph.dot_general
// CHECK-NEXT: graph.fusion
graph.func @part_of_rows(%x: tensor<2x3x5xf32>, %w: tensor<5x5xf32>, %b: tensor<2xf32>, %p: tensor<3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %0 = graph.dot_general %x, %w contract [2] x [0] : (tensor<2x3x5xf32>, tensor<5x5xf32>) -> tensor<2x3x5xf32>
  %bb = graph.broadcast %b dims [0] : (tensor<2xf32>) -> tensor<2x3x5xf32>
  %1 = arith.mulf %0, %bb : tensor<2x3x5xf32>
  %2 = graph.dot_general %x, %w contract [2] x [1] : (tensor<2x3x5xf32>, tensor<5x5xf32>) -> tensor<2x3x5xf32>
  %pb = graph.broadcast %p dims [1, 2] : (tensor<3x5xf32>) -> tensor<2x3x5xf32>
  %3 = arith.mulf %2, %pb : tensor<2x3x5xf32>
  graph.return %1, %3 : tensor<2x3x5xf32>, tensor<2x3x5xf32>
}

// Padding moves elements, also where it adds none and the shapes agree:
// CHECK-LABEL: graph.func @padded
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: graph.pad
// CHECK: arith.addf
graph.func @padded(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %r: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.pad %r low [0, 0] high [0, 0] : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %2 = arith.addf %0, %1 : tensor<4x5xf32>
  graph.return %2 : tensor<4x5xf32>
}

// The group goes on to sums of rows, or over blocks of rows:
// CHECK-LABEL: graph.func @reduced
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: graph.reduce
graph.func @reduced(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<4xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = graph.silu %0 : tensor<4x5xf32>
  %2 = graph.reduce sum %1 dims [1] : (tensor<4x5xf32>) -> tensor<4xf32>
  graph.return %2 : tensor<4xf32>
}

// Comparisons give no floating-point tile:
// CHECK-LABEL: graph.func @compared
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: arith.cmpf
graph.func @compared(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %r: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = arith.cmpf olt, %0, %r : tensor<4x5xf32>
  %2 = arith.select %1, %0, %r : tensor<4x5xi1>, tensor<4x5xf32>
  graph.return %2 : tensor<4x5xf32>
}

// Integers are no epilogue:
// CHECK-LABEL: graph.func @rounded
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: arith.fptosi
graph.func @rounded(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<4x5xi32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %1 = arith.fptosi %0 : tensor<4x5xf32> to tensor<4x5xi32>
  graph.return %1 : tensor<4x5xi32>
}

// Double precision has no such kernel:
// CHECK-LABEL: graph.func @double
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
graph.func @double(%x: tensor<4x3xf64>, %w: tensor<5x3xf64>) -> tensor<4x5xf64> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf64>, tensor<5x3xf64>) -> tensor<4x5xf64>
  %1 = graph.silu %0 : tensor<4x5xf64>
  graph.return %1 : tensor<4x5xf64>
}

// One product per batch, a product of vectors, and one whose rows no stride walks over:
// CHECK-LABEL: graph.func @not_one_product
// CHECK-NEXT: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: graph.dot_general
// CHECK-NEXT: graph.fusion
// CHECK: graph.dot_general
// CHECK-NEXT: graph.fusion
graph.func @not_one_product(%x: tensor<2x3x5xf32>, %v: tensor<3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x5x5xf32>, tensor<4xf32>, tensor<2x5x4xf32>) {
  %0 = graph.dot_general %x, %x batch [0] x [0] contract [1] x [1] : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x5x5xf32>
  %1 = graph.silu %0 : tensor<2x5x5xf32>
  %2 = graph.dot_general %v, %w contract [0] x [0] : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  %3 = graph.silu %2 : tensor<4xf32>
  %4 = graph.dot_general %x, %w contract [1] x [0] : (tensor<2x3x5xf32>, tensor<3x4xf32>) -> tensor<2x5x4xf32>
  %5 = graph.silu %4 : tensor<2x5x4xf32>
  graph.return %1, %3, %5 : tensor<2x5x5xf32>, tensor<4xf32>, tensor<2x5x4xf32>
}
