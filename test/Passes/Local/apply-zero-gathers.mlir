// Which uses of a parameter share a gather, what is cast before it is gathered, and what is no business of a shard.
// RUN: bowline-opt %s --apply-zero --canonicalize --cse | FileCheck %s

dist.strategy @strategy {
  mesh @mesh ["dp", "tp"] [2, 2]
  zero level 3
}
dist.mesh @mesh ["dp", "tp"] [2, 2]
graph.param @a : tensor<4x4xf32> init(#graph.normal<1.0>) key("a") {dist.sharding = #dist.sharding<[{}, {}]>}
graph.param @b : tensor<4x4xf32> init(#graph.normal<1.0>) key("b") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}
// What the axis cuts already stays.
// CHECK: graph.param @c : tensor<2x4xf32> init(#graph.normal<1.0>) key("c") {dist.sharding = #dist.sharding<[{"dp"}, {}]>}
graph.param @c : tensor<2x4xf32> init(#graph.normal<1.0>) key("c") {dist.sharding = #dist.sharding<[{"dp"}, {}]>}

// @b is used twice in a row; @a before and after it.
// CHECK-LABEL: graph.func @uses
// CHECK: %[[A:.*]] = graph.read @a : tensor<8xf32>
// CHECK: %[[A0:.*]] = dist.all_gather %[[A]] dim 0 over ["dp"] why "apply-zero: 'a', of which each rank has a shard" {dist.prefetch = 1 : i64} : tensor<8xf32> -> tensor<16xf32>
// CHECK: %[[A0S:.*]] = graph.reshape %[[A0]]
// CHECK: %[[X1:.*]] = graph.dot_general %{{.*}}, %[[A0S]]
// CHECK: %[[B0:.*]] = dist.all_gather
// CHECK: %[[B0S:.*]] = graph.reshape %[[B0]]
// CHECK: %[[X2:.*]] = graph.dot_general %[[X1]], %[[B0S]]
// CHECK-NEXT: %[[X3:.*]] = graph.dot_general %[[X2]], %[[B0S]]
// CHECK: %[[A1:.*]] = dist.all_gather %[[A]] dim 0 over ["dp"] why "apply-zero: 'a', of which each rank has a shard" {dist.prefetch = 1 : i64, dist.repetition = 1 : i64}
// CHECK: %[[A1S:.*]] = graph.reshape %[[A1]]
// CHECK: graph.dot_general %[[X3]], %[[A1S]]
graph.func @uses(%x: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> tensor<3x4xf32> {
  %a = graph.read @a : tensor<4x4xf32>
  %b = graph.read @b : tensor<4x4xf32>
  %x1 = graph.dot_general %x, %a contract [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %x2 = graph.dot_general %x1, %b contract [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %x3 = graph.dot_general %x2, %b contract [1] x [1] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %x4 = graph.dot_general %x3, %a contract [1] x [1] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  graph.return %x4 : tensor<3x4xf32>
}

// Half of the bytes are gathered.
// CHECK-LABEL: graph.func @rounded
// CHECK: %[[A:.*]] = graph.read @a : tensor<8xf32>
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[A]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: dist.all_gather %[[R]] dim 0 over ["dp"] why "apply-zero: 'a', of which each rank has a shard" {dist.prefetch = 1 : i64} : tensor<8xbf16> -> tensor<16xbf16>
graph.func @rounded(%x: tensor<3x4xbf16> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> tensor<3x4xbf16> {
  %a = graph.read @a : tensor<4x4xf32>
  %r = arith.truncf %a : tensor<4x4xf32> to tensor<4x4xbf16>
  %y = graph.dot_general %x, %r contract [1] x [0] : (tensor<3x4xbf16>, tensor<4x4xbf16>) -> tensor<3x4xbf16>
  graph.return %y : tensor<3x4xbf16>
}

// Ranks have different rows of an argument that is cut: what is added to it is the whole parameter.
// CHECK-LABEL: graph.func @activations
// CHECK: %[[A:.*]] = dist.all_gather
// CHECK: %[[W:.*]] = graph.reshape %[[A]]
// CHECK: arith.addf %{{.*}}, %[[W]] : tensor<4x4xf32>
graph.func @activations(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> tensor<4x4xf32> {
  %a = graph.read @a : tensor<4x4xf32>
  %y = arith.addf %x, %a : tensor<4x4xf32>
  graph.return %y : tensor<4x4xf32>
}

// An initial value that is not zero ends with zeros all the same, and pieces of columns are drawn whole.
// CHECK-LABEL: graph.func @initialize
// CHECK: %[[TP:.*]] = dist.coordinate over ["tp"]
// CHECK: %[[R:.*]] = graph.random normal(1.0) seed(1) stream(7) shard %[[TP]] along [1] of [4, 8] : tensor<4x4xf32>
// CHECK: %[[F:.*]] = graph.reshape %[[R]]
// CHECK: %[[S:.*]] = dist.slice %[[F]] dim 0 over ["dp"]
// CHECK: graph.write @b, %[[S]]
// CHECK: %[[BOTH:.*]] = dist.coordinate over ["tp", "dp"]
// CHECK: %[[ROWS:.*]] = graph.random normal(1.0) seed(1) stream(8) shard %[[BOTH]] along [0] of [32] : tensor<8xf32>
// CHECK: graph.write @a, %[[ROWS]]
graph.func @initialize() {
  %tp = dist.coordinate over ["tp"] : tensor<i32>
  %b = graph.random normal(1.0) seed(1) stream(7) shard %tp along [1] of [4, 8] : tensor<4x4xf32>
  graph.write @b, %b : tensor<4x4xf32>
  %a = graph.random normal(1.0) seed(1) stream(8) shard %tp along [0] of [8, 4] : tensor<4x4xf32>
  graph.write @a, %a : tensor<4x4xf32>
  graph.return
}
