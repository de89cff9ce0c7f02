// Parts that ranks exchange are contiguous: the dimension in question becomes the first one.
// RUN: bowline-opt %s --lower-collectives --canonicalize --cse --split-input-file | FileCheck %s

dist.mesh @mesh ["dp", "one", "tp"] [2, 1, 4]

// CHECK-LABEL: graph.func @gather
graph.func @gather(%x: tensor<3x5x7xf32>, %row: tensor<1x1x6xf32>) -> (tensor<6x5x7xf32>, tensor<3x20x7xf32>, tensor<1x1x24xf32>) {
  // CHECK: %[[FIRST:.*]] = dist.all_gather %arg0 dim 0 over ["dp"] why "rows" : tensor<3x5x7xf32> -> tensor<6x5x7xf32>
  %0 = dist.all_gather %x dim 0 over ["dp"] why "rows" : tensor<3x5x7xf32> -> tensor<6x5x7xf32>
  // CHECK: %[[PARTS:.*]] = dist.all_gather %arg0 dim 0 over ["tp"] : tensor<3x5x7xf32> -> tensor<12x5x7xf32>
  // CHECK: %[[FLAT:.*]] = graph.reshape %[[PARTS]] : (tensor<12x5x7xf32>) -> tensor<4x3x35xf32>
  // CHECK: %[[TURNED:.*]] = graph.transpose %[[FLAT]] perm [1, 0, 2] : (tensor<4x3x35xf32>) -> tensor<3x4x35xf32>
  // CHECK: %[[SECOND:.*]] = graph.reshape %[[TURNED]] : (tensor<3x4x35xf32>) -> tensor<3x20x7xf32>
  %1 = dist.all_gather %x dim 1 over ["tp"] : tensor<3x5x7xf32> -> tensor<3x20x7xf32>
  // No dimension before it has more than one element.
  // CHECK: %[[ROWS:.*]] = dist.all_gather %arg1 dim 0 over ["tp"] : tensor<1x1x6xf32> -> tensor<4x1x6xf32>
  // CHECK: %[[THIRD:.*]] = graph.reshape %[[ROWS]] : (tensor<4x1x6xf32>) -> tensor<1x1x24xf32>
  %2 = dist.all_gather %row dim 2 over ["tp"] : tensor<1x1x6xf32> -> tensor<1x1x24xf32>
  // CHECK: graph.return %[[FIRST]], %[[SECOND]], %[[THIRD]]
  graph.return %0, %1, %2 : tensor<6x5x7xf32>, tensor<3x20x7xf32>, tensor<1x1x24xf32>
}

// CHECK-LABEL: graph.func @scatter
graph.func @scatter(%x: tensor<3x8x7xf32>) -> tensor<3x2x7xf32> {
  // CHECK: %[[FLAT:.*]] = graph.reshape %arg0 : (tensor<3x8x7xf32>) -> tensor<3x4x14xf32>
  // CHECK: %[[TURNED:.*]] = graph.transpose %[[FLAT]] perm [1, 0, 2] : (tensor<3x4x14xf32>) -> tensor<4x3x14xf32>
  // CHECK: %[[PARTS:.*]] = graph.reshape %[[TURNED]] : (tensor<4x3x14xf32>) -> tensor<12x2x7xf32>
  // CHECK: %[[SUM:.*]] = dist.reduce_scatter sum %[[PARTS]] dim 0 over ["tp"] why "sum" : tensor<12x2x7xf32> -> tensor<3x2x7xf32>
  %0 = dist.reduce_scatter sum %x dim 1 over ["tp"] why "sum" : tensor<3x8x7xf32> -> tensor<3x2x7xf32>
  // CHECK: graph.return %[[SUM]]
  graph.return %0 : tensor<3x2x7xf32>
}

