// A table says how many stages a rank holds; its mistakes are those of the strategy.
// RUN: bowline-opt %s --assign-stages | FileCheck %s
// RUN: sed 's/,0B0\\0A1F0/\\0A1F0/' %s > %t.mlir
// RUN: not bowline-opt %t.mlir --assign-stages 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: stage.count = 4
// WRONG: error: {{.*}}four.csv:
module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    schedule "four.csv" table "0F0,3F0,3B0,0B0\0A1F0,2F0,2B0,1B0"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1") layer(1)
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2") layer(2)
  graph.param @layers.3.w : tensor<4xf32> init(#graph.fill<1.0>) key("3") layer(3)
  graph.func loss @loss() { graph.return }
}
