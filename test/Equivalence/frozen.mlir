// Frozen parameters, one of them with a mirror in another stage, under each way to divide a program.
// RUN: bowline-compile %s --mode train --threads 1 --mesh pp=2,dp=2 --microbatches 2 --zero 2 --dtype bf16 --verify-each=equiv -o %t.stages.plan
// RUN: bowline-check %t.stages.plan | FileCheck %s
// RUN: bowline-compile %s --mode train --threads 1 --mesh dp=2,tp=2 --zero 3 --verify-each=equiv -o %t.divided.plan
// RUN: bowline-check %t.divided.plan | FileCheck %s
// RUN: bowline-translate --plan-to-mlir %t.divided.plan | FileCheck %s --check-prefix=STATES
// CHECK: sound

// STATES: plan.state %{{.*}} key "a" saved|weight init
// STATES: plan.state %{{.*}} key "b" trained|saved|weight init
// STATES-NOT: key "a.m"
// STATES: plan.state %{{.*}} key "step" saved|step init
graph.param frozen @a : tensor<8x8xf32> init(#graph.normal<0.5>) key("a") role(column) layer(0)
graph.param @b : tensor<8x8xf32> init(#graph.normal<0.5>) key("b") role(row) layer(0)
graph.param @c : tensor<8x8xf32> init(#graph.normal<0.5>) key("c") role(column) layer(1)
graph.param frozen @d : tensor<8x8xf32> init(#graph.normal<0.5>) key("d") role(row) layer(1)
graph.func loss @f(%x: tensor<16x8xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  %a = graph.read @a : tensor<8x8xf32>
  %b = graph.read @b : tensor<8x8xf32>
  %c = graph.read @c : tensor<8x8xf32>
  %d = graph.read @d : tensor<8x8xf32>
  %0 = graph.dot_general %x, %a contract [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %1 = graph.silu %0 : tensor<16x8xf32>
  %2 = graph.dot_general %1, %b contract [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %3 = graph.dot_general %2, %c contract [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %4 = graph.silu %3 : tensor<16x8xf32>
  %5 = graph.dot_general %4, %d contract [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %6 = graph.dot_general %5, %a contract [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %y = graph.silu %6 : tensor<16x8xf32>
  %sum = graph.reduce sum %y dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  %positions = arith.constant dense<16.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
}
