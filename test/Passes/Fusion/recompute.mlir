// Forward values are computed again right before their first backward use.
// RUN: bowline-opt %s --add-strategy=recompute=none --recompute | FileCheck %s --check-prefix=NONE
// RUN: bowline-opt %s --add-strategy=recompute=auto --recompute | FileCheck %s --check-prefix=NONE
// RUN: bowline-opt %s --add-strategy=recompute=selective --recompute | FileCheck %s --check-prefix=SELECTIVE
// RUN: bowline-opt %s --add-strategy=recompute=full --recompute | FileCheck %s --check-prefix=FULL
// RUN: bowline-opt %s --add-strategy=recompute=auto --recompute=memory-target=100000000 | FileCheck %s --check-prefix=NONE
// RUN: bowline-opt %s --add-strategy=recompute=auto --recompute=memory-target=1 | FileCheck %s --check-prefix=FULL
// RUN: bowline-opt %s --add-strategy=recompute=full --recompute -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: bowline-opt %s --add-strategy=recompute=auto --recompute=memory-target=100000000 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROOM

// NONE-COUNT-4: graph.dot_general %{{.*}}, %w contract [1] x [0]
// NONE: graph.write @loss_sum
// NONE-NOT: tanh
// NONE: graph.return

// The values after tanh come again from what the backward pass keeps anyway; products are not repeated.
// SELECTIVE: graph.write @loss_sum
// SELECTIVE: %[[G:.*]] = graph.fusion(%arg1, %{{.*}})
// SELECTIVE: math.tanh
// SELECTIVE: graph.dot_general %{{.*}}, %[[G]] contract [0] x [0]
// SELECTIVE-NOT: graph.dot_general %{{.*}}, %w contract [1] x [0]
// SELECTIVE: graph.return

// Products too, but not those of the last layer, which the backward pass begins with.
// FULL-COUNT-4: graph.dot_general %{{.*}}, %w contract [1] x [0]
// FULL: graph.write @loss_sum
// FULL: graph.dot_general %{{.*}}, %w contract [1] x [0]
// FULL: math.tanh
// FULL: graph.return

// REMARK: remark: recompute full: {{[0-9]+}} operations run again, {{.*}} MiB are not kept, {{.*}} FLOP more
// ROOM: remark: loc("--recompute auto"): recompute auto: nothing runs again, as all values fit into the memory that there is for them; about {{[0-9.]+}} MiB of values at the peak

graph.param @w : tensor<64x64xf32> init(#graph.fill<1.0>) key("w")
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.state @w.grad accumulator of @w : tensor<64x64xf32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch(%arg0: tensor<512x64xf32>, %arg1: tensor<512x64xf32>) {
  %w = graph.read @w : tensor<64x64xf32>
  %h0 = graph.dot_general %arg0, %w contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x0 = graph.fusion(%h0) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %h1 = graph.dot_general %x0, %w contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x1 = graph.fusion(%h1) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %h2 = graph.dot_general %x1, %w contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x2 = graph.fusion(%h2) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %h3 = graph.dot_general %x2, %w contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x3 = graph.fusion(%h3) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = math.tanh %a : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %loss = graph.fusion(%x3) : (tensor<512x64xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<512x64xf32>):
    %t = graph.reduce sum %a dims [0, 1] : (tensor<512x64xf32>) -> tensor<f32>
    graph.yield %t : tensor<f32>
  }
  graph.write @loss_sum, %loss : tensor<f32>
  %gh3 = graph.fusion(%arg1, %h3) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw3 = graph.dot_general %x2, %gh3 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %g3 = graph.dot_general %gh3, %w contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %gh2 = graph.fusion(%g3, %h2) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw2 = graph.dot_general %x1, %gh2 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %g2 = graph.dot_general %gh2, %w contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %s2 = graph.fusion(%gw3, %gw2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %t = arith.addf %a, %b : tensor<64x64xf32>
    graph.yield %t : tensor<64x64xf32>
  }
  %gh1 = graph.fusion(%g2, %h1) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw1 = graph.dot_general %x0, %gh1 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %g1 = graph.dot_general %gh1, %w contract [1] x [1] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %s1 = graph.fusion(%s2, %gw1) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %t = arith.addf %a, %b : tensor<64x64xf32>
    graph.yield %t : tensor<64x64xf32>
  }
  %gh0 = graph.fusion(%g1, %h0) : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<512x64xf32>):
    %t = arith.mulf %a, %b : tensor<512x64xf32>
    graph.yield %t : tensor<512x64xf32>
  }
  %gw0 = graph.dot_general %arg0, %gh0 contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  %s0 = graph.fusion(%s1, %gw0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %t = arith.addf %a, %b : tensor<64x64xf32>
    graph.yield %t : tensor<64x64xf32>
  }
  graph.write @w.grad, %s0 : tensor<64x64xf32>
  graph.return
}
