// What goes between stages runs beside what they compute.
// RUN: bowline-opt %s --schedule-commands --insert-events | FileCheck %s

// Stashes have slots; values are received where they are looked for. Segments that only send or receive are on the
// stream of their channel, which is a communicator along the axis of the stages.
// CHECK: %[[GOT:.*]] = plan.buffer "step.got" temporary : !plan.buffer<tensor<6xf32>> slots 2
// CHECK: plan.communicator @activation.even over ["pp"]
// CHECK: %[[MADE:.*]] = plan.buffer "step.made" temporary : !plan.buffer<tensor<6xf32>> slots 3
// CHECK: plan.communicator @activation.odd over ["pp"]
// CHECK: timeline [0, 0, 1, 0, 2, 0, 3, 0, {{.*}} 4, 0] streams ["compute", "activation.even", "activation.odd"]

// What a stream waits for before it can have been signalled is signalled first.
// CHECK-NEXT: plan.segment "begin"
// CHECK-NEXT: plan.signal [[USED:[0-9]+]] from "InsertEvents"
// CHECK: plan.segment "receive"
// CHECK-NEXT: plan.wait [[USED]] slots 2 on 1 from "InsertEvents"
// CHECK-NEXT: plan.receive @activation.even from 0(%[[GOT]]) on 1 from "ScheduleCommands"
// CHECK-NEXT: plan.signal [[RECEIVED:[0-9]+]] slots 2 on 1 from "InsertEvents"
// CHECK: plan.segment "forward"
// CHECK-NEXT: plan.wait [[RECEIVED]] slots 2 from "InsertEvents"
// CHECK-NEXT: plan.launch @k(%[[GOT]], %[[GOT]], %{{.*}}) from
// CHECK-NEXT: plan.signal [[USED]] slots 2 from "InsertEvents"
// CHECK-NEXT: plan.wait [[SENT:[0-9]+]] slots 3 from "InsertEvents"
// CHECK-NEXT: plan.copy %{{.*}} to %[[MADE]] from
// CHECK-NEXT: plan.signal [[COMPUTED:[0-9]+]] slots 3 from "InsertEvents"
// CHECK: plan.segment "send"
// CHECK-NEXT: plan.wait [[COMPUTED]] slots 3 on 2 from "InsertEvents"
// CHECK-NEXT: plan.send @activation.odd to 2(%[[MADE]]) on 2 from "ScheduleCommands"
// CHECK-NEXT: plan.signal [[SENT]] slots 3 on 2 from "InsertEvents"
module attributes {stage.axis = "pp"} {
  dist.mesh @mesh ["pp"] [3]
  plan.kernel @k registered "k"
    [#plan.arg<read, tensor<6xf32>>, #plan.arg<read, tensor<6xf32>>, #plan.arg<write, tensor<6xf32>>] cost 0.0, 0.0
  graph.state @got stash : tensor<6xf32> init(#graph.fill<0.0>) slots 2
  graph.state @made stash : tensor<6xf32> init(#graph.fill<0.0>) slots 3
  graph.func @receive() {
    %x = stage.receive from 0 channel "activation.even" : tensor<6xf32>
    graph.write @got, %x : tensor<6xf32>
    graph.return
  }
  graph.func @forward() {
    %x = graph.read @got : tensor<6xf32>
    %y = plan.call @k(%x, %x) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    graph.write @made, %y : tensor<6xf32>
    graph.return
  }
  graph.func @send() {
    %y = graph.read @made : tensor<6xf32>
    stage.send %y to 2 channel "activation.odd" : tensor<6xf32>
    graph.return
  }
  graph.func @update() {
    graph.return
  }
  graph.entry @step [@receive, @forward, @send, @update] repeat [1, 1, 1, 1]
    timeline [0, 0, 1, 0, 2, 0, 0, 1, 1, 1, 2, 1, 0, 2, 1, 2, 2, 2, 0, 3, 1, 3, 2, 3, 3, 0] microbatches 4
}
