// Two ranks, two microbatches, 1f1b: each rank has its functions, its variables and its timeline.
// RUN: bowline-opt %s --split-stages | FileCheck %s

// CHECK: module attributes {plan.seed = 7 : i64, stage.axis = "pp", stage.count = 2 : i64} {
// CHECK-NEXT: dist.mesh @mesh ["pp"] [2]
// CHECK-NEXT: dist.strategy @s {
// CHECK: module @stage0 {
// CHECK-NEXT: graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
// CHECK-NOT: @b
// CHECK-NOT: @loss_sum
// CHECK-LABEL: graph.func forward @forward.0(%x: tensor<4xf32> {graph.name = "x"}) attributes {stage.index = array<i64: 0>} {
// CHECK-NEXT: %[[A:.*]] = graph.read @a
// CHECK-NEXT: %[[H:.*]] = arith.mulf %x, %[[A]] : tensor<4xf32>
// CHECK-NEXT: graph.write @[[KEPT:.*]], %[[H]]
// CHECK-NEXT: %[[OUT:.*]] = graph.silu %[[H]]
// CHECK-NEXT: graph.write @[[SENT:.*]], %[[OUT]]
// CHECK-NEXT: graph.return
// CHECK-LABEL: graph.func backward @backward.0() attributes {stage.index = array<i64: 0>} {
// CHECK-NEXT: %[[G:.*]] = graph.read @[[RECEIVED:.*]] : tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = graph.read @[[KEPT]]
// CHECK-NEXT: arith.mulf %[[G]], %[[H]]
// An activation is computed again from what is kept.
// CHECK-NEXT: graph.silu %[[H]]
// CHECK-NOT: @[[SENT]]
// CHECK: graph.write @a.grad
// CHECK-LABEL: graph.func @receive_gradient.0() {
// CHECK-NEXT: %[[G:.*]] = stage.receive from 1 channel "gradient.odd" : tensor<4xf32>
// CHECK-NEXT: graph.write @[[RECEIVED]], %[[G]]
// CHECK-LABEL: graph.func @send_activation.0() {
// CHECK-NEXT: %[[OUT:.*]] = graph.read @[[SENT]]
// CHECK-NEXT: stage.send %[[OUT]] to 1 channel "activation.even" : tensor<4xf32>

// Scalars meet in all-reduces, in the same order everywhere; a mirror's gradient would go as %b.grad does.
// CHECK-LABEL: graph.func update @train_update() -> (tensor<f32>, tensor<f32>) {
// CHECK: %[[OWN:.*]] = graph.reduce sum
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %[[OWN]] over ["pp"] why "split-stages: sum of stages"
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[LOSS:.*]] = dist.all_reduce sum %[[ZERO]] over ["pp"] why "split-stages: to all stages"
// CHECK: %[[B:.*]] = stage.receive from 1 channel "update.1.0" : tensor<4xf32>
// CHECK-NEXT: graph.write @a, %[[B]]
// CHECK-NEXT: graph.return %[[LOSS]], %[[SUM]]

// CHECK: graph.entry train_step @train_step [@forward.0, @backward.0, @send_activation.0, @receive_gradient.0, @train_update]
// CHECK-SAME: repeat [1, 1, 1, 1, 1] timeline [0, 0, 2, 0, 0, 1, 2, 1, 3, 0, 3, 1, 1, 0, 1, 1, 4, 0] microbatches 2

