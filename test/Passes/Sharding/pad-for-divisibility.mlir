// Dimensions grow until their axes divide them, and nothing that is computed changes.
// RUN: bowline-opt %s --pad-for-divisibility --canonicalize --cse --split-input-file | FileCheck %s

// Columns of a feed-forward network: zeros give zeros through activations and products, so that nothing is masked.
dist.mesh @mesh ["tp"] [4]
// CHECK-LABEL: dist.mesh
// CHECK: graph.param @up : tensor<8x4xf32> {{.*}} {dist.sharding = #dist.sharding<[{"tp"}, {}]>, dist.view = array<i64: 6, 4>}
graph.param @up : tensor<6x4xf32> init(#graph.normal<0.02>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
// CHECK: graph.param @bias : tensor<8xf32> {{.*}} {dist.view = array<i64: 6>}
graph.param @bias : tensor<6xf32> init(#graph.fill<0.0>) key("bias")
// CHECK: graph.param @down : tensor<4x8xf32> {{.*}} {dist.view = array<i64: 4, 6>}
graph.param @down : tensor<4x6xf32> init(#graph.normal<0.02>) key("down")
// CHECK: graph.state @up.m saved of @up : tensor<8x4xf32> {{.*}} {dist.view = array<i64: 6, 4>}
graph.state @up.m saved of @up : tensor<6x4xf32> init(#graph.fill<0.0>)
// CHECK: graph.func @mlp
// CHECK-NOT: arith.select
graph.func @mlp(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %up = graph.read @up : tensor<6x4xf32>
  %bias = graph.read @bias : tensor<6xf32>
  %down = graph.read @down : tensor<4x6xf32>
  // CHECK: graph.dot_general {{.*}} (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %0 = graph.dot_general %x, %up contract [1] x [1] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  %1 = graph.broadcast %bias dims [1] : (tensor<6xf32>) -> tensor<2x6xf32>
  %2 = arith.addf %0, %1 : tensor<2x6xf32>
  // CHECK: graph.gelu tanh {{.*}} : tensor<2x8xf32>
  %3 = graph.gelu tanh %2 : tensor<2x6xf32>
  // CHECK: graph.dot_general {{.*}} (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  %4 = graph.dot_general %3, %down contract [1] x [1] : (tensor<2x6xf32>, tensor<4x6xf32>) -> tensor<2x4xf32>
  // CHECK: graph.return
  graph.return %4 : tensor<2x4xf32>
}
// AdamW of zeros is zero, whatever the numbers that it is scaled by.
// CHECK: graph.func @update
// CHECK-NOT: arith.select
// CHECK: graph.write @up.m, %{{.*}} : tensor<8x4xf32>
// CHECK: graph.write @up, %{{.*}} : tensor<8x4xf32>
graph.func @update(%rate: tensor<f32>) {
  %up = graph.read @up : tensor<6x4xf32>
  %m = graph.read @up.m : tensor<6x4xf32>
  %epsilon = arith.constant dense<1.0e-8> : tensor<6x4xf32>
  %rates = graph.broadcast %rate dims [] : (tensor<f32>) -> tensor<6x4xf32>
  %0 = arith.mulf %m, %rates : tensor<6x4xf32>
  %1 = arith.mulf %0, %0 : tensor<6x4xf32>
  %2 = math.sqrt %1 : tensor<6x4xf32>
  %3 = arith.addf %2, %epsilon : tensor<6x4xf32>
  %4 = arith.divf %0, %3 : tensor<6x4xf32>
  %5 = arith.subf %up, %4 : tensor<6x4xf32>
  graph.write @up.m, %0 : tensor<6x4xf32>
  graph.write @up, %5 : tensor<6x4xf32>
  graph.return
}
// Random numbers are those of the whole without padding, and none is in the padding.
// CHECK: graph.func @initialize
// CHECK-NOT: arith.select
// CHECK: graph.random normal(0.02) seed(1) stream(2) of [6, 4] : tensor<8x4xf32>
graph.func @initialize() {
  %0 = graph.random normal(0.02) seed(1) stream(2) : tensor<6x4xf32>
  graph.write @up, %0 : tensor<6x4xf32>
  graph.return
}

// -----

// Classes that do not exist have logits that no softmax sees; the gradient there is zero.
dist.mesh @mesh ["tp"] [4]
// CHECK-LABEL: dist.mesh
// CHECK: graph.param @head : tensor<8x4xf32> {{.*}}dist.view = array<i64: 7, 4>
graph.param @head : tensor<7x4xf32> init(#graph.normal<0.02>) key("head") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.state @head.grad accumulator of @head : tensor<7x4xf32> init(#graph.fill<0.0>)
// CHECK: graph.func loss @loss
graph.func loss @loss(%x: tensor<2x4xf32>, %labels: tensor<2xi32>, %ids: tensor<2xi32>) -> (tensor<2xf32>, tensor<2x7xf32>) {
  // CHECK-DAG: %[[ABSENT:.*]] = arith.constant dense<-1.000000e+30> : tensor<2x8xf32>
  // CHECK-DAG: %[[CLASSES:.*]] = arith.constant dense<7> : tensor<2x8xi32>
  // CHECK: %[[LOGITS:.*]] = graph.dot_general {{.*}} -> tensor<2x8xf32>
  // CHECK: %[[IOTA:.*]] = graph.iota dim 0 : tensor<8xi32>
  // CHECK: %[[CLASS:.*]] = graph.broadcast %[[IOTA]] dims [1] : (tensor<8xi32>) -> tensor<2x8xi32>
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[CLASS]], %[[CLASSES]] : tensor<2x8xi32>
  // CHECK: %[[MASKED:.*]] = arith.select %[[EXISTS]], %[[LOGITS]], %[[ABSENT]]
  // CHECK-NOT: arith.select
  // CHECK: graph.softmax_cross_entropy %[[MASKED]], %{{.*}}
  // CHECK: %[[GRAD:.*]] = graph.softmax_cross_entropy_grad %[[MASKED]]
  // CHECK: graph.dot_general %[[GRAD]], {{.*}} -> tensor<8x4xf32>
  %head = graph.read @head : tensor<7x4xf32>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %logits = graph.dot_general %x, %head contract [1] x [1] : (tensor<2x4xf32>, tensor<7x4xf32>) -> tensor<2x7xf32>
  %loss, %logsumexp = graph.softmax_cross_entropy %logits, %labels : (tensor<2x7xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  %grad = graph.softmax_cross_entropy_grad %logits, %labels, %logsumexp, %ones : (tensor<2x7xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x7xf32>
  %1 = graph.dot_general %grad, %x contract [0] x [0] : (tensor<2x7xf32>, tensor<2x4xf32>) -> tensor<7x4xf32>
  // Rows that are looked up are those that exist.
  // CHECK: graph.gather %head[%{{.*}}] : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  // CHECK: %[[ROWS:.*]] = graph.scatter_add {{.*}} -> tensor<8x4xf32>
  %rows = graph.gather %head[%ids] : (tensor<7x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  %2 = graph.scatter_add %rows at %ids : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<7x4xf32>
  %3 = arith.addf %1, %2 : tensor<7x4xf32>
  // CHECK: graph.write @head.grad, %{{.*}} : tensor<8x4xf32>
  graph.write @head.grad, %3 : tensor<7x4xf32>
  // Who calls gets logits without padding.
  // CHECK: %[[RESULT:.*]] = graph.slice %[[LOGITS]] at [0, 0] sizes [2, 7]
  // CHECK: graph.return %{{.*}}, %[[RESULT]]
  graph.return %loss, %logits : tensor<2xf32>, tensor<2x7xf32>
}

// -----

// What is not known to be zero is masked where it would be summed or written.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: dist.mesh
graph.param @w : tensor<3xf32> init(#graph.fill<1.0>) key("w") {dist.sharding = #dist.sharding<[{"tp"}]>}
graph.state @s accumulator : tensor<3xf32> init(#graph.fill<0.0>)
// CHECK: graph.func @masked
graph.func @masked() -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<3xf32>
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
  // CHECK-DAG: %[[ABSENT:.*]] = arith.constant dense<-1.000000e+30> : tensor<4xf32>
  // CHECK: %[[COSINE:.*]] = math.cos %w
  // CHECK-DAG: %[[ZEROS:.*]] = arith.select %{{.*}}, %[[COSINE]], %[[ZERO]] : tensor<4xi1>, tensor<4xf32>
  // CHECK-DAG: %[[LOW:.*]] = arith.select %{{.*}}, %[[COSINE]], %[[ABSENT]] : tensor<4xi1>, tensor<4xf32>
  %0 = math.cos %w : tensor<3xf32>
  // CHECK: graph.reduce sum %[[ZEROS]]
  %1 = graph.reduce sum %0 dims [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: graph.reduce max %[[LOW]] dims [0]
  %2 = graph.reduce max %0 dims [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: graph.dot_general %{{.*}}, %[[ZEROS]] contract [0] x [0]
  %3 = graph.dot_general %0, %0 contract [0] x [0] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  // CHECK: graph.write @s, %[[ZEROS]]
  graph.write @s, %0 : tensor<3xf32>
  graph.return %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>
}
// Ones are written as ones that end.
// CHECK: graph.func @initialize
// CHECK: %[[ONES:.*]] = arith.select
// CHECK: graph.write @w, %[[ONES]]
graph.func @initialize() {
  %0 = arith.constant dense<1.0> : tensor<3xf32>
  graph.write @w, %0 : tensor<3xf32>
  graph.return
}

// -----

// Two tensors of one shape that share a repeated scalar have nothing else in common.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: dist.mesh
// CHECK: graph.param @a : tensor<4xf32>
graph.param @a : tensor<3xf32> init(#graph.fill<0.0>) key("a") {dist.sharding = #dist.sharding<[{"tp"}]>}
// CHECK: graph.param @b : tensor<3xf32>
graph.param @b : tensor<3xf32> init(#graph.fill<0.0>) key("b")
graph.func @shared(%scale: tensor<f32>) {
  %a = graph.read @a : tensor<3xf32>
  %b = graph.read @b : tensor<3xf32>
  %0 = graph.broadcast %scale dims [] : (tensor<f32>) -> tensor<3xf32>
  %1 = arith.mulf %0, %0 : tensor<3xf32>
  %2 = arith.mulf %a, %1 : tensor<3xf32>
  %3 = arith.mulf %b, %1 : tensor<3xf32>
  graph.write @a, %2 : tensor<3xf32>
  graph.write @b, %3 : tensor<3xf32>
  graph.return
}

// -----

// Sharded by different axes in different places, a dimension becomes one that all of them divide.
dist.mesh @mesh ["a", "b"] [2, 3]
// CHECK-LABEL: dist.mesh
// CHECK: graph.param @x : tensor<6xf32>
graph.param @x : tensor<5xf32> init(#graph.fill<0.0>) key("x") {dist.sharding = #dist.sharding<[{"a"}]>}
// CHECK: graph.param @y : tensor<6xf32>
graph.param @y : tensor<5xf32> init(#graph.fill<0.0>) key("y") {dist.sharding = #dist.sharding<[{"b"}]>}
graph.func @both() {
  %x = graph.read @x : tensor<5xf32>
  graph.write @y, %x : tensor<5xf32>
  graph.return
}
