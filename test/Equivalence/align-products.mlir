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
// Losses of different numbers of classes of one product have logits of their own, which every reader comes behind; only
// zeros at the end of a gradient are those of absent classes.
// CHECK-LABEL: graph.func @two_losses
// CHECK: %[[Y:.*]] = graph.dot_general
// CHECK: %[[TEN:.*]] = arith.select %{{.*}}, %[[Y]]
// CHECK: %[[ELEVEN:.*]] = arith.select %{{.*}}, %[[Y]]
// CHECK: graph.softmax_cross_entropy_grad %[[TEN]]
// CHECK: graph.pad %{{.*}} low [0, 6] high [0, 0]
// CHECK: graph.softmax_cross_entropy %[[ELEVEN]]
// CHECK: graph.softmax_cross_entropy %[[TEN]]
graph.func @two_losses(%x: tensor<3x6xf32> {graph.name = "x"}, %w: tensor<16x6xf32> {graph.name = "w"},
                       %l: tensor<3xi32> {graph.name = "l", graph.limit = 10 : i64}, %s: tensor<3xf32> {graph.name = "s"})
    -> (tensor<3xf32> {graph.name = "eleven"}, tensor<3xf32> {graph.name = "ten"}, tensor<3x16xf32> {graph.name = "late"}) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x6xf32>, tensor<16x6xf32>) -> tensor<3x16xf32>
  %early = graph.slice %y at [0, 0] sizes [3, 10] : (tensor<3x16xf32>) -> tensor<3x10xf32>
  %g = graph.softmax_cross_entropy_grad %early, %l, %s, %s
    : (tensor<3x10xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x10xf32>
  %late = graph.pad %g low [0, 6] high [0, 0] : (tensor<3x10xf32>) -> tensor<3x16xf32>
  %a = graph.slice %y at [0, 0] sizes [3, 11] : (tensor<3x16xf32>) -> tensor<3x11xf32>
  %eleven, %lse0 = graph.softmax_cross_entropy %a, %l : (tensor<3x11xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %b = graph.slice %y at [0, 0] sizes [3, 10] : (tensor<3x16xf32>) -> tensor<3x10xf32>
  %ten, %lse1 = graph.softmax_cross_entropy %b, %l : (tensor<3x10xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  graph.return %eleven, %ten, %late : tensor<3xf32>, tensor<3xf32>, tensor<3x16xf32>
}
// A program that leaves out many classes keeps its slice: the loss does not pay for them.
// CHECK-LABEL: graph.func @few
// CHECK: graph.slice
// CHECK: graph.softmax_cross_entropy {{.*}} (tensor<3x5xf32>
graph.func @few(%x: tensor<3x6xf32> {graph.name = "x"}, %w: tensor<64x6xf32> {graph.name = "w"},
                %l: tensor<3xi32> {graph.name = "l", graph.limit = 5 : i64}) -> (tensor<3xf32> {graph.name = "loss"}) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x6xf32>, tensor<64x6xf32>) -> tensor<3x64xf32>
  %p = graph.slice %y at [0, 0] sizes [3, 5] : (tensor<3x64xf32>) -> tensor<3x5xf32>
  %loss, %lse = graph.softmax_cross_entropy %p, %l : (tensor<3x5xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  graph.return %loss : tensor<3xf32>
}
graph.entry @run [@step] repeat [1]
graph.entry @run_own [@own] repeat [1]
graph.entry @run_two_losses [@two_losses] repeat [1]
graph.entry @run_few [@few] repeat [1]
