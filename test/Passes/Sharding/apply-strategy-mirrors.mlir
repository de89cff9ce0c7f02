// A mirror is cut as its owner is, and patterns see the owner alone.
// RUN: bowline-opt %s --apply-strategy | FileCheck %s

module attributes {stage.count = 2 : i64} {
  dist.strategy @s {
    mesh @mesh ["pp", "tp"] [2, 2]
    shard "embed" as <[{"tp"}, {}]>
    shard "*.wq" as <[{}, {"tp"}]>
  }
  // CHECK: graph.param @embed {{.*}}dist.sharding = #dist.sharding<[{"tp"}, {}]>
  graph.param @embed : tensor<8x4xf32> init(#graph.fill<0.0>) key("embed")
  // CHECK: graph.param @embed.mirror1 {{.*}}dist.sharding = #dist.sharding<[{"tp"}, {}]>
  graph.param @embed.mirror1 : tensor<8x4xf32> init(#graph.fill<0.0>) key("embed") mirror_of @embed
  // CHECK: graph.param @layers.0.wq {{.*}}dist.sharding = #dist.sharding<[{}, {"tp"}]>
  graph.param @layers.0.wq : tensor<4x4xf32> init(#graph.fill<0.0>) key("wq")
  // CHECK: graph.param @layers.0.wq.mirror1 {{.*}}dist.sharding = #dist.sharding<[{}, {"tp"}]>
  graph.param @layers.0.wq.mirror1 : tensor<4x4xf32> init(#graph.fill<0.0>) key("wq") mirror_of @layers.0.wq
}
