// Groups whose rows only products of rows in groups read leave out those behind the last offset, and so do kernels.
// RUN: bowline-opt %s --group-fusions --limit-rows --split-input-file | FileCheck %s
// RUN: bowline-opt %s --group-fusions --limit-rows --split-input-file --remark-format=emitRemark --remarks-filter=fusion -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The count becomes an input of each; the scale is read whole. What the first group computes, the second and the
// product read.
// CHECK-LABEL: graph.func @chain
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[W:.*]]: tensor<4xf32>, %[[M:.*]]: tensor<2x4x4xf32>, %[[O:.*]]: tensor<3xi32>
// CHECK: %[[A:.*]] = graph.fusion(%[[X]], %[[W]], %[[O]]) rows [2, 0, 3]
// CHECK: %[[P:.*]] = graph.fusion(%[[A]], %[[M]], %[[O]]) rows [2, 0, 3]
// CHECK: graph.grouped_dot
// CHECK: %[[B:.*]] = graph.fusion(%[[P]], %[[A]], %[[O]]) rows [2, 0, 1, 3]
// CHECK: graph.grouped_dot %[[B]], %[[M]] at %[[O]]
// REMARK: leaves out rows that no user reads
// REMARK: grouped_matmul, Remark="' leaves out rows that no user reads, or that are zeros
// REMARK: leaves out rows that no user reads
graph.func @chain(%x: tensor<8x4xf32>, %w: tensor<4xf32>, %m: tensor<2x4x4xf32>, %o: tensor<3xi32>) -> tensor<8x4xf32> {
  %wide = graph.broadcast %w dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %a = arith.mulf %x, %wide : tensor<8x4xf32>
  %p = graph.grouped_dot %a, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %s = graph.silu %p : tensor<8x4xf32>
  %b = arith.mulf %s, %a : tensor<8x4xf32>
  %y = graph.grouped_dot %b, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y : tensor<8x4xf32>
}

// -----

