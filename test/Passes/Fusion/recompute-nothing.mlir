// Where nothing is computed again, the line of the strategy says why.
// RUN: bowline-opt %s --recompute --split-input-file --verify-diagnostics | FileCheck %s

// The peak is where the gradient of w is made, and nothing of the forward pass is alive.
// CHECK-COUNT-1: math.tanh
// CHECK-NOT: math.tanh
dist.strategy @s {
  // expected-remark @+1 {{recompute full: nothing runs again, as none of the values that are alive at the peak could be computed again, so that it would take time and free nothing; about 0.8 MiB of values at the peak}}
  recompute "full"
}
graph.param @w : tensor<256x256xf32> init(#graph.fill<1.0>) key("w")
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.state @w.grad accumulator of @w : tensor<256x256xf32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch(%arg0: tensor<4x256xf32>) {
  %w = graph.read @w : tensor<256x256xf32>
  %h = graph.dot_general %arg0, %w contract [1] x [0] : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
  %x = graph.fusion(%h) : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%a: tensor<4x256xf32>):
    %t = math.tanh %a : tensor<4x256xf32>
    graph.yield %t : tensor<4x256xf32>
  }
  %sum = graph.reduce sum %x dims [0, 1] : (tensor<4x256xf32>) -> tensor<f32>
  %old = graph.read @loss_sum : tensor<f32>
  %new = arith.addf %old, %sum : tensor<f32>
  graph.write @loss_sum, %new : tensor<f32>
  %g = graph.dot_general %arg0, %x contract [0] x [0] : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<256x256xf32>
  %double = arith.addf %g, %g : tensor<256x256xf32>
  %square = arith.mulf %double, %double : tensor<256x256xf32>
  %cube = arith.mulf %square, %double : tensor<256x256xf32>
  %more = arith.addf %cube, %square : tensor<256x256xf32>
  graph.write @w.grad, %more : tensor<256x256xf32>
  graph.return
}
