// Of classes that ranks divide, the statistics of each tile are combined: the logits of all positions never exist.
// RUN: bowline-opt %s --tile-loss="tile-bytes=128 min-positions=1" --split-input-file | FileCheck %s
// RUN: bowline-opt %s --tile-loss="tile-bytes=1024 min-positions=1" --split-input-file | FileCheck %s --check-prefix=ONE

dist.mesh @mesh ["tp"] [2]
// 2 x 4 positions of 8 classes on this rank: two tiles of four.
// CHECK-LABEL: graph.func @training
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x3xf32>, %[[W:[a-z0-9]+]]: tensor<8x3xf32>
// CHECK-NOT: tensor<2x4x8xf32>
// CHECK: %[[Y0:.*]] = graph.dot_general {{.*}} -> tensor<4x8xf32>
// CHECK: %[[LOSS0:.*]], %[[LSE0:.*]] = graph.softmax_cross_entropy %[[Y0]]
// CHECK: %[[MAX0:.*]] = dist.all_reduce {{ *}}max %[[LSE0]] over ["tp"] why "maximum" : tensor<4xf32>
// CHECK: arith.subf %[[LSE0]], %[[MAX0]]
// CHECK: arith.minimumf %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK: %[[SUM0:.*]]:2 = dist.bucket all_reduce({{ *}}sum) {{.*}} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[LOG0:.*]] = arith.addf %[[MAX0]], %{{.*}} : tensor<4xf32>
// CHECK: %[[G0:.*]] = graph.softmax_cross_entropy_grad %[[Y0]], %{{.*}}, %[[LOG0]]
// CHECK: %[[DX0:.*]] = graph.dot_general %[[G0]], %[[W]]
// CHECK: %[[Y1:.*]] = graph.dot_general {{.*}} -> tensor<4x8xf32>
// CHECK: %[[MAX1:.*]] = dist.all_reduce {{ *}}max
// CHECK: %[[SUM1:.*]]:2 = dist.bucket
// CHECK: graph.softmax_cross_entropy_grad %[[Y1]]
// CHECK: %[[DX1:.*]] = graph.dot_general
// CHECK-NOT: dist.
// What is needed of all positions elsewhere is put together.
// CHECK-DAG: %[[DX:.*]] = graph.concat %[[DX0]], %[[DX1]] dim 0
// CHECK-DAG: %[[CHOSEN:.*]] = graph.concat %[[SUM0]]#1, %[[SUM1]]#1 dim 0
// CHECK: graph.return
// One tile gains nothing here.
// ONE-LABEL: graph.func @training
// ONE: graph.dot_general {{.*}} -> tensor<2x4x8xf32>
// ONE-NOT: graph.slice
graph.func @training(%x: tensor<2x4x3xf32>, %w: tensor<8x3xf32>, %l: tensor<2x4xi32>, %s: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4x3xf32>) {
  %y = graph.dot_general %x, %w contract [2] x [1] : (tensor<2x4x3xf32>, tensor<8x3xf32>) -> tensor<2x4x8xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %max = dist.all_reduce max %lse over ["tp"] why "maximum" : tensor<2x4xf32>
  %d = arith.subf %lse, %max : tensor<2x4xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %n = arith.minimumf %d, %zero : tensor<2x4xf32>
  %e = math.exp %n : tensor<2x4xf32>
  %own = arith.subf %lse, %loss : tensor<2x4xf32>
  %sum:2 = dist.bucket all_reduce(sum) %e, %own over ["tp"] : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %log = math.log %sum#0 : tensor<2x4xf32>
  %all = arith.addf %max, %log : tensor<2x4xf32>
  %result = arith.subf %all, %sum#1 : tensor<2x4xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %all, %s : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4x8xf32>
  %dx = graph.dot_general %g, %w contract [2] x [0] : (tensor<2x4x8xf32>, tensor<8x3xf32>) -> tensor<2x4x3xf32>
  graph.return %result, %dx : tensor<2x4xf32>, tensor<2x4x3xf32>
}

// -----

// A statistic that mixes positions cannot be had tile by tile.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: graph.func @mixed
// CHECK: graph.dot_general {{.*}} -> tensor<8x8xf32>
// CHECK-NOT: graph.slice
graph.func @mixed(%x: tensor<8x3xf32>, %w: tensor<8x3xf32>, %l: tensor<8xi32>, %s: tensor<8xf32>) -> tensor<8x3xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x8xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<8x8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %all = dist.all_to_all %lse split 0 concat 0 over ["tp"] : tensor<8xf32> -> tensor<8xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %all, %s : (tensor<8x8xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  graph.return %dx : tensor<8x3xf32>
}