// The last stage has the loss, and what floats beside it. What both phases need of a parameter each reads itself.
// CHECK: module @stage1
// CHECK-NOT: key("a")
// CHECK-LABEL: graph.func forward @forward.1(%y: tensor<4xf32> {graph.name = "y"}) attributes {stage.index = array<i64: 1>} {
// CHECK: graph.write @loss_sum
// CHECK: graph.write @token_count
// CHECK-LABEL: graph.func @receive_activation.1() {
// CHECK-LABEL: graph.func backward @backward.1(%y: tensor<4xf32> {graph.name = "y"}) attributes {stage.index = array<i64: 1>} {
// CHECK-NEXT: graph.read @b
// CHECK-LABEL: graph.func @send_gradient.1() {
// CHECK-LABEL: graph.func update @train_update()
// CHECK: stage.send %{{.*}} to 0 channel "update.1.0" : tensor<4xf32>
// CHECK: timeline [2, 0, 0, 0, 2, 1, 1, 0, 3, 0, 0, 1, 1, 1, 3, 1, 4, 0] microbatches 2

module attributes {plan.seed = 7 : i64, stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
    schedule "1f1b"
    microbatches 2
  }
  graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
  graph.param @b : tensor<4xf32> init(#graph.fill<1.0>) key("b")
  graph.state @a.grad accumulator of @a : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @b.grad accumulator of @b : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
  graph.state @token_count accumulator : tensor<f32> init(#graph.fill<0.0>)

  graph.func microbatch @train_microbatch(%x: tensor<4xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) {
    %a = graph.read @a : tensor<4xf32>
    %0 = arith.mulf %x, %a : tensor<4xf32>
    %1 = graph.silu %0 : tensor<4xf32>
    %2 = stage.transfer %1 from 0 to 1 : tensor<4xf32>
    %b = graph.read @b : tensor<4xf32>
    %3 = arith.mulf %2, %b : tensor<4xf32>
    %4 = arith.mulf %3, %y : tensor<4xf32>
    %5 = graph.reduce sum %4 dims [0] : (tensor<4xf32>) -> tensor<f32>
    %6 = arith.mulf %b, %y : tensor<4xf32>
    %7 = arith.mulf %6, %3 : tensor<4xf32>
    %8 = stage.transfer %7 from 1 to 0 : tensor<4xf32>
    %slope = arith.mulf %8, %0 : tensor<4xf32>
    %9 = arith.mulf %slope, %1 : tensor<4xf32>
    %10 = arith.mulf %2, %y : tensor<4xf32>
    %a.grad = graph.read @a.grad : tensor<4xf32>
    %11 = arith.addf %a.grad, %9 : tensor<4xf32>
    graph.write @a.grad, %11 : tensor<4xf32>
    %b.grad = graph.read @b.grad : tensor<4xf32>
    %12 = arith.addf %b.grad, %10 : tensor<4xf32>
    graph.write @b.grad, %12 : tensor<4xf32>
    %loss_sum = graph.read @loss_sum : tensor<f32>
    %13 = arith.addf %loss_sum, %5 : tensor<f32>
    graph.write @loss_sum, %13 : tensor<f32>
    %token_count = graph.read @token_count : tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %14 = arith.addf %token_count, %one : tensor<f32>
    graph.write @token_count, %14 : tensor<f32>
    graph.return
  }
  graph.func update @train_update() -> (tensor<f32>, tensor<f32>) {
    %a.grad = graph.read @a.grad : tensor<4xf32>
    %0 = graph.reduce sum %a.grad dims [0] : (tensor<4xf32>) -> tensor<f32>
    %b.grad = graph.read @b.grad : tensor<4xf32>
    %1 = graph.reduce sum %b.grad dims [0] : (tensor<4xf32>) -> tensor<f32>
    %2 = arith.addf %0, %1 : tensor<f32>
    %token_count = graph.read @token_count : tensor<f32>
    %loss_sum = graph.read @loss_sum : tensor<f32>
    %3 = arith.divf %loss_sum, %token_count : tensor<f32>
    graph.write @a, %a.grad : tensor<4xf32>
    graph.write @b, %b.grad : tensor<4xf32>
    %4 = stage.transfer %b.grad from 1 to 0 : tensor<4xf32>
    graph.write @a, %4 : tensor<4xf32>
    graph.return %3, %2 : tensor<f32>, tensor<f32>
  }
  graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [2, 1]
}