// What is returned, or read by a product of another count, is computed whole.
// CHECK-LABEL: graph.func @others
// CHECK-NOT: rows
// CHECK: graph.return
graph.func @others(%x: tensor<8x4xf32>, %m: tensor<2x4x4xf32>, %o: tensor<3xi32>, %q: tensor<3xi32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %a = graph.silu %x : tensor<8x4xf32>
  %p = graph.grouped_dot %a, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %b = math.exp %p : tensor<8x4xf32>
  %y = graph.grouped_dot %b, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %z = graph.grouped_dot %b, %m at %q : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %a, %y, %z : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Rows of a transposed operand are its columns: it is read whole.
// CHECK-LABEL: graph.func @columns
// CHECK: graph.fusion(%{{.*}}, %{{.*}}) rows [1, 2] :
// CHECK: graph.grouped_dot
graph.func @columns(%x: tensor<4x8xf32>, %m: tensor<2x4x4xf32>, %o: tensor<3xi32>) -> tensor<8x4xf32> {
  %t = graph.transpose %x perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %y = graph.grouped_dot %t, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y : tensor<8x4xf32>
}

// -----

// Zeros that nobody reads are not written.
// CHECK-LABEL: graph.func @valid
// CHECK: graph.fusion(%{{.*}}, %{{.*}}) rows [1, 0, 2]
// CHECK-NOT: graph.valid_rows
// CHECK: graph.return
graph.func @valid(%x: tensor<8x4xf32>, %m: tensor<2x4x4xf32>, %o: tensor<3xi32>) -> tensor<8x4xf32> {
  %a = graph.silu %x : tensor<8x4xf32>
  %v = graph.valid_rows %a of %o : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %y = graph.grouped_dot %v, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y : tensor<8x4xf32>
}

// -----

// A count that is computed behind the group cannot be read by it.
// CHECK-LABEL: graph.func @later
// CHECK-NOT: rows
// CHECK: graph.return
graph.func @later(%x: tensor<8x4xf32>, %m: tensor<2x4x4xf32>, %t: tensor<5x3xi32>, %i: tensor<3xi32>) -> tensor<8x4xf32> {
  %a = graph.silu %x : tensor<8x4xf32>
  %table = graph.reshape %t : (tensor<5x3xi32>) -> tensor<15xi32>
  %o = graph.gather %table[%i] : (tensor<15xi32>, tensor<3xi32>) -> tensor<3xi32>
  %y = graph.grouped_dot %a, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y : tensor<8x4xf32>
}

// -----

// Rows are gathered for products, which only a sum of zeros with zeros reads, which is scattered: nobody needs the rows
// behind the count. The table is read whole, and all of the result is written.
// CHECK-LABEL: graph.func @scattered
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>, %[[M:.*]]: tensor<2x4x4xf32>, %[[I:.*]]: tensor<8xi32>, %[[O:.*]]: tensor<3xi32>
// CHECK: %[[R:.*]] = graph.fusion(%[[X]], %[[I]], %[[O]]) rows [2, 1, 3]
// CHECK: graph.gather
// CHECK: %[[A:.*]] = graph.fusion(%[[R]], %[[M]], %[[O]]) rows [2, 0, 3]
// CHECK: %[[B:.*]] = graph.fusion(%[[R]], %[[M]], %[[O]]) rows [2, 0, 3]
// CHECK: %[[S:.*]] = graph.fusion(%[[B]], %[[A]], %[[O]]) rows [2, 0, 1, 3]
// CHECK: graph.fusion(%[[S]], %[[I]], %[[O]]) rows [2, 0, 1]
// CHECK: graph.scatter_add
graph.func @scattered(%x: tensor<6x4xf32>, %m: tensor<2x4x4xf32>, %ids: tensor<8xi32>, %o: tensor<3xi32>)
    -> tensor<6x4xf32> {
  %r = graph.gather %x[%ids] : (tensor<6x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  %a = graph.grouped_dot %r, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %b = graph.grouped_dot transposed %r, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %minus = arith.negf %b : tensor<8x4xf32>
  %two = arith.constant dense<2.0> : tensor<8x4xf32>
  %twice = arith.mulf %minus, %two : tensor<8x4xf32>
  %s = arith.addf %a, %twice : tensor<8x4xf32>
  %y = graph.scatter_add %s at %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
  graph.return %y : tensor<6x4xf32>
}

// -----

// A product with what may be infinite behind the count need not be zero there, and neither is a sum with a number.
// CHECK-LABEL: graph.func @weighted
// CHECK-NOT: rows [
// CHECK: graph.return
graph.func @weighted(%x: tensor<8x4xf32>, %w: tensor<8x4xf32>, %m: tensor<2x4x4xf32>, %ids: tensor<8xi32>, %o: tensor<3xi32>)
    -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %a = graph.grouped_dot %x, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %b = arith.mulf %a, %w : tensor<8x4xf32>
  %y = graph.scatter_add %b at %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
  %one = arith.constant dense<1.0> : tensor<8x4xf32>
  %c = arith.addf %a, %one : tensor<8x4xf32>
  %z = graph.scatter_add %c at %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
  graph.return %y, %z : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Zeros that are asked for make it so.
// CHECK-LABEL: graph.func @asked
// CHECK: %[[A:.*]] = graph.fusion(%{{.*}}, %{{.*}}, %[[O:.*]]) rows [2, 0, 3]
// CHECK: graph.grouped_dot
// CHECK: %[[V:.*]] = graph.fusion(%[[A]], %{{.*}}, %[[O]]) rows [2, 0, 1, 3]
// CHECK-NOT: graph.valid_rows
// CHECK: graph.fusion(%[[V]], %{{.*}}, %[[O]]) rows [2, 0, 1]
// CHECK: graph.scatter_add
graph.func @asked(%x: tensor<8x4xf32>, %w: tensor<8x4xf32>, %m: tensor<2x4x4xf32>, %ids: tensor<8xi32>, %o: tensor<3xi32>)
    -> tensor<6x4xf32> {
  %a = graph.grouped_dot %x, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %b = arith.mulf %a, %w : tensor<8x4xf32>
  %v = graph.valid_rows %b of %o : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %y = graph.scatter_add %v at %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
  graph.return %y : tensor<6x4xf32>
}

// -----

// Zeros behind two counts are those behind none that is known; rows that are returned are gathered whole.
// CHECK-LABEL: graph.func @mixed
// CHECK-NOT: rows [
// CHECK: graph.return
graph.func @mixed(%t: tensor<6x4xf32>, %m: tensor<2x4x4xf32>, %ids: tensor<8xi32>, %o: tensor<3xi32>, %p: tensor<3xi32>)
    -> (tensor<6x4xf32>, tensor<8x4xf32>) {
  %x = graph.gather %t[%ids] : (tensor<6x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  %a = graph.grouped_dot %x, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %b = graph.grouped_dot %x, %m at %p : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %s = arith.addf %a, %b : tensor<8x4xf32>
  %y = graph.scatter_add %s at %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
  graph.return %y, %x : tensor<6x4xf32>, tensor<8x4xf32>
}

// -----

// Offsets of as many rows as there are rows, which scale these: a count is no input with rows.
// CHECK-LABEL: graph.func @scaled
// CHECK: graph.fusion(%[[OFFSETS:.*]], %{{.*}}) rows [0, 1, 2] : (tensor<3xi32>, tensor<3x8xf32>) -> tensor<3x8xf32>
// CHECK: graph.grouped_dot
graph.func @scaled(%x: tensor<3x8xf32>, %m: tensor<2x8x8xf32>, %o: tensor<3xi32>) -> tensor<3x8xf32> {
  %n = arith.sitofp %o : tensor<3xi32> to tensor<3xf32>
  %along = graph.broadcast %n dims [0] : (tensor<3xf32>) -> tensor<3x8xf32>
  %a = arith.mulf %x, %along : tensor<3x8xf32>
  %y = graph.grouped_dot %a, %m at %o : (tensor<3x8xf32>, tensor<2x8x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
  graph.return %y : tensor<3x8xf32>
}
