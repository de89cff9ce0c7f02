// What takes too long to be interpreted is refused before the first pass.
// RUN: not bowline-opt %s --verify-each=equiv --cse 2>&1 | FileCheck %s
// CHECK: error: is too large to be interpreted before and after every pass: one run takes {{[0-9]+}} million operations on all ranks together, and 1000 million are the limit; take smaller sizes or fewer ranks; bowline-compile --verify-each=equiv shrinks a model by itself if it gets the model's directory

graph.func @product(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = graph.dot_general %x, %x contract [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  graph.return %0 : tensor<1024x1024xf32>
}
