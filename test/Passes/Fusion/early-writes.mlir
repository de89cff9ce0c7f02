// Sums over microbatches are formed where what is added is there.
// RUN: bowline-opt %s --early-writes | FileCheck %s

// CHECK: %[[A:.*]] = graph.fusion(%arg0)
// CHECK: %[[OLD:.*]] = graph.read @a.grad
// CHECK-NEXT: %[[SUM:.*]] = graph.fusion(%[[OLD]], %[[A]])
// CHECK: graph.write @a.grad, %[[SUM]]
// CHECK: graph.fusion(%arg1)
// CHECK: math.tanh
// What is read twice stays: the second reader wants the old value.
// CHECK: graph.read @b.grad
// CHECK: graph.write @b.grad
// CHECK-NEXT: graph.return
graph.state @a.grad accumulator : tensor<4xf32> init(#graph.fill<0.0>)
graph.state @b.grad accumulator : tensor<4xf32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.fusion(%arg0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %t = math.exp %a : tensor<4xf32>
    graph.yield %t : tensor<4xf32>
  }
  %1 = graph.fusion(%arg1) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %t = math.tanh %a : tensor<4xf32>
    graph.yield %t : tensor<4xf32>
  }
  %a.grad = graph.read @a.grad : tensor<4xf32>
  %2 = graph.fusion(%a.grad, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %t = arith.addf %a, %b : tensor<4xf32>
    graph.yield %t : tensor<4xf32>
  }
  graph.write @a.grad, %2 : tensor<4xf32>
  %b.grad = graph.read @b.grad : tensor<4xf32>
  %3 = graph.fusion(%b.grad, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %t = arith.addf %a, %b : tensor<4xf32>
    graph.yield %t : tensor<4xf32>
  }
  graph.write @b.grad, %3 : tensor<4xf32>
  graph.return %1, %b.grad : tensor<4xf32>, tensor<4xf32>
}
