// A table says how many stages a rank holds; its mistakes are those of the strategy.
// RUN: split-file %s %t
// RUN: sed "s|TABLE|%t/table.csv|" %t/model.mlir > %t/good.mlir
// RUN: bowline-opt %t/good.mlir --assign-stages | FileCheck %s
// RUN: sed "s|TABLE|%t/wrong.csv|" %t/model.mlir > %t/bad.mlir
// RUN: not bowline-opt %t/bad.mlir --assign-stages 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: stage.count = 4
// WRONG: bad.mlir:2:{{.*}}error: {{.*}}wrong.csv

//--- table.csv
0F0,3F0,3B0,0B0
1F0,2F0,2B0,1B0
//--- wrong.csv
0F0,3F0,3B0,0B0
//--- model.mlir
module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    schedule "TABLE" microbatches 1
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1")
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2")
  graph.param @layers.3.w : tensor<4xf32> init(#graph.fill<1.0>) key("3")
  graph.func @loss() { graph.return }
}
