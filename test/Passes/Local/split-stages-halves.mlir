// Where backwards are split, gradients of matrices come later. Gradients for the stage before come first, and so do sums:
// the gradient of a bias needs no operand until later.
// RUN: bowline-opt %s --split-stages | FileCheck %s

// CHECK-LABEL: module @stage0
// The first stage sends nothing down.
// CHECK-NOT: @backward_input.0
// CHECK: graph.func backward_weight @backward_weight.0(
// CHECK: graph.write @a.grad
// CHECK-LABEL: module @stage1
// CHECK-LABEL: graph.func backward_input @backward_input.1(
// CHECK-NOT: @c.grad
// CHECK: graph.write @stash.backward_input.1.0
// CHECK-NOT: @c.grad
// CHECK: graph.write @b.grad
// CHECK: graph.func backward_weight @backward_weight.1(
// CHECK-NOT: @b.grad
// CHECK: graph.write @c.grad

module attributes {plan.seed = 7 : i64, stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
    schedule "zb_h1"
    microbatches 2
  }
  graph.param @a : tensor<2x4xf32> init(#graph.fill<1.0>) key("a")
  graph.param @b : tensor<2x4xf32> init(#graph.fill<1.0>) key("b")
  graph.param @c : tensor<4x4xf32> init(#graph.fill<1.0>) key("c")
  graph.state @a.grad accumulator of @a : tensor<2x4xf32> init(#graph.fill<0.0>)
  graph.state @b.grad accumulator of @b : tensor<2x4xf32> init(#graph.fill<0.0>)
  graph.state @c.grad accumulator of @c : tensor<4x4xf32> init(#graph.fill<0.0>)
  graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
  graph.state @token_count accumulator : tensor<f32> init(#graph.fill<0.0>)

  graph.func microbatch @train_microbatch(%x: tensor<2x4xf32> {graph.name = "x"}, %y: tensor<2x4xf32> {graph.name = "y"}) {
    %a = graph.read @a : tensor<2x4xf32>
    %0 = arith.mulf %x, %a : tensor<2x4xf32>
    %1 = stage.transfer %0 from 0 to 1 : tensor<2x4xf32>
    %c = graph.read @c : tensor<4x4xf32>
    %b = graph.read @b : tensor<2x4xf32>
    %2 = graph.dot_general %1, %c contract [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = arith.addf %2, %b : tensor<2x4xf32>
    %4 = arith.mulf %3, %y : tensor<2x4xf32>
    %5 = graph.reduce sum %4 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %6 = arith.mulf %y, %3 : tensor<2x4xf32>
    %7 = graph.dot_general %6, %c contract [1] x [1] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %8 = stage.transfer %7 from 1 to 0 : tensor<2x4xf32>
    %9 = arith.mulf %8, %x : tensor<2x4xf32>
    %10 = graph.dot_general %1, %6 contract [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %a.grad = graph.read @a.grad : tensor<2x4xf32>
    %11 = arith.addf %a.grad, %9 : tensor<2x4xf32>
    graph.write @a.grad, %11 : tensor<2x4xf32>
    %b.grad = graph.read @b.grad : tensor<2x4xf32>
    %12 = arith.addf %b.grad, %6 : tensor<2x4xf32>
    graph.write @b.grad, %12 : tensor<2x4xf32>
    %c.grad = graph.read @c.grad : tensor<4x4xf32>
    %13 = arith.addf %c.grad, %10 : tensor<4x4xf32>
    graph.write @c.grad, %13 : tensor<4x4xf32>
    %loss_sum = graph.read @loss_sum : tensor<f32>
    %14 = arith.addf %loss_sum, %5 : tensor<f32>
    graph.write @loss_sum, %14 : tensor<f32>
    %token_count = graph.read @token_count : tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %15 = arith.addf %token_count, %one : tensor<f32>
    graph.write @token_count, %15 : tensor<f32>
    graph.return
  }
  graph.func update @train_update() -> (tensor<f32>, tensor<f32>) {
    %loss_sum = graph.read @loss_sum : tensor<f32>
    %token_count = graph.read @token_count : tensor<f32>
    %0 = arith.divf %loss_sum, %token_count : tensor<f32>
    %a.grad = graph.read @a.grad : tensor<2x4xf32>
    graph.write @a, %a.grad : tensor<2x4xf32>
    %b.grad = graph.read @b.grad : tensor<2x4xf32>
    graph.write @b, %b.grad : tensor<2x4xf32>
    %c.grad = graph.read @c.grad : tensor<4x4xf32>
    graph.write @c, %c.grad : tensor<4x4xf32>
    graph.return %0, %token_count : tensor<f32>, tensor<f32>
  }
  graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [2, 1]
}
