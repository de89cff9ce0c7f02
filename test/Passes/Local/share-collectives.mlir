// With `once`, the parameters of a pass that a rank runs for all microbatches in a row are gathered in front of it, and
// its gradients are reduced behind it. A pass that takes turns with another one keeps its own collectives.
// RUN: bowline-opt %s --pass-pipeline='builtin.module(builtin.module(share-collectives))' --split-input-file \
// RUN:   2>/dev/null | FileCheck %s
// RUN: bowline-opt %s --pass-pipeline='builtin.module(builtin.module(share-collectives))' --split-input-file \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: 'once' shares nothing: no pass of 'stage0' takes several microbatches in a row

// CHECK-LABEL: module @stage0
// CHECK: graph.state @gathered.forward.0.w accumulator : tensor<4xf32>
// CHECK: graph.func @gather.forward.0() {
// CHECK: %[[W:.*]] = graph.read @w
// CHECK: %[[G:.*]] = dist.all_gather %[[W]]
// CHECK: graph.write @gathered.forward.0.w, %[[G]]
// CHECK: graph.func forward @forward.0
// CHECK-NOT: dist.all_gather
// CHECK: graph.read @gathered.forward.0.w
// CHECK: graph.state @gathered.backward.0.w accumulator : tensor<4xf32>
// CHECK: graph.state @w.grad.whole accumulator : tensor<4xf32> init(#graph.fill<0.0>) {{.*}}unreduced = {"dp"}
// CHECK: graph.func @gather.backward.0() {
// CHECK: dist.all_gather
// CHECK: graph.write @w.grad.whole, %cst
// CHECK: graph.func @reduce.backward.0() {
// CHECK: %[[SUM:.*]] = graph.read @w.grad.whole
// CHECK: %[[PART:.*]] = dist.reduce_scatter {{ *}}sum %[[SUM]]
// CHECK: arith.addf %{{.*}}, %[[PART]]
// CHECK: graph.write @w.grad,
// CHECK: graph.func backward @backward.0
// CHECK-NOT: dist.reduce_scatter
// CHECK: graph.read @w.grad.whole
// CHECK: graph.write @w.grad.whole
// CHECK: graph.entry train_step @train_step [@forward.0, @backward.0, @gather.forward.0, @gather.backward.0, @reduce.backward.0, @update]
// CHECK-SAME: timeline [2, 0, 0, 0, 0, 1, 3, 0, 1, 0, 1, 1, 4, 0, 5, 0] microbatches 2

module {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  dist.strategy @s {
    mesh @m ["pp", "dp"] [2, 2]
    zero level 3 once
  }
  module @stage0 {
    graph.param @w : tensor<2xf32> init(#graph.fill<1.0>) key("w")
    graph.state @w.grad accumulator of @w : tensor<2xf32> init(#graph.fill<0.0>)
    graph.state @kept stash : tensor<4xf32> init(#graph.fill<0.0>) slots 2
    graph.func forward @forward.0(%x: tensor<4xf32> {graph.name = "x"}) attributes {stage.index = array<i64: 0>} {
      %w = graph.read @w : tensor<2xf32>
      %g = dist.all_gather %w dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
      %y = arith.mulf %x, %g : tensor<4xf32>
      graph.write @kept, %y : tensor<4xf32>
      graph.return
    }
    graph.func backward @backward.0() attributes {stage.index = array<i64: 0>} {
      %w = graph.read @w : tensor<2xf32>
      %g = dist.all_gather %w dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
      %kept = graph.read @kept : tensor<4xf32>
      %d = arith.mulf %kept, %g : tensor<4xf32>
      %r = dist.reduce_scatter sum %d dim 0 over ["dp"] : tensor<4xf32> -> tensor<2xf32>
      %old = graph.read @w.grad : tensor<2xf32>
      %new = arith.addf %old, %r : tensor<2xf32>
      graph.write @w.grad, %new : tensor<2xf32>
      graph.return
    }
    graph.func update @update() {
      graph.return
    }
    graph.entry train_step @train_step [@forward.0, @backward.0, @update] repeat [1, 1, 1] timeline [0, 0, 0, 1, 1, 0, 1, 1, 2, 0] microbatches 2
  }
}

// -----

// CHECK-LABEL: module @stage0
// CHECK-NOT: @gathered
// CHECK: graph.func forward @forward.0
// CHECK: dist.all_gather
// CHECK: graph.entry train_step @train_step [@forward.0, @backward.0, @update]
module {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  dist.strategy @s {
    mesh @m ["pp", "dp"] [2, 2]
    zero level 3 once
  }
  module @stage0 {
    graph.param @w : tensor<2xf32> init(#graph.fill<1.0>) key("w")
    graph.state @kept stash : tensor<4xf32> init(#graph.fill<0.0>) slots 1
    graph.func forward @forward.0(%x: tensor<4xf32> {graph.name = "x"}) attributes {stage.index = array<i64: 0>} {
      %w = graph.read @w : tensor<2xf32>
      %g = dist.all_gather %w dim 0 over ["dp"] {dist.prefetch = 1 : i64} : tensor<2xf32> -> tensor<4xf32>
      %y = arith.mulf %x, %g : tensor<4xf32>
      graph.write @kept, %y : tensor<4xf32>
      graph.return
    }
    graph.func backward @backward.0() attributes {stage.index = array<i64: 0>} {
      %kept = graph.read @kept : tensor<4xf32>
      graph.return
    }
    graph.func update @update() {
      graph.return
    }
    graph.entry train_step @train_step [@forward.0, @backward.0, @update] repeat [1, 1, 1] timeline [0, 0, 1, 0, 0, 1, 1, 1, 2, 0] microbatches 2
  }
}
