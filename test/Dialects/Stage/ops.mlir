// Every operation and attribute parses, prints in its own form and survives the round trip.
// RUN: bowline-opt %s | bowline-opt | FileCheck %s

// CHECK: module attributes {stage.count = 3 : i64}
module attributes {stage.count = 3 : i64} {
  // CHECK: graph.param @embed {{.*}} {stage.index = array<i64: 0>}
  graph.param @embed : tensor<8x4xf32> init(#graph.normal<0.02>) key("embed") {stage.index = array<i64: 0>}
  // CHECK: graph.param @embed.mirror2 {{.*}} mirror_of @embed {stage.index = array<i64: 2>}
  graph.param @embed.mirror2 : tensor<8x4xf32> init(#graph.normal<0.02>) key("embed") mirror_of @embed {stage.index = array<i64: 2>}

  graph.func @f(%x: tensor<2x4xbf16>, %i: tensor<2xi32>, %a: tensor<f32>, %b: tensor<f32>) {
    // CHECK: stage.transfer %arg0 from 0 to 1 : tensor<2x4xbf16>
    %0 = stage.transfer %x from 0 to 1 : tensor<2x4xbf16>
    // CHECK: stage.transfer %arg1 from 2 to 0 {stage.index = array<i64: 0, 2>, stage.phase = "backward"} : tensor<2xi32>
    %1 = stage.transfer %i from 2 to 0 {stage.index = array<i64: 0, 2>, stage.phase = "backward"} : tensor<2xi32>
    // CHECK: stage.sum %arg2, %arg3 from [0, 2] : tensor<f32>
    %2 = stage.sum %a, %b from [0, 2] : tensor<f32>
    // CHECK: stage.broadcast %arg2 from 1 : tensor<f32>
    %3 = stage.broadcast %a from 1 : tensor<f32>
    // CHECK: stage.send %arg0, %arg1 to 1 channel "activation.even" : tensor<2x4xbf16>, tensor<2xi32>
    stage.send %x, %i to 1 channel "activation.even" : tensor<2x4xbf16>, tensor<2xi32>
    // CHECK: %{{.*}}:2 = stage.receive from 1 channel "gradient.odd" : tensor<2x4xbf16>, tensor<f32>
    %4:2 = stage.receive from 1 channel "gradient.odd" : tensor<2x4xbf16>, tensor<f32>
    graph.return
  }
}
