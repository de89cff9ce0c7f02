// Functions on values become programs of commands on buffers.
// RUN: bowline-opt %s --schedule-commands --split-input-file | FileCheck %s

// A read is the variable's buffer, a reshape the same buffer, a write a copy; microbatches have slots.
// CHECK: %w = plan.buffer "w" parameter : !plan.buffer<tensor<2x3xf32>>
// CHECK: plan.state %w key "weight" trained|saved|weight init "fill(1
// CHECK: %[[X:.*]] = plan.buffer "step.x" input : !plan.buffer<tensor<6xf32>> slots 3 stride 64
// CHECK: %[[SUM:.*]] = plan.buffer "step.k.0" temporary
// CHECK: %[[OUT:.*]] = plan.buffer "step.result0" output
// CHECK-NOT: graph.
// CHECK: plan.program @step_program timeline [0, 0, 0, 1, 0, 2, 1, 0]
// CHECK: plan.segment "many"
// CHECK-NEXT: plan.launch @k(%w, %[[X]], %[[SUM]]) from "ScheduleCommands"
// CHECK-NEXT: plan.copy %[[SUM]] to %w
// CHECK: plan.segment "once"
// CHECK-NEXT: plan.copy %w to %[[OUT]]
// CHECK: plan.entry @step program @step_program inputs ["x"] limits [0](%[[X]] : {{.*}}) outputs ["result0"](%[[OUT]]
graph.param @w : tensor<2x3xf32> init(#graph.fill<1.0>) key("weight")
plan.kernel @k registered "k"
  [#plan.arg<read, tensor<6xf32>>, #plan.arg<read, tensor<6xf32>>, #plan.arg<write, tensor<6xf32>>] cost 0.0, 0.0
graph.func @many(%x: tensor<6xf32> {graph.name = "x"}) {
  %w = graph.read @w : tensor<2x3xf32>
  %flat = graph.reshape %w : (tensor<2x3xf32>) -> tensor<6xf32>
  %sum = plan.call @k(%flat, %x) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %square = graph.reshape %sum : (tensor<6xf32>) -> tensor<2x3xf32>
  graph.write @w, %square : tensor<2x3xf32>
  graph.return
}
graph.func @once() -> tensor<2x3xf32> {
  %w = graph.read @w : tensor<2x3xf32>
  graph.write @w, %w : tensor<2x3xf32>
  %again = graph.read @w : tensor<2x3xf32>
  graph.return %again : tensor<2x3xf32>
}
graph.entry @step [@many, @once] repeat [3, 1]

// -----

// A value that outlives a write is copied first: two variables change places.
// CHECK: %[[OLD:.*]] = plan.buffer "swap.a.old" temporary
// CHECK: plan.segment "f"
// CHECK-NEXT: plan.copy %a to %[[OLD]]
// CHECK-NEXT: plan.copy %b to %a
// CHECK-NEXT: plan.copy %[[OLD]] to %b
// CHECK-NEXT: }
graph.state @a saved : tensor<3xf32> init(#graph.fill<0.0>)
graph.state @b saved : tensor<3xf32> init(#graph.fill<0.0>)
graph.func @f() {
  %a = graph.read @a : tensor<3xf32>
  %b = graph.read @b : tensor<3xf32>
  graph.write @a, %b : tensor<3xf32>
  graph.write @b, %a : tensor<3xf32>
  graph.return
}
graph.entry @swap [@f] repeat [1]
