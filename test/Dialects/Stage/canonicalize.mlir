// Equal transfers merge, those between other stages do not, and a transfer that nobody needs goes.
// RUN: bowline-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: graph.func @f
graph.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[A:.*]] = stage.transfer %arg0 from 0 to 1
  %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
  %1 = stage.transfer %x from 0 to 1 : tensor<4xf32>
  // CHECK-NEXT: %[[B:.*]] = stage.transfer %arg0 from 0 to 2
  %2 = stage.transfer %x from 0 to 2 : tensor<4xf32>
  // CHECK-NEXT: %[[C:.*]] = stage.transfer %[[A]] from 1 to 0
  %3 = stage.transfer %1 from 1 to 0 : tensor<4xf32>
  %4 = stage.transfer %3 from 0 to 3 : tensor<4xf32>
  // CHECK-NEXT: graph.return %[[A]], %[[A]], %[[B]], %[[C]]
  graph.return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What another rank waits for is neither merged, nor removed, nor moved.
// CHECK-LABEL: graph.func @links
graph.func @links(%x: tensor<4xf32>) {
  // CHECK-NEXT: stage.send %arg0 to 1 channel "a"
  // CHECK-NEXT: stage.receive from 1 channel "b"
  // CHECK-NEXT: stage.send %arg0 to 1 channel "a"
  // CHECK-NEXT: stage.receive from 1 channel "b"
  // CHECK-NEXT: graph.return
  stage.send %x to 1 channel "a" : tensor<4xf32>
  %0 = stage.receive from 1 channel "b" : tensor<4xf32>
  stage.send %x to 1 channel "a" : tensor<4xf32>
  %1 = stage.receive from 1 channel "b" : tensor<4xf32>
  graph.return
}
