// RUN: bowline-opt %s | FileCheck %s

// CHECK: dist.mesh @mesh ["dp", "tp"] [2, 4]
dist.mesh @mesh ["dp", "tp"] [2, 4]

// CHECK-LABEL: graph.func @global
graph.func @global(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  // CHECK: dist.reshard %{{.*}} to <[{"dp"}, {"tp", ?}]> why "an addition" : tensor<8x128xf32>
  %0 = dist.reshard %x to <[{"dp"}, {"tp", ?}]> why "an addition" : tensor<8x128xf32>
  // CHECK: dist.reshard %{{.*}} to <[{}, {?}], unreduced = {"tp"}> : tensor<8x128xf32>
  %1 = dist.reshard %0 to <[{}, {?}], unreduced = {"tp"}> : tensor<8x128xf32>
  graph.return %1 : tensor<8x128xf32>
}

// CHECK-LABEL: graph.func @local
graph.func @local(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: dist.all_reduce sum %{{.*}} over ["tp"] why "a row of the product" : tensor<8x64xf32>
  %0 = dist.all_reduce sum %x over ["tp"] why "a row of the product" : tensor<8x64xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 over ["dp", "tp"] : tensor<8x64xf32> -> tensor<8x512xf32>
  %1 = dist.all_gather %0 dim 1 over ["dp", "tp"] : tensor<8x64xf32> -> tensor<8x512xf32>
  // CHECK: dist.reduce_scatter max %{{.*}} dim 0 over ["dp"] : tensor<8x512xf32> -> tensor<4x512xf32>
  %2 = dist.reduce_scatter max %1 dim 0 over ["dp"] : tensor<8x512xf32> -> tensor<4x512xf32>
  // CHECK: dist.all_to_all %{{.*}} split 0 concat 1 over ["tp"] : tensor<4x512xf32> -> tensor<1x2048xf32>
  %3 = dist.all_to_all %2 split 0 concat 1 over ["tp"] : tensor<4x512xf32> -> tensor<1x2048xf32>
  // CHECK: dist.permute %{{.*}} by -1 over ["dp", "tp"] why "the next block of keys" : tensor<1x2048xf32>
  %around = dist.permute %3 by -1 over ["dp", "tp"] why "the next block of keys" : tensor<1x2048xf32>
  // CHECK: dist.permute %{{.*}} by 3 over ["tp"] : tensor<8x64xf32>
  %next = dist.permute %x by 3 over ["tp"] : tensor<8x64xf32>
  // CHECK: dist.slice %{{.*}} dim 1 over ["tp"] : tensor<1x2048xf32> -> tensor<1x512xf32>
  %4 = dist.slice %3 dim 1 over ["tp"] : tensor<1x2048xf32> -> tensor<1x512xf32>
  // CHECK: dist.coordinate over ["tp"] : tensor<i32>
  %5 = dist.coordinate over ["tp"] : tensor<i32>
  %6 = graph.reshape %4 : (tensor<1x512xf32>) -> tensor<8x64xf32>
  graph.return %6 : tensor<8x64xf32>
}

// CHECK-LABEL: graph.func @buckets
graph.func @buckets(%x: tensor<8xf32>, %y: tensor<4x3xf32>) -> (tensor<16xf32>, tensor<2x3xf32>, tensor<4x3xf32>) {
  // CHECK: %[[G:.*]]:2 = dist.bucket {{ *}}all_gather %{{.*}}, %{{.*}} over ["dp"] why "parameters" : (tensor<8xf32>, tensor<4x3xf32>) -> (tensor<16xf32>, tensor<8x3xf32>)
  %0:2 = dist.bucket all_gather %x, %y over ["dp"] why "parameters" : (tensor<8xf32>, tensor<4x3xf32>) -> (tensor<16xf32>, tensor<8x3xf32>)
  // CHECK: dist.bucket {{ *}}reduce_scatter({{ *}}sum) %[[G]]#1 over ["tp"] : (tensor<8x3xf32>) -> tensor<2x3xf32>
  %1 = dist.bucket reduce_scatter(sum) %0#1 over ["tp"] : (tensor<8x3xf32>) -> tensor<2x3xf32>
  // CHECK: dist.bucket {{ *}}all_reduce({{ *}}max) %{{.*}}, %[[G]]#0 over ["dp", "tp"]
  %2:2 = dist.bucket all_reduce(max) %y, %0#0 over ["dp", "tp"] : (tensor<4x3xf32>, tensor<16xf32>) -> (tensor<4x3xf32>, tensor<16xf32>)
  graph.return %2#1, %1, %2#0 : tensor<16xf32>, tensor<2x3xf32>, tensor<4x3xf32>
}
