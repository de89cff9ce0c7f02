// Waits that follow from the order of streams and from other waits go, and what is left has numbers without gaps.
// RUN: bowline-opt %s --elide-events --split-input-file | FileCheck %s
// RUN: bowline-opt %s --elide-events --split-input-file --remark-format=emitRemark --remarks-filter=overlap 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// The later of two signals of a stream implies the earlier one, whichever is waited for first; so does a wait on the way.
// REMARK: p: 3 waits and 3 signals follow from the others
// CHECK: plan.program @p timeline [0, 0]
// CHECK-NEXT: plan.segment "s"
// CHECK-NEXT: plan.copy %x to %a
// CHECK-NEXT: plan.copy %x to %b
// CHECK-NEXT: plan.signal 0{{$}}
// CHECK-NEXT: plan.wait 0 on 1
// CHECK-NEXT: plan.copy %b to %c on 1
// CHECK-NEXT: plan.signal 1 on 1
// CHECK-NEXT: plan.wait 1 on 2
// CHECK-NEXT: plan.copy %c to %y on 2
// CHECK-NEXT: }
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] streams ["compute", "dp", "tp"] {
  plan.segment "s" {
    plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.signal 3
    plan.copy %x to %b : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.signal 5
    plan.wait 3 on 1
    plan.wait 5 on 1
    plan.copy %b to %c on 1 : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.signal 7 on 1
    plan.signal 8 on 1
    plan.wait 7 on 2
    plan.wait 3 on 2
    plan.wait 7 on 2
    plan.copy %c to %y on 2 : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.signal 9 on 2
  }
}
