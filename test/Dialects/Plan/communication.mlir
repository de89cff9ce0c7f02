// What ranks do together parses, prints in its own form and survives the round trip.
// RUN: bowline-opt %s | FileCheck %s

dist.mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
// CHECK: plan.communicator @dp.tp over ["dp", "tp"]
plan.communicator @dp.tp over ["dp", "tp"]
plan.communicator @pp over ["pp"]
// CHECK: %x = plan.buffer "x" parameter : !plan.buffer<tensor<1x4xf32>>
// CHECK-SAME: layout <global_shape = [16], view = [4, 4], dim_shardings = {{.*}}"dp", "tp"
%x = plan.buffer "x" parameter : !plan.buffer<tensor<1x4xf32>>
  layout <global_shape = [16], view = [4, 4], dim_shardings = [["dp", "tp"], []], flat_axes = []>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<16xf32>>
%z = plan.buffer "z" temporary : !plan.buffer<tensor<4xf32>>
%place = plan.buffer "place" constant : !plan.buffer<tensor<i32>>
// CHECK: plan.coordinate %place over ["dp", "tp"] : !plan.buffer<tensor<i32>>
plan.coordinate %place over ["dp", "tp"] : !plan.buffer<tensor<i32>>

// CHECK: plan.program @run timeline [0, 0, 0, 1] streams ["compute", "network"]
plan.program @run timeline [0, 0, 0, 1] streams ["compute", "network"] {
  plan.segment "microbatch" {
    // CHECK: plan.collective all_gather @dp.tp(%x) to(%y) on 1 from "InsertReshards"
    plan.collective all_gather @dp.tp (%x) to (%y) on 1 from "InsertReshards"
      : (!plan.buffer<tensor<1x4xf32>>) to (!plan.buffer<tensor<16xf32>>)
    // CHECK: plan.collective reduce_scatter @dp.tp(%y) to(%z) :
    plan.collective reduce_scatter @dp.tp (%y) to (%z) : (!plan.buffer<tensor<16xf32>>) to (!plan.buffer<tensor<4xf32>>)
    // Several tensors, in place.
    // CHECK: plan.collective all_reduce by max @dp.tp(%y, %z) to(%y, %z) :
    plan.collective all_reduce by max @dp.tp (%y, %z) to (%y, %z)
      : (!plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<4xf32>>)
    // CHECK: plan.collective permute by 3 @dp.tp(%x) to(%z) :
    plan.collective permute by 3 @dp.tp (%x) to (%z) : (!plan.buffer<tensor<1x4xf32>>) to (!plan.buffer<tensor<4xf32>>)
    // CHECK: plan.send @pp to 1(%y, %z) on 1 from "ScheduleCommands" :
    plan.send @pp to 1 (%y, %z) on 1 from "ScheduleCommands" : !plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<4xf32>>
    // CHECK: plan.receive @pp from 0(%z) :
    plan.receive @pp from 0 (%z) : !plan.buffer<tensor<4xf32>>
    // CHECK: plan.signal 0{{$}}
    plan.signal 0
    // One slot is what an event has without a word.
    // CHECK: plan.signal 3{{$}}
    plan.signal 3 slots 1
    // CHECK: plan.signal 7 slots 4 on 1 from "InsertEvents"
    plan.signal 7 slots 4 on 1 from "InsertEvents"
    // CHECK: plan.wait 7 slots 4{{$}}
    plan.wait 7 slots 4
    // CHECK: plan.wait 0 on 1 from "InsertEvents"
    plan.wait 0 on 1 from "InsertEvents"
  }
}
// The proof of an entry: numbers of what it does with other roles. None is another proof than an absent one.
// CHECK: plan.entry @step program @run inputs [] limits []() outputs []() order [0, 1, 4294967295]
plan.entry @step program @run inputs [] limits [] () outputs [] () order [0, 1, 4294967295]
// CHECK: plan.entry @known program @run inputs [] limits []() outputs []() order [] values [9223372036854775807, -1]
plan.entry @known program @run inputs [] limits [] () outputs [] () order [] values [9223372036854775807, -1]
// CHECK: plan.entry @alone program @run inputs [] limits []() outputs []() order []
plan.entry @alone program @run inputs [] limits [] () outputs [] () order []
// CHECK: plan.entry @unproven program @run inputs [] limits []() outputs [](){{$}}
plan.entry @unproven program @run inputs [] limits [] () outputs [] ()
