// A parameter that is only used rounded is kept whole as rounded, and in full precision as a shard: 10 elements over 3
// ranks. One that is used in full precision too, here @both, stays whole.
// RUN: bowline-opt %s --apply-zero --canonicalize --cse 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: sed 's/level 1/level 2/' %s > %t.2.mlir
// RUN: bowline-opt %t.2.mlir --apply-zero --canonicalize --cse | FileCheck %s
// With level 3 there are no copies: shards are rounded before each gather.
// RUN: sed 's/level 1/level 3/' %s > %t.3.mlir
// RUN: bowline-opt %t.3.mlir --apply-zero --canonicalize --cse | FileCheck %s --check-prefix=THREE
// THREE-NOT: mirror_of

// @w: 40 bytes became 16 of f32 and 20 of bf16. Sent: 2 * 16 for the sums of @w and @both, 2 * 8 for the new @w in bf16
// and 2 * 16 for @both.
// REMARK: remark: {{.*}}ZeRO 1 along the 3 ranks of "dp": a rank keeps 156 bytes of parameters and states instead of 160 and sends 112 bytes in a step instead of 106
dist.strategy @strategy {
  mesh @mesh ["dp"] [3]
  zero level 1 axis "dp"
}
dist.mesh @mesh ["dp"] [3]

// CHECK: graph.param @w : tensor<4xf32> init(#graph.normal<1.0>) key("w") {dist.flat_axes = ["dp"], dist.flat_shape = array<i64: 2, 5>, dist.global_shape = array<i64: 2, 5>
// CHECK-NEXT: graph.param @w.bf16 : tensor<2x5xbf16> init(#graph.normal<1.0>) key("w") mirror_of @w {dist.global_shape = array<i64: 2, 5>, {{.*}}}
graph.param @w : tensor<2x5xf32> init(#graph.normal<1.0>) key("w")
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
// CHECK-NEXT: graph.param @both : tensor<2x5xf32>
// CHECK-NOT: both.bf16
graph.param @both : tensor<2x5xf32> init(#graph.normal<1.0>) key("both")
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
graph.state @w.grad accumulator of @w : tensor<2x5xf32> init(#graph.fill<0.0>)
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>}
graph.state @both.grad accumulator of @both : tensor<2x5xf32> init(#graph.fill<0.0>)
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>}

// CHECK-LABEL: graph.func @use
// CHECK: %[[W:.*]] = graph.read @w.bf16 : tensor<2x5xbf16>
// CHECK-NEXT: graph.dot_general %{{.*}}, %[[W]]
// CHECK: %[[BOTH:.*]] = graph.read @both : tensor<2x5xf32>
// CHECK: arith.truncf %[[BOTH]]
// THREE-LABEL: graph.func @use
// THREE: %[[W:.*]] = graph.read @w : tensor<4xf32>
// THREE: %[[SMALL:.*]] = arith.truncf %[[W]] : tensor<4xf32> to tensor<4xbf16>
// THREE: dist.all_gather %[[SMALL]]
graph.func @use(%x: tensor<3x2xbf16>) -> (tensor<3x5xbf16>, tensor<2x5xf32>, tensor<3x5xbf16>) {
  %w = graph.read @w : tensor<2x5xf32>
  %small = arith.truncf %w : tensor<2x5xf32> to tensor<2x5xbf16>
  %y = graph.dot_general %x, %small contract [1] x [0] : (tensor<3x2xbf16>, tensor<2x5xbf16>) -> tensor<3x5xbf16>
  %both = graph.read @both : tensor<2x5xf32>
  %twice = arith.addf %both, %both : tensor<2x5xf32>
  %rounded = arith.truncf %both : tensor<2x5xf32> to tensor<2x5xbf16>
  %z = graph.dot_general %x, %rounded contract [1] x [0] : (tensor<3x2xbf16>, tensor<2x5xbf16>) -> tensor<3x5xbf16>
  graph.return %y, %twice, %z : tensor<3x5xbf16>, tensor<2x5xf32>, tensor<3x5xbf16>
}

// CHECK-LABEL: graph.func @update
// CHECK: %[[OLD:.*]] = graph.read @w : tensor<4xf32>
// CHECK: %[[NEW:.*]] = arith.subf %[[OLD]], %{{.*}} : tensor<4xf32>
// CHECK: %[[SHARD:.*]] = arith.truncf %[[NEW]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: %[[ALL:.*]] = dist.all_gather %[[SHARD]] dim 0 over ["dp"] why "apply-zero: the new value of 'w.bf16'" : tensor<4xbf16> -> tensor<12xbf16>
// CHECK: graph.write @w, %[[NEW]] : tensor<4xf32>
// CHECK: graph.write @w.bf16, %{{.*}} : tensor<2x5xbf16>
// CHECK: dist.all_gather %{{.*}} why "apply-zero: the new value of 'both'" : tensor<4xf32> -> tensor<12xf32>
graph.func @update() {
  %g = graph.read @w.grad : tensor<2x5xf32>
  %grad = dist.all_reduce sum %g over ["dp"] why "sum" : tensor<2x5xf32>
  %w = graph.read @w : tensor<2x5xf32>
  %next = arith.subf %w, %grad : tensor<2x5xf32>
  graph.write @w, %next : tensor<2x5xf32>
  %h = graph.read @both.grad : tensor<2x5xf32>
  %other = dist.all_reduce sum %h over ["dp"] why "sum" : tensor<2x5xf32>
  %both = graph.read @both : tensor<2x5xf32>
  %nextBoth = arith.subf %both, %other : tensor<2x5xf32>
  graph.write @both, %nextBoth : tensor<2x5xf32>
  graph.return
}

// Each rank draws its shard, and the whole for the copy.
// CHECK-LABEL: graph.func @initialize
// CHECK-DAG: %[[WHOLE:.*]] = graph.random normal(1.0) seed(0) stream(1) : tensor<2x5xf32>
// CHECK-DAG: %[[SMALL:.*]] = arith.truncf %[[WHOLE]]
// CHECK-DAG: graph.write @w.bf16, %[[SMALL]] : tensor<2x5xbf16>
// CHECK-DAG: graph.write @w, %{{.*}} : tensor<4xf32>
graph.func @initialize() {
  %w = graph.random normal(1.0) seed(0) stream(1) : tensor<2x5xf32>
  graph.write @w, %w : tensor<2x5xf32>
  graph.write @both, %w : tensor<2x5xf32>
  graph.return
}
graph.entry train_step @train_step [@update] repeat [1]
