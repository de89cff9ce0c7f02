// Products and the collectives beside them, in chunks of rows.
// RUN: bowline-opt %s --add-strategy='mesh=tp=2 overlap-chunks=2' --chunk-collectives | FileCheck %s
// RUN: bowline-opt %s --chunk-collectives | FileCheck %s --check-prefix=NONE
// NONE-NOT: graph.slice

dist.mesh @mesh ["tp"] [2]

// CHECK-LABEL: graph.func @sum
// CHECK: %[[A0:.*]] = graph.slice %{{.*}} at [0, 0, 0] sizes [2, 3, 8]
// CHECK-NEXT: %[[Y0:.*]] = graph.dot_general %[[A0]], %{{.*}} contract [2] x [0] : (tensor<2x3x8xf32>, tensor<8x6xf32>) -> tensor<2x3x6xf32>
// CHECK-NEXT: %[[R0:.*]] = dist.all_reduce {{ *}}sum %[[Y0]] over ["tp"] {dist.repetition = 0 : i64} : tensor<2x3x6xf32>
// CHECK-NEXT: %[[A1:.*]] = graph.slice %{{.*}} at [2, 0, 0] sizes [2, 3, 8]
// CHECK-NEXT: %[[Y1:.*]] = graph.dot_general %[[A1]]
// CHECK-NEXT: %[[R1:.*]] = dist.all_reduce {{ *}}sum %[[Y1]] over ["tp"] {dist.repetition = 1 : i64}
// CHECK-NEXT: graph.concat %[[R0]], %[[R1]] dim 0
graph.func @sum(%a: tensor<4x3x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x3x6xf32> {
  %y = graph.dot_general %a, %w contract [2] x [0] : (tensor<4x3x8xf32>, tensor<8x6xf32>) -> tensor<4x3x6xf32>
  %r = dist.all_reduce sum %y over ["tp"] : tensor<4x3x6xf32>
  graph.return %r : tensor<4x3x6xf32>
}

// A gather, two products that need it, and a third one that needs all rows at once.
// CHECK-LABEL: graph.func @gather
// CHECK: %[[G0:.*]] = dist.all_gather %{{.*}} dim 1 over ["tp"] {dist.repetition = 0 : i64} : tensor<2x3x8xf32> -> tensor<2x6x8xf32>
// CHECK: %[[G1:.*]] = dist.all_gather
// CHECK: %[[WHOLE:.*]] = graph.concat %[[G0]], %[[G1]] dim 0
// CHECK: %[[U0:.*]] = graph.dot_general %[[G0]]
// CHECK: %[[U1:.*]] = graph.dot_general %[[G1]]
// CHECK: graph.concat %[[U0]], %[[U1]] dim 0
// CHECK: graph.dot_general %[[WHOLE]], %[[WHOLE]]
graph.func @gather(%x: tensor<4x3x8xf32>, %w: tensor<8x5xf32>) -> (tensor<4x6x5xf32>, tensor<8x8xf32>) {
  %g = dist.all_gather %x dim 1 over ["tp"] : tensor<4x3x8xf32> -> tensor<4x6x8xf32>
  %u = graph.dot_general %g, %w contract [2] x [0] : (tensor<4x6x8xf32>, tensor<8x5xf32>) -> tensor<4x6x5xf32>
  %s = graph.dot_general %g, %g contract [0, 1] x [0, 1] : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<8x8xf32>
  graph.return %u, %s : tensor<4x6x5xf32>, tensor<8x8xf32>
}

// Rows that the collective cuts itself, sums over rows, and a number of rows that nothing divides stay.
// CHECK-LABEL: graph.func @whole
// CHECK-NOT: graph.slice
// CHECK: graph.return
graph.func @whole(%a: tensor<4x8xf32>, %b: tensor<4x6xf32>, %c: tensor<1x8xf32>, %w: tensor<8x6xf32>)
    -> (tensor<2x6xf32>, tensor<8x6xf32>, tensor<1x6xf32>) {
  %0 = graph.dot_general %a, %w contract [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = dist.reduce_scatter sum %0 dim 0 over ["tp"] : tensor<4x6xf32> -> tensor<2x6xf32>
  %2 = dist.all_gather %b dim 0 over ["tp"] : tensor<4x6xf32> -> tensor<8x6xf32>
  %3 = graph.dot_general %c, %2 contract [1] x [0] : (tensor<1x8xf32>, tensor<8x6xf32>) -> tensor<1x6xf32>
  %4 = dist.all_reduce sum %3 over ["tp"] : tensor<1x6xf32>
  graph.return %1, %2, %4 : tensor<2x6xf32>, tensor<8x6xf32>, tensor<1x6xf32>
}