// CHECK-LABEL: graph.func @exchange
graph.func @exchange(%x: tensor<8x5xf32>, %y: tensor<5x8xf32>) -> (tensor<2x20xf32>, tensor<20x2xf32>) {
  // CHECK: %[[PARTS:.*]] = dist.all_to_all %arg0 split 0 concat 0 over ["tp"] : tensor<8x5xf32> -> tensor<8x5xf32>
  // CHECK: graph.transpose {{.*}} (tensor<4x2x5xf32>) -> tensor<2x4x5xf32>
  // CHECK-NOT: graph.transpose
  %0 = dist.all_to_all %x split 0 concat 1 over ["tp"] : tensor<8x5xf32> -> tensor<2x20xf32>
  // CHECK: graph.reshape
  // CHECK: graph.transpose {{.*}} (tensor<5x4x2xf32>) -> tensor<4x5x2xf32>
  // CHECK: %[[JOINED:.*]] = dist.all_to_all %{{.*}} split 0 concat 0 over ["tp"] : tensor<20x2xf32> -> tensor<20x2xf32>
  // CHECK-NEXT: graph.return %{{.*}}, %[[JOINED]]
  %1 = dist.all_to_all %y split 1 concat 0 over ["tp"] : tensor<5x8xf32> -> tensor<20x2xf32>
  graph.return %0, %1 : tensor<2x20xf32>, tensor<20x2xf32>
}

// Only the bytes of the part are copied.
// CHECK-LABEL: graph.func @slice
graph.func @slice(%x: tensor<3x8x7xf32>, %tokens: tensor<1x8xi32>) -> (tensor<3x2x7xf32>, tensor<1x2xi32>) {
  // CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4> : tensor<3xi32>
  // CHECK-DAG: %[[PLACE:.*]] = dist.coordinate over ["tp"]
  // CHECK-DAG: %[[FIRST:.*]] = graph.broadcast %[[PLACE]] {{.*}} -> tensor<3xi32>
  // CHECK-DAG: %[[COUNT:.*]] = graph.iota dim 0 : tensor<3xi32>
  // CHECK-DAG: %[[STARTS:.*]] = arith.muli %[[COUNT]], %[[FOUR]]
  // CHECK-DAG: %[[ROWS:.*]] = arith.addi %[[STARTS]], %[[FIRST]]
  // CHECK-DAG: %[[TABLE:.*]] = graph.reshape %arg0 : (tensor<3x8x7xf32>) -> tensor<12x14xf32>
  // CHECK: graph.gather %[[TABLE]][%[[ROWS]]] in_range : (tensor<12x14xf32>, tensor<3xi32>) -> tensor<3x14xf32>
  %0 = dist.slice %x dim 1 over ["tp"] : tensor<3x8x7xf32> -> tensor<3x2x7xf32>
  // CHECK: %[[ONE:.*]] = graph.reshape %[[PLACE]] : (tensor<i32>) -> tensor<1xi32>
  // CHECK: graph.gather %{{.*}}[%[[ONE]]] in_range : (tensor<4x2xi32>, tensor<1xi32>) -> tensor<1x2xi32>
  %1 = dist.slice %tokens dim 1 over ["tp"] : tensor<1x8xi32> -> tensor<1x2xi32>
  graph.return %0, %1 : tensor<3x2x7xf32>, tensor<1x2xi32>
}

// Equal groups have equal names.
// CHECK-LABEL: graph.func @axes
graph.func @axes(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<24xf32>, tensor<3xf32>, tensor<i32>) {
  // CHECK: dist.all_reduce sum %arg0 over ["dp", "tp"]
  %0 = dist.all_reduce sum %x over ["tp", "one", "dp"] : tensor<3xf32>
  // CHECK: dist.all_reduce max %arg0 over ["dp"]
  %1 = dist.all_reduce max %x over ["one", "dp"] : tensor<3xf32>
  // The order of a gather's axes is the order of its parts.
  // CHECK: dist.all_gather %arg0 dim 0 over ["tp", "dp"]
  %2 = dist.all_gather %x dim 0 over ["tp", "dp"] : tensor<3xf32> -> tensor<24xf32>
  // CHECK-NOT: dist
  // CHECK: graph.return %{{.*}}, %{{.*}}, %{{.*}}, %arg0, %{{.*}}
  %3 = dist.all_reduce sum %x over ["one"] : tensor<3xf32>
  %4 = dist.coordinate over ["one"] : tensor<i32>
  graph.return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<24xf32>, tensor<3xf32>, tensor<i32>
}
