// The function that runs per microbatch.
// RUN: bowline-opt %s --differentiate --split-input-file | FileCheck %s
// RUN: bowline-opt %s --add-strategy=microbatches=3 --differentiate --split-input-file | FileCheck %s --check-prefix=MANY
// RUN: bowline-opt %s --differentiate --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Two reads of a parameter contribute to one gradient; sums and gradients are written, not returned.
// CHECK: graph.param @w
// CHECK-NEXT: graph.state @w.grad accumulator of @w : tensor<3xf32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func loss @loss
// CHECK: graph.return %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>
// CHECK-DAG: graph.state @loss_sum accumulator : tensor<f32>
// CHECK-DAG: graph.state @token_count accumulator : tensor<f32>
// CHECK-NOT: @train_begin
// CHECK-LABEL: graph.func microbatch @train_microbatch(%x: tensor<3xf32> {graph.name = "x"}) {
// CHECK: %[[A:.*]] = graph.read @w
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %x
// CHECK: %[[B:.*]] = graph.read @w
// CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[B]]
// CHECK: %[[SUM:.*]] = graph.reduce sum %[[Q]]
// CHECK: %[[SEED:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[G:.*]] = graph.broadcast %[[SEED]]
// CHECK-DAG: %[[GP:.*]] = arith.mulf %[[G]], %[[B]]
// CHECK-DAG: %[[GB:.*]] = arith.mulf %[[G]], %[[P]]
// CHECK-DAG: %[[GA:.*]] = arith.mulf %[[GP]], %x
// CHECK: %[[GW:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3xf32>
// CHECK-NEXT: graph.write @w.grad, %[[GW]]
// CHECK: graph.write @loss_sum, %[[SUM]]
// CHECK: graph.write @token_count
// CHECK-NEXT: graph.return{{$}}

// With several microbatches accumulators are cleared once and added to.
// MANY-LABEL: graph.func begin @train_begin() {
// MANY-DAG: graph.write @w.grad
// MANY-DAG: graph.write @loss_sum
// MANY-DAG: graph.write @token_count
// MANY: graph.return
// MANY-LABEL: graph.func microbatch @train_microbatch
// MANY: %[[OLD:.*]] = graph.read @w.grad
// MANY-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}}
// MANY-NEXT: graph.write @w.grad, %[[NEW]]
// MANY: %[[OLDLOSS:.*]] = graph.read @loss_sum
// MANY-NEXT: arith.addf %[[OLDLOSS]]
// MANY: graph.read @token_count

// A gradient says whose it is.
// LOC: loc("gradient"(
graph.param @w : tensor<3xf32> init(#graph.normal<0.02>) key("w")
graph.func loss @loss(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %count = arith.constant dense<3.0> : tensor<f32>
  %a = graph.read @w : tensor<3xf32>
  %p = arith.mulf %a, %x : tensor<3xf32>
  %b = graph.read @w : tensor<3xf32>
  %q = arith.mulf %p, %b : tensor<3xf32>
  %sum = graph.reduce sum %q dims [0] : (tensor<3xf32>) -> tensor<f32>
  graph.return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// A loss that is a parameter has the gradient one.
// CHECK-LABEL: graph.func microbatch @train_microbatch
// CHECK: %[[W:.*]] = graph.read @w
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: graph.write @w.grad, %[[ONE]]
// CHECK-NEXT: graph.write @loss_sum, %[[W]]
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<f32>
  graph.return %w, %w : tensor<f32>, tensor<f32>
}
