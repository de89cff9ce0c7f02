// What an epilogue computes from stored values is computed again without the matrix product.
// RUN: bowline-opt %s --add-strategy=recompute=selective --recompute | FileCheck %s

// CHECK: %[[FORWARD:.*]]:2 = graph.fusion(%arg0, %{{.*}}, %arg1)
// CHECK: graph.write @loss_sum
// CHECK: %[[AGAIN:.*]] = graph.fusion(%arg1, %[[FORWARD]]#0)
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: tensor<512x64xf32>, %[[UP:.*]]: tensor<512x64xf32>):
// CHECK-NEXT: %[[ACTIVE:.*]] = graph.silu %[[GATE]]
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[ACTIVE]], %[[UP]]
// CHECK-NEXT: graph.yield %[[PRODUCT]]
// CHECK: graph.dot_general %[[AGAIN]], %[[FORWARD]]#0 contract [0] x [0]
graph.param @w : tensor<64x64xf32> init(#graph.fill<1.0>) key("w")
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.state @w.grad accumulator of @w : tensor<64x64xf32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch(%arg0: tensor<512x64xf32>, %arg1: tensor<512x64xf32>) {
  %w = graph.read @w : tensor<64x64xf32>
  %swiglu:2 = graph.fusion(%arg0, %w, %arg1) : (tensor<512x64xf32>, tensor<64x64xf32>, tensor<512x64xf32>) -> (tensor<512x64xf32>, tensor<512x64xf32>) {
  ^bb0(%x: tensor<512x64xf32>, %weight: tensor<64x64xf32>, %gate: tensor<512x64xf32>):
    %up = graph.dot_general %x, %weight contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
    %active = graph.silu %gate : tensor<512x64xf32>
    %product = arith.mulf %active, %up : tensor<512x64xf32>
    graph.yield %up, %product : tensor<512x64xf32>, tensor<512x64xf32>
  }
  %loss = graph.reduce sum %swiglu#1 dims [0, 1] : (tensor<512x64xf32>) -> tensor<f32>
  graph.write @loss_sum, %loss : tensor<f32>
  %grad = graph.dot_general %swiglu#1, %swiglu#0 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  graph.write @w.grad, %grad : tensor<64x64xf32>
  graph.return
}
