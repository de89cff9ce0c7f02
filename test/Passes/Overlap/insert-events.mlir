// Commands of different streams that use the same slot of a buffer are ordered, and no others.
// RUN: bowline-opt %s --insert-events --split-input-file | FileCheck %s

// A value goes to the other stream, and its result comes back; a copy between uses neither.
// CHECK: plan.program @p timeline [0, 0]
// CHECK: plan.segment "s"
// CHECK-NEXT: plan.copy %x to %a
// CHECK-NEXT: plan.signal 0 from "InsertEvents"
// CHECK-NEXT: plan.copy %x to %c :
// CHECK-NEXT: plan.wait 0 on 1 from "InsertEvents"
// CHECK-NEXT: plan.copy %a to %b on 1
// CHECK-NEXT: plan.signal 1 on 1 from "InsertEvents"
// CHECK-NEXT: plan.wait 1 from "InsertEvents"
// CHECK-NEXT: plan.copy %b to %y
// CHECK-NEXT: }
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] streams ["compute", "dp"] {
  plan.segment "s" {
    plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %x to %c : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %a to %b on 1 : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %b to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// A buffer with slots has as many events. The first call of each slot finds the slot free, which "begin" says.
// CHECK: plan.program @p timeline [0, 0, 1, 0, 1, 1, 1, 2]
// CHECK: plan.segment "begin"
// CHECK-NEXT: plan.signal 2 from "InsertEvents"
// CHECK-NEXT: plan.signal 3 from "InsertEvents"
// CHECK-NEXT: }
// CHECK: plan.segment "s"
// CHECK-NEXT: plan.wait 2 slots 2 on 1 from "InsertEvents"
// CHECK-NEXT: plan.copy %x to %a on 1
// CHECK-NEXT: plan.signal 0 slots 2 on 1 from "InsertEvents"
// CHECK-NEXT: plan.wait 0 slots 2 from "InsertEvents"
// CHECK-NEXT: plan.copy %a to %y
// CHECK-NEXT: plan.signal 2 slots 2 from "InsertEvents"
// CHECK-NEXT: }
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>> slots 2 stride 64
plan.program @p timeline [0, 0, 0, 1, 0, 2] streams ["compute", "pp"] {
  plan.segment "s" {
    plan.copy %x to %a on 1 : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %a to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// One stream needs no events.
// CHECK: plan.program @p timeline [0, 0, 0, 1] {
// CHECK-NOT: plan.signal
// CHECK-NOT: plan.wait
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0, 0, 1] {
  plan.segment "s" {
    plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %a to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// Where the target orders communications, each one follows the one before it, also from call to call.
// CHECK: plan.program @p timeline [0, 0, 1, 0, 1, 0]
// CHECK: plan.segment "begin"
// CHECK-NEXT: plan.signal 1 from "InsertEvents"
// CHECK-NEXT: }
// CHECK: plan.segment "s"
// CHECK-NEXT: plan.wait 1 on 1 from "InsertEvents"
// CHECK-NEXT: plan.collective
// CHECK-NEXT: plan.signal 0 on 1 from "InsertEvents"
// CHECK-NEXT: plan.wait 0 on 2 from "InsertEvents"
// CHECK-NEXT: plan.collective
// CHECK-NEXT: plan.signal 1 on 2 from "InsertEvents"
// CHECK-NEXT: }
module attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  dist.mesh @mesh ["dp"] [2]
  plan.communicator @first over ["dp"]
  plan.communicator @second over ["dp"]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<4xf32>>
  plan.program @p timeline [0, 0, 0, 0] streams ["compute", "a", "b"] {
    plan.segment "s" {
      plan.collective all_reduce @first(%x) to(%y) on 1
        : (!plan.buffer<tensor<4xf32>>) to(!plan.buffer<tensor<4xf32>>)
      plan.collective all_reduce @second(%x) to(%z) on 2
        : (!plan.buffer<tensor<4xf32>>) to(!plan.buffer<tensor<4xf32>>)
    }
  }
}
