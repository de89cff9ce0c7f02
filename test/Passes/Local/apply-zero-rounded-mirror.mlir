// A tied table: its owner, used in full precision, stays whole. The other stage only uses it rounded, so the mirror is
// rounded, and so is what is sent and gathered for it.
// RUN: bowline-opt %s --apply-zero --canonicalize --cse | FileCheck %s
module attributes {stage.count = 2 : i64} {
  dist.strategy @strategy {
    mesh @mesh ["pp", "dp"] [2, 2]
    zero level 1 axis "dp"
  }
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  // CHECK: graph.param @w : tensor<2x4xf32>
  graph.param @w : tensor<2x4xf32> init(#graph.fill<1.0>) key("w")
    {dist.global_shape = array<i64: 2, 4>, dist.sharding = #dist.sharding<[{}, {}]>}
  // CHECK: graph.param @w.mirror1 : tensor<2x4xbf16> {{.*}} mirror_of @w {
  // CHECK-NOT: graph.param
  graph.param @w.mirror1 : tensor<2x4xf32> init(#graph.fill<1.0>) key("w") mirror_of @w
    {dist.global_shape = array<i64: 2, 4>, dist.sharding = #dist.sharding<[{}, {}]>}
  graph.state @w.grad accumulator of @w : tensor<2x4xf32> init(#graph.fill<0.0>)
    {dist.global_shape = array<i64: 2, 4>, dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>}
  // CHECK-LABEL: graph.func @use
  graph.func @use() -> (tensor<2x4xf32>, tensor<2x4xbf16>) {
    %w = graph.read @w : tensor<2x4xf32>
    // CHECK: graph.read @w.mirror1 : tensor<2x4xbf16>
    %mirror = graph.read @w.mirror1 : tensor<2x4xf32>
    %small = arith.truncf %mirror : tensor<2x4xf32> to tensor<2x4xbf16>
    graph.return %w, %small : tensor<2x4xf32>, tensor<2x4xbf16>
  }
  // CHECK-LABEL: graph.func @update
  // CHECK: %[[NEW:.*]] = arith.subf %{{.*}} : tensor<4xf32>
  // CHECK: %[[SMALL:.*]] = arith.truncf %[[NEW]] : tensor<4xf32> to tensor<4xbf16>
  // CHECK: %[[SENT:.*]] = stage.transfer %[[SMALL]] from 0 to 1 : tensor<4xbf16>
  // CHECK: dist.all_gather %[[SENT]] {{.*}} : tensor<4xbf16> -> tensor<8xbf16>
  // CHECK-NOT: stage.transfer
  graph.func @update() {
    %g = graph.read @w.grad : tensor<2x4xf32>
    %grad = dist.all_reduce sum %g over ["dp"] why "sum" : tensor<2x4xf32>
    %w = graph.read @w : tensor<2x4xf32>
    %next = arith.subf %w, %grad : tensor<2x4xf32>
    %sent = stage.transfer %next from 0 to 1 : tensor<2x4xf32>
    graph.write @w, %next : tensor<2x4xf32>
    graph.write @w.mirror1, %sent : tensor<2x4xf32>
    graph.return
  }
  graph.entry train_step @train_step [@update] repeat [1]
}
