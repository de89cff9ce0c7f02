// Only the last stage has labels: roles have the inputs that their ranks use.
// RUN: bowline-compile %s --mode train --threads 1 --mesh pp=2 --microbatches 2 --verify-each=equiv -o %t.plan 2>&1 | FileCheck %s
// CHECK: equivalence: {{[0-9]+}} steps kept what the program computes
// CHECK-SAME: half modulo 2147483647, where 0 of {{[1-9][0-9]*}} elements have no value

graph.param @w0 : tensor<8x8xf32> init(#graph.normal<1.0>) key("w0") layer(0)
graph.param @w1 : tensor<8x8xf32> init(#graph.normal<1.0>) key("w1") layer(1)
graph.func loss @loss(%x: tensor<4x8xf32> {graph.name = "x"}, %labels: tensor<4xi32> {graph.limit = 8 : i64, graph.name = "labels"}) -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {
  %w0 = graph.read @w0 : tensor<8x8xf32>
  %w1 = graph.read @w1 : tensor<8x8xf32>
  %a = graph.dot_general %x, %w0 contract [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l = graph.dot_general %a, %w1 contract [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %losses, %logsumexp = graph.softmax_cross_entropy %l, %labels : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = graph.reduce sum %losses dims [0] : (tensor<4xf32>) -> tensor<f32>
  %n = arith.constant dense<4.0> : tensor<f32>
  graph.return %sum, %n : tensor<f32>, tensor<f32>
}
