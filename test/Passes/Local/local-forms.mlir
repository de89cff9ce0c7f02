// Where an embedding or the classes of the loss are cut, indices and labels are seen from the part that a rank has.
// RUN: bowline-opt %s --propagate-shardings --global-to-local --canonicalize --split-input-file | FileCheck %s

dist.mesh @mesh ["tp"] [2]
graph.param @table : tensor<8x4xf32> init(#graph.normal<0.02>) key("table") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
// CHECK-LABEL: graph.func @rows
graph.func @rows(%i: tensor<6xi32>) -> tensor<6x4xf32> {
  %table = graph.read @table : tensor<8x4xf32>
  // CHECK-DAG: %[[PART:.*]] = arith.constant dense<4> : tensor<i32>
  // CHECK: %[[PLACE:.*]] = dist.coordinate over ["tp"]
  // CHECK: %[[FIRST:.*]] = arith.muli %[[PLACE]], %[[PART]]
  // CHECK: %[[FIRSTS:.*]] = graph.broadcast %[[FIRST]]
  // CHECK: %[[INDEX:.*]] = arith.subi %{{.*}}, %[[FIRSTS]]
  // CHECK: %[[ROWS:.*]] = graph.gather %table{{.*}} : (tensor<4x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
  // CHECK: %[[INNER:.*]] = arith.select %{{.*}}, %[[ROWS]], %{{.*}} : tensor<6x4xi1>, tensor<6x4xf32>
  // CHECK: %[[OWN:.*]] = arith.select %{{.*}}, %[[INNER]], %{{.*}} : tensor<6x4xi1>, tensor<6x4xf32>
  // CHECK: dist.all_reduce sum %[[OWN]] over ["tp"]
  %0 = graph.gather %table[%i] : (tensor<8x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
  graph.return %0 : tensor<6x4xf32>
}

// -----

// No rank has the logits of all classes: three numbers per position are exchanged.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: graph.func loss @loss
graph.func loss @loss(%logits: tensor<6x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}, %labels: tensor<6xi32>) -> tensor<6xf32> {
  // CHECK: %[[LOSS:.*]], %[[PART:.*]] = graph.softmax_cross_entropy %{{.*}} : (tensor<6x4xf32>, tensor<6xi32>)
  // CHECK-NEXT: dist.all_reduce max %[[PART]] over ["tp"] why "global-to-local: the logsumexp of all classes" : tensor<6xf32>
  // CHECK: dist.all_reduce sum %{{.*}} over ["tp"] why "global-to-local: the logsumexp of all classes" : tensor<6xf32>
  // CHECK: %[[LOGIT:.*]] = arith.subf %[[PART]], %[[LOSS]]
  // CHECK-NEXT: dist.all_reduce sum %[[LOGIT]] over ["tp"] why "global-to-local: the logit of the label" : tensor<6xf32>
  // CHECK-NOT: dist.all_gather
  %loss, %logsumexp = graph.softmax_cross_entropy %logits, %labels : (tensor<6x8xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  graph.return %loss : tensor<6xf32>
}

// -----

dist.mesh @mesh ["dp"] [2]
// CHECK-LABEL: graph.func @count
graph.func @count(%x: tensor<6xi32> {dist.sharding = #dist.sharding<[{"dp"}]>}) -> tensor<6xi32> {
  // CHECK: %[[IOTA:.*]] = graph.iota dim 0 : tensor<3xi32>
  // CHECK: arith.addi %[[IOTA]], %{{.*}} : tensor<3xi32>
  %0 = graph.iota dim 0 : tensor<6xi32>
  %1 = arith.addi %x, %0 : tensor<6xi32>
  graph.return %1 : tensor<6xi32>
}
