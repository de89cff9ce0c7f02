// Ranks of other stages have other programs: what goes to them and comes from them keeps its order.
// RUN: bowline-opt %s --coalesce-collectives | FileCheck %s

module attributes {stage.axis = "pp"} {
  dist.mesh @mesh ["pp", "dp"] [2, 2]

  // The send moves behind the gathers that become one, and the receive with it.
  // CHECK-LABEL: graph.func @transfers
  // CHECK: dist.bucket
  // CHECK: stage.send
  // CHECK: stage.receive
  graph.func @transfers(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %0 = dist.all_gather %a dim 0 over ["dp"] : tensor<4xf32> -> tensor<8xf32>
    stage.send %0 to 1 channel "activation.even" : tensor<8xf32>
    %1 = stage.receive from 1 channel "gradient.odd" : tensor<8xf32>
    %2 = dist.all_gather %b dim 0 over ["dp"] : tensor<4xf32> -> tensor<8xf32>
    graph.return %1, %2 : tensor<8xf32>, tensor<8xf32>
  }

  // CHECK-LABEL: graph.func @between_stages
  // CHECK-COUNT-2: dist.all_reduce sum %{{.*}} over ["pp"]
  // CHECK-NOT: dist.bucket
  // CHECK: graph.return
  graph.func @between_stages(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = dist.all_reduce sum %a over ["pp"] : tensor<4xf32>
    %1 = dist.all_reduce sum %b over ["pp"] : tensor<4xf32>
    graph.return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }

  // CHECK-LABEL: graph.func @norm
  // CHECK: %[[OWN:.*]] = dist.all_reduce {{ *}}sum %{{.*}} over ["dp"]
  // CHECK: dist.all_reduce {{ *}}sum %{{.*}} over ["pp"]
  // CHECK: graph.return
  graph.func @norm(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = dist.all_reduce sum %a over ["dp"] : tensor<f32>
    %1 = dist.all_reduce sum %b over ["pp"] : tensor<f32>
    %2 = arith.addf %0, %1 : tensor<f32>
    graph.return %2 : tensor<f32>
  }
}
