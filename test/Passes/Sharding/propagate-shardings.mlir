// Shardings spread along factors, and reshards stand where producer and consumer differ.
// RUN: bowline-opt %s --propagate-shardings --split-input-file | FileCheck %s

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.param @up : tensor<64x16xf32> init(#graph.normal<0.02>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.param @down : tensor<16x64xf32> init(#graph.normal<0.02>) key("down") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}

// Columns, then rows: one sum over tp for both products, and none between them.
// CHECK-LABEL: graph.func @two_products
graph.func @two_products(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> tensor<8x16xf32> {
  %up = graph.read @up : tensor<64x16xf32>
  // CHECK: graph.dot_general {{.*}}dist.shardings = [#dist.sharding<[{"dp"}, {"tp"}]>]
  %0 = graph.dot_general %x, %up contract [1] x [1] : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
  // CHECK: graph.silu {{.*}}dist.shardings = [#dist.sharding<[{"dp"}, {"tp"}]>]
  %1 = graph.silu %0 : tensor<8x64xf32>
  %down = graph.read @down : tensor<16x64xf32>
  // CHECK: %[[PARTS:.*]] = graph.dot_general {{.*}}dist.shardings = [#dist.sharding<[{"dp"}, {}], unreduced = {"tp"}>]
  %2 = graph.dot_general %1, %down contract [1] x [1] : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: %[[SUM:.*]] = dist.reshard %[[PARTS]] to <[{"dp"}, {}]> why "propagate-shardings: sum of partial products, whose contraction is sharded over tp"
  // CHECK-NEXT: arith.addf %{{.*}}, %[[SUM]]
  %3 = arith.addf %x, %2 : tensor<8x16xf32>
  // What is returned is whole on every rank.
  // CHECK: dist.reshard %{{.*}} to <[{}, {}]> why "propagate-shardings: graph.return needs it sharded otherwise"
  graph.return %3 : tensor<8x16xf32>
}

// -----

// Gradients are summed over microbatches first, and over ranks where they are read.
dist.mesh @mesh ["dp"] [2]
graph.param @w : tensor<4x4xf32> init(#graph.normal<0.02>) key("w") {dist.sharding = #dist.sharding<[{}, {}]>}
// CHECK: graph.state @w.grad accumulator of @w {{.*}}dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>
graph.state @w.grad accumulator of @w : tensor<4x4xf32> init(#graph.fill<0.0>)

// CHECK-LABEL: graph.func @microbatch
graph.func @microbatch(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) {
  // CHECK-NOT: dist.reshard
  %0 = graph.dot_general %x, %x contract [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = graph.read @w.grad : tensor<4x4xf32>
  %2 = arith.addf %1, %0 : tensor<4x4xf32>
  graph.write @w.grad, %2 : tensor<4x4xf32>
  graph.return
}

// CHECK-LABEL: graph.func @update
graph.func @update() {
  // CHECK: %[[GRAD:.*]] = graph.read @w.grad
  // CHECK-NEXT: %[[SUM:.*]] = dist.reshard %[[GRAD]] to <[{}, {}]>
  // CHECK: arith.subf %{{.*}}, %[[SUM]]
  %0 = graph.read @w.grad : tensor<4x4xf32>
  %1 = graph.read @w : tensor<4x4xf32>
  %2 = arith.subf %1, %0 : tensor<4x4xf32>
  graph.write @w, %2 : tensor<4x4xf32>
  graph.return
}

// -----

// Parts that are only added are completed once; a scalar that is repeated is made anew for each user, in its pieces.
dist.mesh @mesh ["tp"] [2]
graph.param @a : tensor<8x4xf32> init(#graph.normal<0.02>) key("a") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.param @b : tensor<8x4xf32> init(#graph.normal<0.02>) key("b") {dist.sharding = #dist.sharding<[{}, {}]>}

// CHECK-LABEL: graph.func @completed_once
graph.func @completed_once(%x: tensor<2x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}, %s: tensor<f32>) -> tensor<2x4xf32> {
  %a = graph.read @a : tensor<8x4xf32>
  %b = graph.read @b : tensor<8x4xf32>
  %0 = graph.broadcast %s dims [] : (tensor<f32>) -> tensor<8x4xf32>
  // CHECK: arith.mulf {{.*}}dist.shardings = [#dist.sharding<[{"tp"}, {}]>]
  %1 = arith.mulf %a, %0 : tensor<8x4xf32>
  // CHECK: arith.mulf {{.*}}dist.shardings = [#dist.sharding<[{}, {}]>]
  %2 = arith.mulf %b, %0 : tensor<8x4xf32>
  graph.write @b, %2 : tensor<8x4xf32>
  // CHECK-COUNT-2: graph.dot_general {{.*}}unreduced = {"tp"}
  %3 = graph.dot_general %x, %a contract [1] x [0] : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %4 = graph.dot_general %x, %1 contract [1] x [0] : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: %[[ADDED:.*]] = arith.addf {{.*}}unreduced = {"tp"}
  // CHECK-NEXT: dist.reshard %[[ADDED]] to <[{}, {}]>
  %5 = arith.addf %3, %4 : tensor<2x4xf32>
  // CHECK-NOT: dist.reshard
  graph.return %5 : tensor<2x4xf32>
}

// -----

// Parts of a maximum do not add up: the whole is gathered first. What a person reshards stays so.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: graph.func @maximum
graph.func @maximum(%x: tensor<2x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}) -> tensor<2xf32> {
  // CHECK: %[[WHOLE:.*]] = dist.reshard %{{.*}} to <[{}, {}]> why "propagate-shardings: graph.reduce needs it sharded otherwise"
  // CHECK: graph.reduce max %[[WHOLE]]
  %0 = graph.reduce max %x dims [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  // CHECK: %[[CUT:.*]] = dist.reshard %{{.*}} to <[{"tp"}]>
  // CHECK: arith.negf %[[CUT]] {dist.shardings = [#dist.sharding<[{"tp"}]>]}
  %1 = dist.reshard %0 to <[{"tp"}]> : tensor<2xf32>
  %2 = arith.negf %1 : tensor<2xf32>
  graph.return %2 : tensor<2xf32>
}

// -----

// A constant that is added in each microbatch is added once, and not once per rank.
dist.mesh @mesh ["dp"] [2]
// CHECK: graph.state @count accumulator {{.*}}dist.sharding = #dist.sharding<[]>
graph.state @count accumulator : tensor<f32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func @counted
graph.func @counted(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"dp"}]>}) {
  // CHECK: %[[PARTS:.*]] = graph.reduce sum {{.*}}unreduced = {"dp"}
  // CHECK-NEXT: %[[SUM:.*]] = dist.reshard %[[PARTS]] to <[]>
  // CHECK: arith.addf %[[SUM]]
  %0 = graph.reduce sum %x dims [0] : (tensor<8xf32>) -> tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %1 = arith.addf %0, %one : tensor<f32>
  %2 = graph.read @count : tensor<f32>
  %3 = arith.addf %2, %1 : tensor<f32>
  graph.write @count, %3 : tensor<f32>
  graph.return
}

// -----

// An axis goes only where it divides, and not between the elements of a norm.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: graph.func @blocked
graph.func @blocked(%x: tensor<2x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}, %scale: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: %[[WHOLE:.*]] = dist.reshard %{{.*}} to <[{}, {}]> why "propagate-shardings: graph.rms_norm needs it sharded otherwise"
  // CHECK: graph.rms_norm %[[WHOLE]]
  %0 = graph.rms_norm %x, %scale eps 1.0e-05 : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  graph.return %0 : tensor<2x8xf32>
}

// -----

// A state of a parameter is in the parameter's shards, whatever its own gradient would propagate: sizes were padded for
// the axes of the parameter.
dist.mesh @mesh ["tp"] [2]
graph.param @w : tensor<4x8xf32> init(#graph.normal<0.02>) key("w") {dist.sharding = #dist.sharding<[{"tp"}, {}]>, dist.view = array<i64: 3, 8>}
// CHECK: graph.state @w.grad accumulator of @w {{.*}}dist.sharding = #dist.sharding<[{"tp"}, {}]>
graph.state @w.grad accumulator of @w : tensor<4x8xf32> init(#graph.fill<0.0>) {dist.view = array<i64: 3, 8>}

// CHECK-LABEL: graph.func @accumulate
graph.func @accumulate(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}) {
  %0 = graph.read @w.grad : tensor<4x8xf32>
  // CHECK: %[[PART:.*]] = dist.reshard %{{.*}} to <[{"tp"}, {}]>
  // CHECK: arith.addf %{{.*}}, %[[PART]]
  %1 = arith.addf %0, %x : tensor<4x8xf32>
  graph.write @w.grad, %1 : tensor<4x8xf32>
  graph.return
}

// -----

// The outer part of the columns is behind whole rows in the result, so that it is whole; then so is the inner part, which
// is behind it in the operand.
dist.mesh @mesh ["a", "b"] [2, 2]
// CHECK-LABEL: graph.func @behind_whole_rows
graph.func @behind_whole_rows(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<[{}, {"a", "b"}]>}) -> tensor<32x4xf32> {
  // CHECK: %[[WHOLE:.*]] = dist.reshard %{{.*}} to <[{}, {}]> why "propagate-shardings: graph.reshape needs it sharded otherwise"
  // CHECK: graph.reshape %[[WHOLE]] {dist.shardings = [#dist.sharding<[{}, {}]>]}
  %0 = graph.reshape %x : (tensor<16x8xf32>) -> tensor<32x4xf32>
  graph.return %0 : tensor<32x4xf32>
}
