// Independent collectives become buckets; scalars are added up before they are all-reduced.
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=4 bucket-bytes=96' --coalesce-collectives | FileCheck %s

dist.mesh @mesh ["dp", "tp"] [2, 4]

// The third gather would have too many bytes. What uses the first result moves behind the bucket.
// CHECK-LABEL: graph.func @bytes
graph.func @bytes(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[OTHER:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<4xf32>
  // CHECK-NEXT: %[[B:.*]]:2 = dist.bucket {{ *}}all_gather %{{.*}}, %{{.*}} over ["dp"] why "second; 2 together"
  // CHECK-NEXT: %[[A:.*]] = arith.negf %[[B]]#0
  // CHECK-NEXT: %[[L:.*]] = dist.all_gather %[[OTHER]] dim 0 over ["dp"] why "third"
  // CHECK-NEXT: graph.return %[[A]], %[[B]]#1, %[[L]], %[[B]]#0
  %0 = dist.all_gather %x dim 0 over ["dp"] why "first" : tensor<4xf32> -> tensor<8xf32>
  %a = arith.negf %0 : tensor<8xf32>
  %other = arith.addf %x, %x : tensor<4xf32>
  %1 = dist.all_gather %y dim 0 over ["dp"] why "second" : tensor<8xf32> -> tensor<16xf32>
  %2 = dist.all_gather %other dim 0 over ["dp"] why "third" : tensor<4xf32> -> tensor<8xf32>
  graph.return %a, %1, %2, %0 : tensor<8xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>
}

// What depends on another, goes over other axes, has other elements, reductions or attributes stays apart.
// CHECK-LABEL: graph.func @apart
graph.func @apart(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NOT: dist.bucket
  // CHECK: graph.return
  %0 = dist.all_reduce sum %x over ["dp"] : tensor<4xf32>
  %1 = arith.negf %0 : tensor<4xf32>
  %2 = dist.all_reduce sum %1 over ["dp"] : tensor<4xf32>
  %3 = dist.all_reduce sum %x over ["tp"] : tensor<4xf32>
  %4 = dist.all_reduce sum %i over ["dp"] : tensor<4xi32>
  %5 = dist.all_reduce max %x over ["dp"] : tensor<4xf32>
  %6 = dist.all_gather %x dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<4xf32> -> tensor<8xf32>
  %7 = dist.all_gather %x dim 0 over ["dp"] {dist.prefetch = 2 : i64} : tensor<4xf32> -> tensor<8xf32>
  graph.return %2, %3, %4, %5, %6, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>
}

// A write that has to wait takes with it what reads the same variable after it.
graph.state @v saved : tensor<4xf32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func @variables
graph.func @variables(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[OLD:.*]] = graph.read @v
  // CHECK-NEXT: %[[B:.*]]:2 = dist.bucket {{ *}}reduce_scatter({{ *}}sum) %{{.*}}, %{{.*}} over ["dp"]
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[OLD]], %[[B]]#0
  // CHECK-NEXT: graph.write @v, %[[S]]
  // CHECK-NEXT: %[[NEW:.*]] = graph.read @v
  // CHECK-NEXT: graph.return %[[NEW]], %[[B]]#1
  %old = graph.read @v : tensor<4xf32>
  %0 = dist.reduce_scatter sum %x dim 0 over ["dp"] : tensor<8xf32> -> tensor<4xf32>
  %sum = arith.addf %old, %0 : tensor<4xf32>
  graph.write @v, %sum : tensor<4xf32>
  %new = graph.read @v : tensor<4xf32>
  %1 = dist.reduce_scatter sum %y dim 0 over ["dp"] : tensor<8xf32> -> tensor<4xf32>
  graph.return %new, %1 : tensor<4xf32>, tensor<4xf32>
}

