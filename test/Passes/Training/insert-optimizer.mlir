// The function that runs once per step.
// RUN: bowline-opt %s --insert-optimizer="lr=0.5 clip-norm=1.5" | FileCheck %s
// RUN: bowline-opt %s --add-strategy=microbatches=4 --insert-optimizer="kind=sgd clip-norm=0" | FileCheck %s --check-prefix=SGD
// RUN: bowline-opt %s --insert-optimizer="schedule=cosine warmup-steps=10 decay-steps=110" \
// RUN:   | FileCheck %s --check-prefix=COSINE
// RUN: not bowline-opt %s --insert-optimizer=kind=adam 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not bowline-opt %s --insert-optimizer=schedule=linear 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not bowline-opt %s --insert-optimizer=schedule=cosine 2>&1 | FileCheck %s --check-prefix=DECAY

// KIND: error: unknown optimizer 'adam'; use adamw or sgd
// SCHEDULE: error: unknown learning-rate schedule 'linear'; use constant or cosine
// DECAY: error: a cosine schedule needs decay-steps (0) greater than warmup-steps (0)

// Each parameter gets two moments, which checkpoints hold.
// CHECK: graph.param @w
// CHECK-DAG: graph.state @w.m saved of @w : tensor<3x2xf32> init(#graph.fill<0.0>)
// CHECK-DAG: graph.state @w.v saved of @w : tensor<3x2xf32> init(#graph.fill<0.0>)
// CHECK: graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
// CHECK-LABEL: graph.func update @train_update() ->
// CHECK-SAME: (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.name = "grad_norm"}, tensor<f32> {graph.name = "lr"})
// CHECK: %[[COUNT:.*]] = graph.read @token_count
// CHECK: %[[ONE:.*]] = arith.constant dense<1.0{{.*}}> : tensor<f32>
// CHECK: %[[PER_TOKEN:.*]] = arith.divf %[[ONE]], %[[COUNT]]
// Both parameters enter the norm, the matrix row by row.
// CHECK: %[[GW:.*]] = graph.read @w.grad
// CHECK: graph.reduce sum %{{.*}} dims [1] : (tensor<3x2xf32>) -> tensor<3xf32>
// CHECK: %[[GB:.*]] = graph.read @b.grad
// Gradients are divided by the number of tokens, once, and become shorter only where their norm is above the limit.
// CHECK: %[[ROOT:.*]] = math.sqrt
// CHECK: %[[NORM:.*]] = arith.mulf %[[ROOT]], %[[PER_TOKEN]]
// CHECK: %[[LIMIT:.*]] = arith.divf
// CHECK: %[[CLIP:.*]] = arith.minimumf %[[LIMIT]], %[[ONE]]
// CHECK: %[[SCALE:.*]] = arith.mulf %[[PER_TOKEN]], %[[CLIP]]
// CHECK: %[[STEP:.*]] = graph.read @step
// CHECK: %[[NEXT:.*]] = arith.addi %[[STEP]]
// The corrections are computed in f64.
// CHECK: math.powf %{{.*}} : tensor<f64>
// CHECK: arith.truncf %{{.*}} : tensor<f64> to tensor<f32>
// CHECK: %[[W:.*]] = graph.read @w : tensor<3x2xf32>
// CHECK: %[[SCALES:.*]] = graph.broadcast %[[SCALE]]
// CHECK: %[[G:.*]] = arith.mulf %[[GW]], %[[SCALES]]
// CHECK: %[[OLD_M:.*]] = graph.read @w.m
// CHECK: %[[OLD_V:.*]] = graph.read @w.v
// CHECK: %[[KEPT_M:.*]] = arith.mulf %[[OLD_M]],
// CHECK: %[[NEW_M:.*]] = arith.mulf %[[G]],
// CHECK: %[[M:.*]] = arith.addf %[[KEPT_M]], %[[NEW_M]]
// CHECK: %[[KEPT_V:.*]] = arith.mulf %[[OLD_V]],
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK: %[[NEW_V:.*]] = arith.mulf %[[SQUARE]],
// CHECK: %[[V:.*]] = arith.addf %[[KEPT_V]], %[[NEW_V]]
// CHECK: %[[UPDATE:.*]] = arith.divf %[[M]],
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[W]],
// CHECK: %[[STEPPED:.*]] = arith.mulf %[[UPDATE]],
// CHECK: %[[NEW:.*]] = arith.subf %[[DECAYED]], %[[STEPPED]]
// CHECK: graph.read @b : tensor<2xf32>
// Nothing is written before everything is computed.
// CHECK: graph.write @step, %[[NEXT]]
// CHECK-NEXT: graph.write @w.m, %[[M]]
// CHECK-NEXT: graph.write @w.v, %[[V]]
// CHECK-NEXT: graph.write @w, %[[NEW]]
// CHECK-NEXT: graph.write @b.m
// CHECK-NEXT: graph.write @b.v
// CHECK-NEXT: graph.write @b,
// CHECK-NEXT: graph.return %{{.*}}, %[[NORM]], %{{.*}} :
// CHECK: graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [1, 1]

// SGD-NOT: @w.m
// SGD-LABEL: graph.func update @train_update
// SGD: %[[PER_TOKEN:.*]] = arith.divf
// SGD: %[[GW:.*]] = graph.read @w.grad
// SGD: %[[GB:.*]] = graph.read @b.grad
// SGD-NOT: arith.minimumf
// SGD: %[[RATE:.*]] = arith.truncf %{{.*}} : tensor<f64> to tensor<f32>
// SGD-NEXT: %[[W:.*]] = graph.read @w : tensor<3x2xf32>
// SGD-NEXT: %[[SCALES:.*]] = graph.broadcast %[[PER_TOKEN]]
// SGD-NEXT: %[[SCALED:.*]] = arith.mulf %[[GW]], %[[SCALES]]
// SGD-NEXT: %[[RATES:.*]] = graph.broadcast %[[RATE]]
// SGD-NEXT: %[[STEPPED:.*]] = arith.mulf %[[SCALED]], %[[RATES]]
// SGD-NEXT: %[[NEW:.*]] = arith.subf %[[W]], %[[STEPPED]]
// SGD-NEXT: %[[B:.*]] = graph.read @b : tensor<2xf32>
// SGD: graph.write @step
// SGD-NEXT: graph.write @w, %[[NEW]]
// SGD-NEXT: graph.write @b,
// SGD: graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [4, 1]

// COSINE-LABEL: graph.func update @train_update
// COSINE: math.cos
// COSINE: arith.cmpf ole
// COSINE: arith.select
graph.param @w : tensor<3x2xf32> init(#graph.normal<0.02>) key("w")
graph.state @w.grad accumulator of @w : tensor<3x2xf32> init(#graph.fill<0.0>)
graph.param @b : tensor<2xf32> init(#graph.fill<0.0>) key("b")
graph.state @b.grad accumulator of @b : tensor<2xf32> init(#graph.fill<0.0>)
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.state @token_count accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch() {
  graph.return
}
