// Collectives are issued again for what is computed again. With sequence parallelism ranks keep shards of what they
// gather, also where nothing else is computed again.
// RUN: bowline-opt %s --add-strategy='mesh=tp=2 sequence-parallel' --recompute | FileCheck %s --check-prefix=NONE
// RUN: bowline-opt %s --add-strategy='mesh=tp=2' --recompute | FileCheck %s --check-prefix=WHOLE
// RUN: bowline-opt %s --add-strategy='mesh=tp=2 recompute=selective' --recompute | FileCheck %s --check-prefix=SELECTIVE
// RUN: bowline-opt %s --add-strategy='mesh=tp=2 recompute=selective' --recompute -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// NONE: %[[SHARD:.*]] = graph.fusion(%arg0)
// NONE: graph.write @loss_sum
// NONE-NOT: graph.fusion
// NONE: %[[AGAIN:.*]] = dist.all_gather %[[SHARD]] dim 0 over ["tp"] {dist.repetition = -1 : i64}
// NONE-NEXT: graph.dot_general %[[AGAIN]], %arg1 contract [0] x [0]
// NONE-NOT: dist.reduce_scatter
// NONE: graph.return

// WHOLE: %[[WHOLE:.*]] = dist.all_gather
// WHOLE: graph.write @loss_sum
// WHOLE-NOT: dist.all_gather
// WHOLE: graph.dot_general %[[WHOLE]], %arg1 contract [0] x [0]

// The shard is cheap too.
// SELECTIVE: graph.write @loss_sum
// SELECTIVE: %[[CHEAP:.*]] = graph.fusion(%arg0)
// SELECTIVE: %[[GATHERED:.*]] = dist.all_gather %[[CHEAP]] dim 0 over ["tp"] {dist.repetition = -1 : i64}
// SELECTIVE-NEXT: graph.dot_general %[[GATHERED]], %arg1 contract [0] x [0]
// SELECTIVE-NOT: dist.reduce_scatter
// SELECTIVE: graph.return
// REMARK: recompute selective: 2 operations run again (1 of them collectives), 0.1 MiB are not kept

graph.param @w : tensor<64x64xf32> init(#graph.fill<1.0>) key("w")
graph.state @w.grad accumulator of @w : tensor<64x64xf32> init(#graph.fill<0.0>)
graph.state @v.grad accumulator of @w : tensor<64x64xf32> init(#graph.fill<0.0>)
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
dist.mesh @mesh ["tp"] [2]
graph.func microbatch @train_microbatch(%x0: tensor<256x64xf32>, %d: tensor<512x64xf32>, %e: tensor<256x64xf32>) {
  %w = graph.read @w : tensor<64x64xf32>
  %n0 = graph.fusion(%x0) : (tensor<256x64xf32>) -> tensor<256x64xf32> {
  ^bb0(%a: tensor<256x64xf32>):
    %t = math.tanh %a : tensor<256x64xf32>
    graph.yield %t : tensor<256x64xf32>
  }
  %g0 = dist.all_gather %n0 dim 0 over ["tp"] : tensor<256x64xf32> -> tensor<512x64xf32>
  %h0 = graph.dot_general %g0, %w contract [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %x1 = dist.reduce_scatter sum %h0 dim 0 over ["tp"] : tensor<512x64xf32> -> tensor<256x64xf32>
  %x2 = graph.fusion(%x1) : (tensor<256x64xf32>) -> tensor<256x64xf32> {
  ^bb0(%a: tensor<256x64xf32>):
    %t = math.exp %a : tensor<256x64xf32>
    graph.yield %t : tensor<256x64xf32>
  }
  %loss = graph.fusion(%x2) : (tensor<256x64xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<256x64xf32>):
    %t = graph.reduce sum %a dims [0, 1] : (tensor<256x64xf32>) -> tensor<f32>
    graph.yield %t : tensor<f32>
  }
  graph.write @loss_sum, %loss : tensor<f32>
  %big = graph.dot_general %e, %x1 contract [0] x [0] : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  graph.write @v.grad, %big : tensor<64x64xf32>
  %dw = graph.dot_general %g0, %d contract [0] x [0] : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<64x64xf32>
  graph.write @w.grad, %dw : tensor<64x64xf32>
  graph.return
}
