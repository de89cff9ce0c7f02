// Padded products, and a loss that reads classes which are none, compute what they did: value, loss and gradients.
// RUN: bowline-opt %s --verify-each=equiv --align-products="min-size=2 multiple=8" | FileCheck %s
// RUN: bowline-opt %s --verify-each=equiv --align-products="min-size=2 multiple=32" | FileCheck %s
// A program's own slice of a product, whose classes do not begin with the first one, stays.
// CHECK: graph.pad
// CHECK: arith.select
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<3x{{8|32}}xf32>

graph.func @step(%x: tensor<3x6xf32> {graph.name = "x"}, %w: tensor<5x6xf32> {graph.name = "w"},
                 %l: tensor<3xi32> {graph.name = "l", graph.limit = 5 : i64}, %s: tensor<3xf32> {graph.name = "s"})
    -> (tensor<3xf32> {graph.name = "loss"}, tensor<3x6xf32> {graph.name = "dx"}, tensor<5x6xf32> {graph.name = "dw"},
        tensor<6x6xf32> {graph.name = "free"}) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x6xf32>, tensor<5x6xf32>) -> tensor<3x5xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<3x5xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<3x5xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<3x5xf32>, tensor<3x6xf32>) -> tensor<5x6xf32>
  %free = graph.dot_general %x, %x contract [0] x [0] : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<6x6xf32>
  graph.return %loss, %dx, %dw, %free : tensor<3xf32>, tensor<3x6xf32>, tensor<5x6xf32>, tensor<6x6xf32>
}
graph.func @own(%x: tensor<3x6xf32> {graph.name = "x"}, %w: tensor<12x6xf32> {graph.name = "w"},
                %l: tensor<3xi32> {graph.name = "l", graph.limit = 5 : i64}) -> (tensor<3xf32> {graph.name = "loss"}) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x6xf32>, tensor<12x6xf32>) -> tensor<3x12xf32>
  %p = graph.slice %y at [0, 7] sizes [3, 5] : (tensor<3x12xf32>) -> tensor<3x5xf32>
  %loss, %lse = graph.softmax_cross_entropy %p, %l : (tensor<3x5xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  graph.return %loss : tensor<3xf32>
}
graph.entry @run [@step] repeat [1]
graph.entry @run_own [@own] repeat [1]
