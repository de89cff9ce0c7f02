// On global tensors, transfers and broadcasts are the identity, and a sum is one.
// RUN: bowline-opt %s --interpret=f | FileCheck %s

// CHECK: result0 : tensor<3xf32> = [1, 2, 3]
// CHECK: result1 : tensor<f32> = [7]
// CHECK: result2 : tensor<f32> = [4]
graph.func @f() -> (tensor<3xf32>, tensor<f32>, tensor<f32>) {
  %x = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %a = arith.constant dense<1.0> : tensor<f32>
  %b = arith.constant dense<2.0> : tensor<f32>
  %c = arith.constant dense<4.0> : tensor<f32>
  %0 = stage.transfer %x from 0 to 1 : tensor<3xf32>
  %1 = stage.sum %a, %b, %c from [0, 1, 2] : tensor<f32>
  %2 = stage.broadcast %c from 2 : tensor<f32>
  graph.return %0, %1, %2 : tensor<3xf32>, tensor<f32>, tensor<f32>
}
