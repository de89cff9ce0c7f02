// Stages follow from transfers, and scalars that stages share become sums and broadcasts.
// RUN: bowline-opt %s --label-stages --split-input-file | FileCheck %s

// CHECK-LABEL: module @update
module @update attributes {stage.count = 3 : i64} {
  // What is written with a gradient is where the gradient is; what floats is where it is read.
  // CHECK: @a : {{.*}} {stage.index = array<i64: 0>}
  graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
  // CHECK: @b : {{.*}} {stage.index = array<i64: 1>}
  graph.param @b : tensor<4xf32> init(#graph.fill<1.0>) key("b")
  // CHECK: @c : {{.*}} {stage.index = array<i64: 2>}
  graph.param @c : tensor<4xf32> init(#graph.fill<1.0>) key("c") {stage.index = array<i64: 0>}
  // CHECK: @a.grad accumulator {{.*}} {stage.index = array<i64: 0>}
  graph.state @a.grad accumulator of @a : tensor<4xf32> init(#graph.fill<0.0>)
  // CHECK: @b.grad accumulator {{.*}} {stage.index = array<i64: 1>}
  graph.state @b.grad accumulator of @b : tensor<4xf32> init(#graph.fill<0.0>)
  // CHECK: @c.grad accumulator {{.*}} {stage.index = array<i64: 2>}
  graph.state @c.grad accumulator of @c : tensor<4xf32> init(#graph.fill<0.0>)
  // CHECK: @loss_sum accumulator {{.*}} {stage.index = array<i64: 2>}
  graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
  // CHECK: @step saved|step {{.*}} {stage.index = array<i64: 0, 1, 2>}
  graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)

  // CHECK-LABEL: graph.func microbatch @train_microbatch
  graph.func microbatch @train_microbatch(%x: tensor<4xf32>) {
    // CHECK: graph.read @a {stage.index = array<i64: 0>, stage.phase = "forward"}
    %a = graph.read @a : tensor<4xf32>
    // CHECK: arith.mulf {{.*}} {stage.index = array<i64: 0>, stage.phase = "forward"}
    %0 = arith.mulf %x, %a : tensor<4xf32>
    // CHECK: stage.transfer {{.*}} from 0 to 1 {stage.index = array<i64: 0, 1>, stage.phase = "forward"}
    %1 = stage.transfer %0 from 0 to 1 : tensor<4xf32>
    // CHECK: graph.read @b {stage.index = array<i64: 1>, stage.phase = "both"}
    %b = graph.read @b : tensor<4xf32>
    %2 = arith.mulf %1, %b : tensor<4xf32>
    %3 = stage.transfer %2 from 1 to 2 : tensor<4xf32>
    // CHECK: graph.read @c {stage.index = array<i64: 2>, stage.phase = "both"}
    %c = graph.read @c : tensor<4xf32>
    %4 = arith.mulf %3, %c : tensor<4xf32>
    // CHECK: graph.reduce {{.*}} {stage.index = array<i64: 2>, stage.phase = "forward"}
    %5 = graph.reduce sum %4 dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: stage.transfer {{.*}} from 2 to 1 {stage.index = array<i64: 1, 2>, stage.phase = "backward"}
    %6 = stage.transfer %c from 2 to 1 : tensor<4xf32>
    // CHECK: arith.mulf {{.*}} {stage.index = array<i64: 1>, stage.phase = "backward"}
    %7 = arith.mulf %6, %1 : tensor<4xf32>
    %8 = arith.mulf %6, %b : tensor<4xf32>
    %9 = stage.transfer %8 from 1 to 0 : tensor<4xf32>
    %10 = arith.mulf %9, %x : tensor<4xf32>
    // CHECK: graph.write @c.grad, {{.*}} {stage.index = array<i64: 2>, stage.phase = "backward"}
    graph.write @c.grad, %3 : tensor<4xf32>
    graph.write @b.grad, %7 : tensor<4xf32>
    graph.write @a.grad, %10 : tensor<4xf32>
    // CHECK: graph.write @loss_sum, {{.*}} {stage.index = array<i64: 2>, stage.phase = "forward"}
    graph.write @loss_sum, %5 : tensor<f32>
    // CHECK: graph.return {stage.index = array<i64: 0, 1, 2>, stage.phase = "forward"}
    graph.return
  }

  // CHECK-LABEL: graph.func update @train_update
  // CHECK-NOT: stage.phase
  graph.func update @train_update() -> (tensor<f32>, tensor<f32>) {
    %step = graph.read @step : tensor<i32>
    // CHECK: %[[ONE:.*]] = arith.constant {stage.index = array<i64: 0, 1, 2>} dense<1>
    %one = arith.constant dense<1> : tensor<i32>
    %next = arith.addi %step, %one : tensor<i32>
    // CHECK: %[[RATE:.*]] = arith.sitofp {{.*}} {stage.index = array<i64: 0, 1, 2>}
    %rate = arith.sitofp %next : tensor<i32> to tensor<f32>
    // CHECK: %[[LOSS:.*]] = graph.read @loss_sum {stage.index = array<i64: 2>}
    // CHECK-NEXT: %[[TOLD:.*]] = stage.broadcast %[[LOSS]] from 2 {stage.index = array<i64: 0, 1, 2>}
    %loss = graph.read @loss_sum : tensor<f32>
    %ga = graph.read @a.grad : tensor<4xf32>
    %gb = graph.read @b.grad : tensor<4xf32>
    %gc = graph.read @c.grad : tensor<4xf32>
    // CHECK: %[[A0:.*]] = graph.reduce sum %a.grad
    %a0 = graph.reduce sum %ga dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[A1:.*]] = graph.reduce max %a.grad
    %a1 = graph.reduce max %ga dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[B0:.*]] = graph.reduce sum %b.grad
    %b0 = graph.reduce sum %gb dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[C0:.*]] = graph.reduce sum %c.grad
    %c0 = graph.reduce sum %gc dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[C1:.*]] = graph.reduce max %c.grad
    %c1 = graph.reduce max %gc dims [0] : (tensor<4xf32>) -> tensor<f32>
    // The leaves of each stage are added in their order, then those of all stages; the floating one last.
    // CHECK-NEXT: %[[A:.*]] = arith.addf %[[A0]], %[[A1]] {stage.index = array<i64: 0>}
    %s0 = arith.addf %a0, %a1 : tensor<f32>
    // CHECK-NEXT: %[[C:.*]] = arith.addf %[[C0]], %[[C1]] {stage.index = array<i64: 2>}
    // CHECK-NEXT: %[[S:.*]] = stage.sum %[[A]], %[[B0]], %[[C]] from [0, 1, 2] {stage.index = array<i64: 0, 1, 2>}
    // CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[RATE]] {stage.index = array<i64: 0, 1, 2>}
    %s1 = arith.addf %s0, %c0 : tensor<f32>
    %s2 = arith.addf %s1, %rate : tensor<f32>
    %s3 = arith.addf %b0, %c1 : tensor<f32>
    %s4 = arith.addf %s2, %s3 : tensor<f32>
    // CHECK-NEXT: graph.broadcast %[[T]] {{.*}} {stage.index = array<i64: 0, 1, 2>}
    %scale = graph.broadcast %s4 dims [] : (tensor<f32>) -> tensor<4xf32>
    // CHECK-NEXT: arith.mulf {{.*}} {stage.index = array<i64: 0>}
    %a = arith.mulf %ga, %scale : tensor<4xf32>
    // CHECK-NEXT: arith.mulf {{.*}} {stage.index = array<i64: 1>}
    %b = arith.mulf %gb, %scale : tensor<4xf32>
    // CHECK-NEXT: arith.mulf {{.*}} {stage.index = array<i64: 2>}
    %c = arith.mulf %gc, %scale : tensor<4xf32>
    graph.write @a, %a : tensor<4xf32>
    graph.write @b, %b : tensor<4xf32>
    graph.write @c, %c : tensor<4xf32>
    // CHECK: graph.write @step, {{.*}} {stage.index = array<i64: 0, 1, 2>}
    graph.write @step, %next : tensor<i32>
    // CHECK: graph.return {stage.index = array<i64: 0, 1, 2>} %[[TOLD]], %[[T]]
    graph.return %loss, %s4 : tensor<f32>, tensor<f32>
  }
}

