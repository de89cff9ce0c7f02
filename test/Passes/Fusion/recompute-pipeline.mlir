// Stages compute again what they need not keep; what cannot be done is not left undone in silence.
// RUN: bowline-opt %s --add-strategy=recompute=full --recompute --split-input-file --verify-diagnostics | FileCheck %s

// What another stage sent, parameters and arguments are read again; nothing else is kept, but for what is sent as well.
// CHECK-NOT: @stash.forward.0.2
// CHECK: graph.state @stash.forward.0.kept.0 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
// CHECK-NOT: kept.1
// CHECK: graph.func forward @forward.0(
// CHECK: %[[KEPT:.*]] = math.tanh
// CHECK-NEXT: graph.write @stash.forward.0.kept.0, %[[KEPT]]
// CHECK: graph.write @sent
// CHECK: graph.func backward @backward.0() attributes
// CHECK-DAG: %[[W:.*]] = graph.read @w :
// CHECK-DAG: %[[GOT:.*]] = graph.read @got
// CHECK-DAG: %[[SENT:.*]] = graph.read @sent
// CHECK-DAG: %[[TANH:.*]] = graph.read @stash.forward.0.kept.0
// CHECK-DAG: %[[G:.*]] = graph.read @gradient
// CHECK: arith.mulf %[[G]], %[[SENT]]
// CHECK: math.exp %[[TANH]]
// CHECK: arith.mulf %[[GOT]], %[[W]]
// CHECK: graph.write @w.grad
// expected-remark @+1 {{recompute full of stage 0, for 4 microbatches in flight: 2 operations run again}}
module {
  graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w")
  graph.state @w.grad accumulator of @w : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @got stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @gradient stash : tensor<4xf32> init(#graph.fill<0.0>) slots 2
  graph.state @stash.forward.0.0 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @stash.forward.0.1 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @stash.forward.0.2 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @sent stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.func forward @forward.0(%x: tensor<4xf32> {graph.name = "x"}) attributes {stage.index = array<i64: 0>} {
    %w = graph.read @w : tensor<4xf32>
    %got = graph.read @got : tensor<4xf32>
    %0 = arith.mulf %got, %w : tensor<4xf32>
    graph.write @stash.forward.0.0, %0 : tensor<4xf32>
    %1 = math.tanh %0 : tensor<4xf32>
    graph.write @stash.forward.0.1, %1 : tensor<4xf32>
    %2 = math.exp %1 : tensor<4xf32>
    graph.write @stash.forward.0.2, %2 : tensor<4xf32>
    %3 = arith.mulf %2, %x : tensor<4xf32>
    graph.write @sent, %3 : tensor<4xf32>
    graph.return
  }
  graph.func backward @backward.0() attributes {stage.index = array<i64: 0>} {
    %g = graph.read @gradient : tensor<4xf32>
    %3 = graph.read @sent : tensor<4xf32>
    %4 = arith.mulf %g, %3 : tensor<4xf32>
    %2 = graph.read @stash.forward.0.2 : tensor<4xf32>
    %5 = arith.mulf %4, %2 : tensor<4xf32>
    %1 = graph.read @stash.forward.0.1 : tensor<4xf32>
    %6 = arith.mulf %5, %1 : tensor<4xf32>
    %0 = graph.read @stash.forward.0.0 : tensor<4xf32>
    %7 = arith.mulf %6, %0 : tensor<4xf32>
    %sum = graph.read @w.grad : tensor<4xf32>
    %8 = arith.addf %sum, %7 : tensor<4xf32>
    graph.write @w.grad, %8 : tensor<4xf32>
    graph.return
  }
  graph.func @send_activation.0() {
    %3 = graph.read @sent : tensor<4xf32>
    stage.send %3 to 1 channel "activation.even" : tensor<4xf32>
    graph.return
  }
  graph.func update @update() {
    graph.return
  }
  graph.entry train_step @train_step [@forward.0, @send_activation.0, @backward.0, @update] repeat [1, 1, 1, 1]
    timeline [0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2, 0, 3, 1, 3, 2, 0, 2, 1, 2, 2, 2, 3, 3, 0] microbatches 4
}

// -----

// The first half of a divided backward pass computes again what both halves need. There are three microbatches between
// the forward pass and the first half, and two between the halves.
// CHECK: graph.state @stash.forward.0.kept.0 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 3
// CHECK: graph.func backward_weight @backward_weight.0()
// CHECK-NOT: math.exp
// CHECK: graph.read @stash.backward_input.0.kept.1
// CHECK: graph.write @w.grad
// CHECK: graph.state @stash.backward_input.0.kept.1 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 2
// CHECK: graph.func backward_input @backward_input.0()
// CHECK: %[[E:.*]] = math.exp
// CHECK: graph.write @stash.backward_input.0.kept.1, %[[E]]
// expected-remark @+1 {{recompute full of stage 0, for 4 microbatches in flight: 1 operations run again}}
module {
  graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w")
  graph.state @w.grad accumulator of @w : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @got stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @gradient stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @back stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.state @stash.forward.0.0 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 3
  graph.state @stash.forward.0.1 stash : tensor<4xf32> init(#graph.fill<0.0>) slots 4
  graph.func forward @forward.0() attributes {stage.index = array<i64: 0>} {
    %got = graph.read @got : tensor<4xf32>
    %1 = math.tanh %got : tensor<4xf32>
    graph.write @stash.forward.0.0, %1 : tensor<4xf32>
    %2 = math.exp %1 : tensor<4xf32>
    graph.write @stash.forward.0.1, %2 : tensor<4xf32>
    graph.return
  }
  graph.func backward_weight @backward_weight.0() attributes {stage.index = array<i64: 0>} {
    %2 = graph.read @stash.forward.0.1 : tensor<4xf32>
    %g = graph.read @gradient : tensor<4xf32>
    %5 = arith.mulf %g, %2 : tensor<4xf32>
    %sum = graph.read @w.grad : tensor<4xf32>
    %8 = arith.addf %sum, %5 : tensor<4xf32>
    graph.write @w.grad, %8 : tensor<4xf32>
    graph.return
  }
  graph.func backward_input @backward_input.0() attributes {stage.index = array<i64: 0>} {
    %g = graph.read @gradient : tensor<4xf32>
    %2 = graph.read @stash.forward.0.1 : tensor<4xf32>
    %5 = arith.mulf %g, %2 : tensor<4xf32>
    %1 = graph.read @stash.forward.0.0 : tensor<4xf32>
    %6 = arith.mulf %5, %1 : tensor<4xf32>
    graph.write @back, %6 : tensor<4xf32>
    graph.return
  }
  graph.func update @update() {
    graph.return
  }
  graph.entry train_step @train_step [@forward.0, @backward_weight.0, @backward_input.0, @update] repeat [1, 1, 1, 1]
    timeline [0, 0, 0, 1, 0, 2, 2, 0, 0, 3, 2, 1, 1, 0, 2, 2, 1, 1, 2, 3, 1, 2, 1, 3, 3, 0] microbatches 4
}
