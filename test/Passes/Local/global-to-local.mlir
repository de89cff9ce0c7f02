// Types become those of the pieces, and reshards collectives.
// RUN: bowline-opt %s --propagate-shardings --global-to-local | FileCheck %s

// CHECK: dist.mesh @mesh ["dp", "tp"] [2, 4]
dist.mesh @mesh ["dp", "tp"] [2, 4]
// CHECK: graph.param @up : tensor<16x16xf32> {{.*}}dist.global_shape = array<i64: 64, 16>, dist.sharding = #dist.sharding<[{"tp"}, {}]>
graph.param @up : tensor<64x16xf32> init(#graph.normal<0.02>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.param @down : tensor<16x64xf32> init(#graph.normal<0.02>) key("down") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}

// CHECK-LABEL: graph.func @two_products
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32> {dist.global_shape = array<i64: 8, 16>
graph.func @two_products(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> tensor<8x16xf32> {
  %up = graph.read @up : tensor<64x16xf32>
  // CHECK: graph.dot_general {{.*}} -> tensor<4x16xf32>
  %0 = graph.dot_general %x, %up contract [1] x [1] : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
  // CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<4x16xf32>
  %half = arith.constant dense<0.5> : tensor<8x64xf32>
  // CHECK: arith.mulf {{.*}} : tensor<4x16xf32>
  %1 = arith.mulf %0, %half : tensor<8x64xf32>
  %down = graph.read @down : tensor<16x64xf32>
  // CHECK: %[[PARTS:.*]] = graph.dot_general {{.*}} -> tensor<4x16xf32>
  %2 = graph.dot_general %1, %down contract [1] x [1] : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<8x16xf32>
  // CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[PARTS]] over ["tp"] why "propagate-shardings: sum of partial products, whose contraction is sharded over tp" : tensor<4x16xf32>
  // CHECK: %[[ALL:.*]] = dist.all_gather %[[SUM]] dim 0 over ["dp"] why "propagate-shardings: graph.return{{.*}}" : tensor<4x16xf32> -> tensor<8x16xf32>
  // CHECK: graph.return %[[ALL]]
  graph.return %2 : tensor<8x16xf32>
}

// Each rank draws its part of the same random numbers.
// CHECK-LABEL: graph.func @init
graph.func @init() {
  // CHECK: %[[PLACE:.*]] = dist.coordinate over ["tp"]
  // CHECK: graph.random normal(0.02) seed(1) stream(2) shard %[[PLACE]] along [0] of [64, 16] : tensor<16x16xf32>
  %0 = graph.random normal(0.02) seed(1) stream(2) : tensor<64x16xf32>
  graph.write @up, %0 : tensor<64x16xf32>
  // A slice keeps whole what is cut.
  // CHECK: graph.slice %{{.*}} at [0, 2] sizes [16, 8] : (tensor<16x16xf32>) -> tensor<16x8xf32>
  %1 = graph.read @up : tensor<64x16xf32>
  %2 = graph.slice %1 at [0, 2] sizes [64, 8] : (tensor<64x16xf32>) -> tensor<64x8xf32>
  %3 = graph.pad %2 low [0, 2] high [0, 6] : (tensor<64x8xf32>) -> tensor<64x16xf32>
  graph.write @up, %3 : tensor<64x16xf32>
  graph.return
}