// Gathers of parameters join where the first of them stood, with what they need: otherwise the second layer's wide one
// would come before the first layer is computed. Those of a variable that is written in between stay behind the write.
graph.state @w1 saved : tensor<2xf32> init(#graph.fill<0.0>)
graph.state @w2 saved : tensor<2xf32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func @parameters
graph.func @parameters(%n0: tensor<2xf32>, %w: tensor<4xbf16>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xbf16>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[W1:.*]] = graph.read @w1
  // CHECK-NEXT: %[[S:.*]] = arith.negf %[[W1]]
  // CHECK-NEXT: %[[B:.*]]:2 = dist.bucket {{ *}}all_gather %{{.*}}, %[[S]] over ["dp"] {{.*}}{dist.prefetch = 1 : i64}
  // CHECK-NEXT: %[[Y0:.*]] = arith.mulf %{{.*}}, %[[B]]#0
  // CHECK-NEXT: %[[G:.*]] = dist.all_gather %{{.*}} -> tensor<8xbf16>
  // CHECK-NEXT: %[[Y1:.*]] = arith.mulf %[[Y0]], %[[B]]#1
  // CHECK-NEXT: graph.write @w2
  // CHECK-NEXT: %[[W2:.*]] = graph.read @w2
  // CHECK-NEXT: %[[L:.*]] = dist.all_gather %[[W2]]
  %0 = dist.all_gather %n0 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
  %y0 = arith.mulf %x, %0 : tensor<4xf32>
  %1 = dist.all_gather %w dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<4xbf16> -> tensor<8xbf16>
  %w1 = graph.read @w1 : tensor<2xf32>
  %s = arith.negf %w1 : tensor<2xf32>
  %2 = dist.all_gather %s dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
  %y1 = arith.mulf %y0, %2 : tensor<4xf32>
  graph.write @w2, %n0 : tensor<2xf32>
  %w2 = graph.read @w2 : tensor<2xf32>
  %3 = dist.all_gather %w2 dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
  graph.return %y1, %1, %3, %y0 : tensor<4xf32>, tensor<8xbf16>, tensor<4xf32>, tensor<4xf32>
}

// Two kinds in turns: the second one's buckets follow from the order that the first one's have left.
// CHECK-LABEL: graph.func @turns
graph.func @turns(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[B1:.*]] = dist.all_reduce {{ *}}max %{{.*}} over ["tp"]
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[B1]]
  // CHECK-NEXT: %[[A:.*]]:2 = dist.bucket {{ *}}all_reduce({{ *}}sum) %{{.*}}, %[[N]] over ["dp"]
  // CHECK-NEXT: %[[B2:.*]] = dist.all_reduce {{ *}}max %[[A]]#0 over ["tp"]
  // CHECK-NEXT: graph.return %[[B2]], %[[A]]#1
  %a1 = dist.all_reduce sum %x over ["dp"] : tensor<4xf32>
  %b1 = dist.all_reduce max %x over ["tp"] : tensor<4xf32>
  %b2 = dist.all_reduce max %a1 over ["tp"] : tensor<4xf32>
  %n = arith.negf %b1 : tensor<4xf32>
  %a2 = dist.all_reduce sum %n over ["dp"] : tensor<4xf32>
  graph.return %b2, %a2 : tensor<4xf32>, tensor<4xf32>
}

// One all-reduce per set of axes; along tp alone for what tp cuts.
// CHECK-LABEL: graph.func @norm
// CHECK-SAME: %[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>, %[[C:.*]]: tensor<f32>, %[[D:.*]]: tensor<f32>)
graph.func @norm(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[BC:.*]] = arith.addf %[[B]], %[[C]]
  // CHECK-NEXT: %[[TP:.*]] = dist.all_reduce {{ *}}sum %[[BC]] over ["tp"]
  // CHECK-NEXT: %[[ALL:.*]] = arith.addf %[[A]], %[[TP]]
  // CHECK-NEXT: %[[DP:.*]] = dist.all_reduce {{ *}}sum %[[ALL]] over ["dp"]
  // CHECK-NEXT: %[[R:.*]] = arith.addf %[[D]], %[[DP]]
  // CHECK-NEXT: %[[ROOT:.*]] = math.sqrt %[[R]]
  // CHECK-NEXT: graph.return %[[ROOT]]
  %0 = dist.all_reduce sum %a over ["dp"] : tensor<f32>
  %1 = dist.all_reduce sum %b over ["dp"] : tensor<f32>
  %2 = dist.all_reduce sum %1 over ["tp"] : tensor<f32>
  %3 = arith.addf %0, %2 : tensor<f32>
  %4 = dist.all_reduce sum %c over ["dp", "tp"] : tensor<f32>
  %5 = arith.addf %3, %4 : tensor<f32>
  %6 = arith.addf %5, %d : tensor<f32>
  %7 = math.sqrt %6 : tensor<f32>
  graph.return %7 : tensor<f32>
}

// A maximum is no sum, and what is used elsewhere stays.
// CHECK-LABEL: graph.func @no_sums
graph.func @no_sums(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: dist.all_reduce {{ *}}max
  // CHECK: dist.all_reduce {{ *}}sum
  // CHECK: arith.addf
  // CHECK: graph.return
  %0 = dist.all_reduce max %a over ["dp"] : tensor<f32>
  %1 = dist.all_reduce sum %b over ["dp"] : tensor<f32>
  %2 = arith.addf %0, %1 : tensor<f32>
  graph.return %2, %1 : tensor<f32>, tensor<f32>
}
