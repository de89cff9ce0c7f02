// What the levels change in a step with momentum: 10 elements over 3 ranks, so shards of 4 and two zeros at the end.
// RUN: bowline-opt %s --apply-zero --canonicalize --cse 2>%t.remarks | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: sed 's/level 1/level 2/' %s > %t.2.mlir
// RUN: bowline-opt %t.2.mlir --apply-zero --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: sed 's/level 1 axis "dp"/level 3 axis "dp" prefetch 2/' %s > %t.3.mlir
// RUN: bowline-opt %t.3.mlir --apply-zero --canonicalize --cse | FileCheck %s --check-prefix=THREE
// RUN: sed 's/level 1 axis "dp"/level 0/' %s > %t.0.mlir
// RUN: bowline-opt %t.0.mlir --apply-zero | FileCheck %s --check-prefix=OFF
// OFF-NOT: dist.flat_axes

// REMARK: remark: {{.*}}ZeRO 1 along the 3 ranks of "dp": a rank keeps 104 bytes of parameters and states instead of 128 and sends 74 bytes in a step instead of 58
dist.strategy @strategy {
  mesh @mesh ["dp"] [3]
  zero level 1 axis "dp"
}
dist.mesh @mesh ["dp"] [3]

// ONE: graph.param @w : tensor<2x5xf32>
// THREE: graph.param @w : tensor<4xf32> init(#graph.normal<1.0>) key("w")
// THREE-SAME: {dist.flat_axes = ["dp"], dist.flat_shape = array<i64: 2, 5>, dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
graph.param @w : tensor<2x5xf32> init(#graph.normal<1.0>) key("w")
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
// CHECK: graph.state @w.m saved of @w : tensor<4xf32>
// CHECK-SAME: {dist.flat_axes = ["dp"], dist.flat_shape = array<i64: 2, 5>, dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
graph.state @w.m saved of @w : tensor<2x5xf32> init(#graph.fill<0.0>)
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}]>}
// ONE: graph.state @w.grad accumulator of @w : tensor<2x5xf32> {{.*}}unreduced = {"dp"}>}
// TWO: graph.state @w.grad accumulator of @w : tensor<4xf32> {{.*}}dist.sharding = #dist.sharding<[{}, {}]>}
graph.state @w.grad accumulator of @w : tensor<2x5xf32> init(#graph.fill<0.0>)
  {dist.global_shape = array<i64: 2, 5>, dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>}
graph.state @loss accumulator : tensor<f32> init(#graph.fill<0.0>)
  {dist.global_shape = array<i64>, dist.sharding = #dist.sharding<[], unreduced = {"dp"}>}
graph.state @seen saved|step : tensor<i32> init(#graph.fill<0.0>)

// CHECK-LABEL: graph.func @begin
// ONE: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<2x5xf32>
// TWO: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: graph.write @w.grad, %[[ZERO]]
graph.func @begin() {
  %zero = arith.constant dense<0.0> : tensor<2x5xf32>
  graph.write @w.grad, %zero : tensor<2x5xf32>
  graph.return
}

// The gradient is scattered where it is known. With level 3 the parameter is gathered for the two uses.
// CHECK-LABEL: graph.func @microbatch
// ONE: %[[DOT:.*]] = graph.dot_general %{{.*}}, %{{.*}} contract [0] x [0]
// ONE: %[[OLD:.*]] = graph.read @w.grad : tensor<2x5xf32>
// ONE: %[[NEW:.*]] = arith.addf %[[OLD]], %[[DOT]]
// TWO: %[[DOT:.*]] = graph.dot_general %{{.*}}, %{{.*}} contract [0] x [0]
// TWO-NEXT: %[[FLAT:.*]] = graph.reshape %[[DOT]] : (tensor<2x5xf32>) -> tensor<10xf32>
// TWO-NEXT: %[[PAD:.*]] = graph.pad %[[FLAT]] low [0] high [2] : (tensor<10xf32>) -> tensor<12xf32>
// TWO-NEXT: %[[SHARD:.*]] = dist.reduce_scatter {{ *}}sum %[[PAD]] dim 0 over ["dp"] why "apply-zero: each rank adds up a shard of 'w.grad'"
// TWO: %[[OLD:.*]] = graph.read @w.grad : tensor<4xf32>
// TWO: %[[NEW:.*]] = arith.addf %[[OLD]], %[[SHARD]] : tensor<4xf32>
// CHECK: graph.write @w.grad, %[[NEW]]

// THREE-LABEL: graph.func @microbatch
// THREE: %[[W:.*]] = graph.read @w : tensor<4xf32>
// THREE: %[[ALL:.*]] = dist.all_gather %[[W]] dim 0 over ["dp"] why "apply-zero: 'w', of which each rank has a shard" {dist.prefetch = 2 : i64} : tensor<4xf32> -> tensor<12xf32>
// THREE-NEXT: %[[HEAD:.*]] = graph.slice %[[ALL]] at [0] sizes [10]
// THREE-NEXT: %[[WHOLE:.*]] = graph.reshape %[[HEAD]] : (tensor<10xf32>) -> tensor<2x5xf32>
// THREE-NEXT: graph.dot_general %{{.*}}, %[[WHOLE]]
graph.func @microbatch(%x: tensor<3x2xf32> {dist.global_shape = array<i64: 9, 2>, dist.sharding = #dist.sharding<[{"dp"}, {}]>}) {
  %w = graph.read @w : tensor<2x5xf32>
  %y = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x2xf32>, tensor<2x5xf32>) -> tensor<3x5xf32>
  %g = graph.dot_general %x, %y contract [0] x [0] : (tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  %old = graph.read @w.grad : tensor<2x5xf32>
  %new = arith.addf %old, %g : tensor<2x5xf32>
  graph.write @w.grad, %new : tensor<2x5xf32>
  graph.return
}

// Everything is computed on shards; the parameter's is a slice, and its new value is gathered; with level 3 neither.
// CHECK-LABEL: graph.func @update
// ONE: %[[G:.*]] = graph.read @w.grad : tensor<2x5xf32>
// ONE: %[[F:.*]] = graph.reshape %[[G]]
// ONE: %[[P:.*]] = graph.pad %[[F]]
// ONE: %[[GRAD:.*]] = dist.reduce_scatter {{ *}}sum %[[P]] dim 0 over ["dp"] why "norm" : tensor<12xf32> -> tensor<4xf32>
// TWO: %[[GRAD:.*]] = graph.read @w.grad : tensor<4xf32>
// CHECK: %[[SQ:.*]] = arith.mulf %[[GRAD]], %[[GRAD]] : tensor<4xf32>
// CHECK: %[[OWN:.*]] = graph.reduce sum %[[SQ]] dims [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK: %[[SUM:.*]] = dist.all_reduce {{ *}}sum %[[OWN]] over ["dp"] why "apply-zero: each rank adds up its shard" : tensor<f32>
// CHECK: %[[NORM:.*]] = math.rsqrt %[[SUM]] : tensor<f32>
// CHECK: %[[SCALE:.*]] = graph.broadcast %[[NORM]] dims [] : (tensor<f32>) -> tensor<4xf32>
// CHECK: %[[CLIPPED:.*]] = arith.mulf %[[GRAD]], %[[SCALE]] : tensor<4xf32>
// CHECK: %[[M:.*]] = graph.read @w.m : tensor<4xf32>
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[M]], %{{.*}} : tensor<4xf32>
// CHECK: %[[MOMENT:.*]] = arith.addf %[[DECAYED]], %[[CLIPPED]] : tensor<4xf32>
// CHECK: %[[W:.*]] = graph.read @w : tensor<2x5xf32>
// CHECK: %[[WF:.*]] = graph.reshape %[[W]]
// CHECK: %[[WP:.*]] = graph.pad %[[WF]]
// CHECK: %[[WS:.*]] = dist.slice %[[WP]] dim 0 over ["dp"] : tensor<12xf32> -> tensor<4xf32>
// CHECK: %[[NEXT:.*]] = arith.subf %[[WS]], %[[MOMENT]] : tensor<4xf32>
// CHECK: %[[ALL:.*]] = dist.all_gather %[[NEXT]] dim 0 over ["dp"] why "apply-zero: the new value of 'w'" : tensor<4xf32> -> tensor<12xf32>
// CHECK: %[[CUT:.*]] = graph.slice %[[ALL]] at [0] sizes [10]
// CHECK: %[[NEWW:.*]] = graph.reshape %[[CUT]]
// CHECK: graph.write @w.m, %[[MOMENT]] : tensor<4xf32>
// CHECK: graph.write @w, %[[NEWW]] : tensor<2x5xf32>
// CHECK-NOT: dist.all_gather
// CHECK: graph.return

// THREE-LABEL: graph.func @update
// THREE-NOT: dist.all_gather
// THREE: %[[W:.*]] = graph.read @w : tensor<4xf32>
// THREE: %[[NEXT:.*]] = arith.subf %[[W]], %{{.*}} : tensor<4xf32>
// THREE: graph.write @w, %[[NEXT]] : tensor<4xf32>
// THREE-NOT: dist.all_gather
// THREE: graph.return
graph.func @update() -> tensor<f32> {
  %g = graph.read @w.grad : tensor<2x5xf32>
  %grad = dist.all_reduce sum %g over ["dp"] why "norm" : tensor<2x5xf32>
  %squares = arith.mulf %grad, %grad : tensor<2x5xf32>
  %rows = graph.reduce sum %squares dims [1] : (tensor<2x5xf32>) -> tensor<2xf32>
  %sum = graph.reduce sum %rows dims [0] : (tensor<2xf32>) -> tensor<f32>
  %norm = math.rsqrt %sum : tensor<f32>
  %scale = graph.broadcast %norm dims [] : (tensor<f32>) -> tensor<2x5xf32>
  %clipped = arith.mulf %grad, %scale : tensor<2x5xf32>
  %m = graph.read @w.m : tensor<2x5xf32>
  %beta = arith.constant dense<0.9> : tensor<2x5xf32>
  %decayed = arith.mulf %m, %beta : tensor<2x5xf32>
  %moment = arith.addf %decayed, %clipped : tensor<2x5xf32>
  %w = graph.read @w : tensor<2x5xf32>
  %next = arith.subf %w, %moment : tensor<2x5xf32>
  graph.write @w.m, %moment : tensor<2x5xf32>
  graph.write @w, %next : tensor<2x5xf32>
  %l = graph.read @loss : tensor<f32>
  %loss = dist.all_reduce sum %l over ["dp"] : tensor<f32>
  graph.return %loss : tensor<f32>
}
graph.entry train_step @train_step [@begin, @microbatch, @update] repeat [1, 1, 1]

// Random values of the shard alone.
// THREE-LABEL: graph.func @initialize
// THREE: %[[PLACE:.*]] = dist.coordinate over ["dp"]
// THREE: %[[R:.*]] = graph.random normal(1.0) seed(1) stream(7) shard %[[PLACE]] along [0] of [10] : tensor<4xf32>
// THREE: graph.write @w, %[[R]] : tensor<4xf32>
graph.func @initialize() {
  %w = graph.random normal(1.0) seed(1) stream(7) : tensor<2x5xf32>
  %zero = arith.constant dense<0.0> : tensor<2x5xf32>
  graph.write @w, %w : tensor<2x5xf32>
  graph.write @w.m, %zero : tensor<2x5xf32>
  graph.return
}
