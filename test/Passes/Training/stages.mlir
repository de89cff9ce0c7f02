// Training passes on a program in stages: gradients go back the way that values came, a mirror has an accumulator and
// nothing else of its own, and precision goes through transfers.
// RUN: split-file %s %t
// RUN: bowline-opt %t/mirror.mlir --differentiate --insert-optimizer=clip-norm=0 --insert-init --canonicalize --cse | FileCheck %t/mirror.mlir
// RUN: bowline-opt %t/precision.mlir --lower-precision | FileCheck %t/precision.mlir

//--- mirror.mlir
module attributes {stage.count = 3 : i64} {
  // CHECK: graph.param @w
  // CHECK-NEXT: graph.state @w.m saved of @w
  // CHECK-NEXT: graph.state @w.v saved of @w
  // CHECK-NEXT: graph.state @w.grad accumulator of @w
  // CHECK-NEXT: graph.param @w.mirror2 {{.*}} mirror_of @w
  // CHECK-NEXT: graph.state @w.mirror2.grad accumulator of @w.mirror2
  // CHECK-NOT: graph.state @w.mirror2
  graph.param @w : tensor<4xf32> init(#graph.normal<0.5>) key("w") {stage.index = array<i64: 0>}
  graph.param @w.mirror2 : tensor<4xf32> init(#graph.normal<0.5>) key("w") mirror_of @w {stage.index = array<i64: 2>}

  // CHECK-LABEL: graph.func microbatch @train_microbatch
  graph.func loss @loss(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %count = arith.constant dense<4.0> : tensor<f32>
    %w0 = graph.read @w : tensor<4xf32>
    %0 = arith.mulf %x, %w0 : tensor<4xf32>
    %1 = stage.transfer %0 from 0 to 1 : tensor<4xf32>
    // CHECK: %[[Y:.*]] = stage.transfer %{{.*}} from 1 to 2
    %2 = stage.transfer %1 from 1 to 2 : tensor<4xf32>
    // CHECK: %[[W2:.*]] = graph.read @w.mirror2
    %w2 = graph.read @w.mirror2 : tensor<4xf32>
    %3 = arith.mulf %2, %w2 : tensor<4xf32>
    %4 = graph.reduce sum %3 dims [0] : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[G1:.*]] = stage.transfer %[[W2]] from 2 to 1
    // CHECK-NEXT: %[[G0:.*]] = stage.transfer %[[G1]] from 1 to 0
    // CHECK-NEXT: %[[G:.*]] = arith.mulf %[[G0]], %arg0
    // CHECK-DAG: graph.write @w.grad, %[[G]]
    // CHECK-DAG: graph.write @w.mirror2.grad, %[[Y]]
    graph.return %4, %count : tensor<f32>, tensor<f32>
  }

  // The gradient's parts meet at the owner, before the norm; the new value goes to the mirror.
  // CHECK-LABEL: graph.func update @train_update
  // CHECK: %[[OWN:.*]] = graph.read @w.grad
  // CHECK-NEXT: %[[PART:.*]] = graph.read @w.mirror2.grad
  // CHECK-NEXT: %[[P1:.*]] = stage.transfer %[[PART]] from 2 to 1
  // CHECK-NEXT: %[[P0:.*]] = stage.transfer %[[P1]] from 1 to 0
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OWN]], %[[P0]]
  // CHECK-NEXT: arith.mulf %[[SUM]], %[[SUM]]
  // CHECK: %[[N1:.*]] = stage.transfer %[[NEW:.*]] from 0 to 1
  // CHECK-NEXT: %[[N2:.*]] = stage.transfer %[[N1]] from 1 to 2
  // CHECK: graph.write @w, %[[NEW]]
  // CHECK: graph.write @w.mirror2, %[[N2]]

  // Both start with the same random numbers.
  // CHECK-LABEL: graph.func @initialize
  // CHECK: %[[R:.*]] = graph.random
  // CHECK-NOT: graph.random
  // CHECK-DAG: graph.write @w, %[[R]]
  // CHECK-DAG: graph.write @w.mirror2, %[[R]]
}

//--- precision.mlir
graph.param @w : tensor<4x4xf32> init(#graph.fill<1.0>) key("w")
// CHECK-LABEL: graph.func loss @loss
graph.func loss @loss(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = graph.read @w : tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = graph.dot_general {{.*}} -> tensor<2x4xbf16>
  %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: stage.transfer %[[Y]] from 0 to 1 : tensor<2x4xbf16>
  %1 = stage.transfer %0 from 0 to 1 : tensor<2x4xf32>
  // CHECK: stage.transfer %{{.*}} from 0 to 1 : tensor<2x4xf32>
  %2 = stage.transfer %x from 0 to 1 : tensor<2x4xf32>
  graph.return %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>
}
