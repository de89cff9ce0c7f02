// Parameters of which ranks have shards (ZeRO 3) are not kept for what is computed again, and not gathered once more for
// it: the gather of the backward part moves in front of the first clone that needs it, and both share it.
// RUN: bowline-opt %s --add-strategy='mesh=dp=2 recompute=full' --recompute | FileCheck %s
// RUN: bowline-opt %s --add-strategy='mesh=dp=2 recompute=full' --recompute -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// CHECK: %[[S0:.*]] = graph.read @w0
// CHECK: %[[S2:.*]] = graph.read @w2
// CHECK: graph.write @loss_sum
// CHECK: graph.write @w3.grad
// CHECK: %[[A2:.*]] = dist.all_gather %[[S2]] dim 0 {{.*}}, dist.repetition = 1 : i64}
// CHECK-NEXT: %[[W2:.*]] = graph.reshape %[[A2]]
// CHECK-NEXT: graph.dot_general %{{.*}}, %[[W2]] contract [1] x [0]
// CHECK: graph.write @w2.grad
// CHECK-NEXT: %[[V2:.*]] = graph.reshape %[[A2]]
// CHECK-NEXT: graph.dot_general %{{.*}}, %[[V2]] contract [1] x [1]
// The first layer's weights have no other use in the backward part.
// CHECK: %[[A0:.*]] = dist.all_gather %[[S0]] dim 0 {{.*}}, dist.repetition = -1 : i64}
// CHECK-NEXT: %[[W0:.*]] = graph.reshape %[[A0]]
// CHECK-NEXT: graph.dot_general %arg0, %[[W0]] contract [1] x [0]
// CHECK: graph.return
// REMARK: recompute full: {{[1-9][0-9]*}} operations run again

graph.param @w0 : tensor<2048xf32> init(#graph.fill<1.0>) key("w0")
graph.state @w0.grad accumulator of @w0 : tensor<2048xf32> init(#graph.fill<0.0>)
graph.param @w1 : tensor<2048xf32> init(#graph.fill<1.0>) key("w1")
graph.state @w1.grad accumulator of @w1 : tensor<2048xf32> init(#graph.fill<0.0>)
graph.param @w2 : tensor<2048xf32> init(#graph.fill<1.0>) key("w2")
graph.state @w2.grad accumulator of @w2 : tensor<2048xf32> init(#graph.fill<0.0>)
graph.param @w3 : tensor<2048xf32> init(#graph.fill<1.0>) key("w3")
graph.state @w3.grad accumulator of @w3 : tensor<2048xf32> init(#graph.fill<0.0>)
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
dist.mesh @mesh ["dp"] [2]
graph.func microbatch @train_microbatch(%x0: tensor<512x64xf32>, %d4: tensor<512x64xf32>) {
  %w0 = graph.read @w0 : tensor<2048xf32>
  %w1 = graph.read @w1 : tensor<2048xf32>
  %w2 = graph.read @w2 : tensor<2048xf32>
  %w3 = graph.read @w3 : tensor<2048xf32>
  %g0 = dist.all_gather %w0 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %g0v = graph.reshape %g0 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %h0 = graph.dot_general %x0, %g0v contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x1 = graph.fusion(%h0) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %g1 = dist.all_gather %w1 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %g1v = graph.reshape %g1 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %h1 = graph.dot_general %x1, %g1v contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x2 = graph.fusion(%h1) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %g2 = dist.all_gather %w2 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %g2v = graph.reshape %g2 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %h2 = graph.dot_general %x2, %g2v contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x3 = graph.fusion(%h2) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %g3 = dist.all_gather %w3 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %g3v = graph.reshape %g3 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %h3 = graph.dot_general %x3, %g3v contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x4 = graph.fusion(%h3) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %loss = graph.fusion(%x4) : (tensor<512x64xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = graph.reduce sum %a dims [0, 1] : (tensor<512x64xf32>) -> tensor<f32>
    graph.yield %t : tensor<f32>
  }
  graph.write @loss_sum, %loss : tensor<f32>
  %e3 = graph.fusion(%d4, %h3) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw3 = graph.dot_general %x3, %e3 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %gf3 = graph.reshape %gw3 : (tensor<64x64xf32>) -> tensor<4096xf32>
  %r3 = dist.reduce_scatter sum %gf3 dim 0 over ["dp"] : tensor<4096xf32> -> tensor<2048xf32>
  graph.write @w3.grad, %r3 : tensor<2048xf32>
  %again3 = dist.all_gather %w3 dim 0 over ["dp"] {dist.prefetch = 1 : i64, dist.repetition = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %again3v = graph.reshape %again3 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %d3 = graph.dot_general %e3, %again3v contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %e2 = graph.fusion(%d3, %h2) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw2 = graph.dot_general %x2, %e2 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %gf2 = graph.reshape %gw2 : (tensor<64x64xf32>) -> tensor<4096xf32>
  %r2 = dist.reduce_scatter sum %gf2 dim 0 over ["dp"] : tensor<4096xf32> -> tensor<2048xf32>
  graph.write @w2.grad, %r2 : tensor<2048xf32>
  %again2 = dist.all_gather %w2 dim 0 over ["dp"] {dist.prefetch = 1 : i64, dist.repetition = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %again2v = graph.reshape %again2 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %d2 = graph.dot_general %e2, %again2v contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %e1 = graph.fusion(%d2, %h1) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw1 = graph.dot_general %x1, %e1 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %gf1 = graph.reshape %gw1 : (tensor<64x64xf32>) -> tensor<4096xf32>
  %r1 = dist.reduce_scatter sum %gf1 dim 0 over ["dp"] : tensor<4096xf32> -> tensor<2048xf32>
  graph.write @w1.grad, %r1 : tensor<2048xf32>
  %again1 = dist.all_gather %w1 dim 0 over ["dp"] {dist.prefetch = 1 : i64, dist.repetition = 1 : i64} : tensor<2048xf32> -> tensor<4096xf32>
  %again1v = graph.reshape %again1 : (tensor<4096xf32>) -> tensor<64x64xf32>
  %d1 = graph.dot_general %e1, %again1v contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %e0 = graph.fusion(%d1, %h0) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw0 = graph.dot_general %x0, %e0 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %gf0 = graph.reshape %gw0 : (tensor<64x64xf32>) -> tensor<4096xf32>
  %r0 = dist.reduce_scatter sum %gf0 dim 0 over ["dp"] : tensor<4096xf32> -> tensor<2048xf32>
  graph.write @w0.grad, %r0 : tensor<2048xf32>
  graph.return
}
