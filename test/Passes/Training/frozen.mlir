// A frozen parameter starts and is saved as others are, and is read: it has no gradient, no moments and no update.
// RUN: bowline-opt %s --differentiate --insert-optimizer --insert-init | FileCheck %s --implicit-check-not=@scale.

// CHECK: graph.param frozen @scale
// CHECK: graph.state @w.m saved of @w
// CHECK: graph.state @w.grad accumulator of @w
// CHECK-LABEL: graph.func microbatch @train_microbatch
// CHECK: graph.read @scale
// CHECK: graph.write @w.grad
// CHECK-LABEL: graph.func update @train_update
// CHECK-NOT: @scale
// CHECK-LABEL: graph.func @initialize
// CHECK: graph.write @scale
// CHECK: graph.write @w
graph.param frozen @scale : tensor<3xf32> init(#graph.fill<2.0>) key("scale")
graph.param @w : tensor<3xf32> init(#graph.normal<0.02>) key("w")
graph.func loss @loss(%x: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
  %count = arith.constant dense<3.0> : tensor<f32>
  %scale = graph.read @scale : tensor<3xf32>
  %w = graph.read @w : tensor<3xf32>
  %scaled = arith.mulf %w, %scale : tensor<3xf32>
  %y = arith.mulf %scaled, %x : tensor<3xf32>
  %sum = graph.reduce sum %y dims [0] : (tensor<3xf32>) -> tensor<f32>
  graph.return %sum, %count : tensor<f32>, tensor<f32>
}