// -----

// Without training a parameter is where it is read. A product of scalars of two stages is computed by all.
// CHECK-LABEL: module @evaluation
module @evaluation attributes {stage.count = 2 : i64} {
  // CHECK: @a : {{.*}} {stage.index = array<i64: 0>}
  graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
  // CHECK: @b : {{.*}} {stage.index = array<i64: 1>}
  graph.param @b : tensor<4xf32> init(#graph.fill<1.0>) key("b")
  // CHECK: graph.func loss @loss
  graph.func loss @loss(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    // CHECK: arith.negf {{.*}} {stage.index = array<i64: 0, 1>, stage.phase = "forward"}
    %n = arith.negf %x : tensor<4xf32>
    %a = graph.read @a : tensor<4xf32>
    // CHECK: arith.mulf {{.*}} {stage.index = array<i64: 0>, stage.phase = "forward"}
    %0 = arith.mulf %n, %a : tensor<4xf32>
    %1 = stage.transfer %0 from 0 to 1 : tensor<4xf32>
    %b = graph.read @b : tensor<4xf32>
    %2 = arith.mulf %1, %b : tensor<4xf32>
    %3 = arith.mulf %2, %n : tensor<4xf32>
    // CHECK: %[[LOSS:.*]] = graph.reduce sum
    // CHECK-NEXT: %[[TOLD:.*]] = stage.broadcast %[[LOSS]] from 1
    %4 = graph.reduce sum %3 dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[COUNT:.*]] = graph.reduce sum {{.*}} {stage.index = array<i64: 0, 1>, stage.phase = "forward"}
    %5 = graph.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: graph.return {{.*}} %[[TOLD]], %[[COUNT]]
    graph.return %4, %5 : tensor<f32>, tensor<f32>
  }
}

// -----

// One stage: everything is in it.
// CHECK-LABEL: module @one
module @one attributes {stage.count = 1 : i64} {
  // CHECK: @a : {{.*}} {stage.index = array<i64: 0>}
  graph.param @a : tensor<f32> init(#graph.fill<1.0>) key("a")
  graph.func @f() -> tensor<f32> {
    // CHECK: graph.read @a {stage.index = array<i64: 0>}
    %a = graph.read @a : tensor<f32>
    // CHECK-NEXT: graph.return
    graph.return %a : tensor<f32>
  }
}

// -----

// Without stages there is nothing to write down.
// CHECK-LABEL: module @none
// CHECK-NOT: stage.index
module @none {
  graph.param @a : tensor<f32> init(#graph.fill<1.0>) key("a")
}
