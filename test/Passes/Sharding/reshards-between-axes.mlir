// Reshards over several axes that are easily done wrong. Axes that change places between two dimensions: each rank ends
// with the piece that its new coordinates say, of 8 / 4 rows and 16 / 2 columns. Two axes of one dimension: one group.
// (A size that does not divide is refused, see global-to-local-errors.mlir, or grows, see pad-for-divisibility.mlir; its
// last elements are never dropped.)
// RUN: bowline-opt %s --split-input-file --propagate-shardings --global-to-local | FileCheck %s

dist.mesh @mesh ["x", "y"] [2, 4]
// CHECK-LABEL: graph.func @axes_change_places(
// CHECK-SAME: %[[A:.*]]: tensor<4x4xf32>
graph.func @axes_change_places(%a: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[ROWS:.*]] = dist.all_gather %[[A]] dim 0 over ["x"] : tensor<4x4xf32> -> tensor<8x4xf32>
  // CHECK-NEXT: %[[WHOLE:.*]] = dist.all_gather %[[ROWS]] dim 1 over ["y"] : tensor<8x4xf32> -> tensor<8x16xf32>
  // CHECK-NEXT: %[[CUT:.*]] = dist.slice %[[WHOLE]] dim 0 over ["y"] : tensor<8x16xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: %[[PIECE:.*]] = dist.slice %[[CUT]] dim 1 over ["x"] : tensor<2x16xf32> -> tensor<2x8xf32>
  // CHECK-NEXT: arith.negf %[[PIECE]] : tensor<2x8xf32>
  %0 = dist.reshard %a to <[{"y"}, {"x"}]> : tensor<8x16xf32>
  %1 = arith.negf %0 : tensor<8x16xf32>
  graph.return %1 : tensor<8x16xf32>
}

// -----

dist.mesh @mesh ["x", "y"] [2, 4]
// CHECK-LABEL: graph.func @two_axes_at_once(
// CHECK-SAME: %[[A:.*]]: tensor<1x16xf32>
graph.func @two_axes_at_once(%a: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"x", "y"}, {}]>}) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[WHOLE:.*]] = dist.all_gather %[[A]] dim 0 over ["x", "y"] : tensor<1x16xf32> -> tensor<8x16xf32>
  // CHECK-NEXT: graph.return %[[WHOLE]]
  %0 = dist.reshard %a to <[{}, {}]> : tensor<8x16xf32>
  graph.return %0 : tensor<8x16xf32>
}
