// Where memory is short, it goes to the commands that save most time per byte, not to those that come first.
// RUN: bowline-opt %s --allocate-memory --hoist-invariants | FileCheck %s --check-prefix=ALL
// RUN: bowline-opt %s --allocate-memory=memory-limit=21000 --hoist-invariants | FileCheck %s --check-prefix=ALL
// RUN: bowline-opt %s --allocate-memory=memory-limit=17000 --hoist-invariants --remark-format=emitRemark \
// RUN:   --remarks-filter=memory 2>&1 | FileCheck %s
// RUN: bowline-opt %s --allocate-memory=memory-limit=13000 --hoist-invariants | FileCheck %s --check-prefix=NONE

// ALL: plan.segment "s_begin"
// ALL-NEXT: plan.launch @cheap
// ALL-NEXT: plan.launch @dear
// ALL-NEXT: plan.launch @reads_dear
// ALL-NOT: plan.stays

// 'reads_dear' saves most per byte, but needs the result of 'dear'.
// CHECK: remark: [Missed] AllocateMemory
// CHECK-SAME: room for 2 of 3 commands and weights
// CHECK: plan.segment "s_begin"
// CHECK-NEXT: plan.launch @dear
// CHECK-NEXT: plan.launch @reads_dear
// CHECK-NEXT: }
// CHECK: plan.segment "s"
// CHECK: plan.launch @cheap({{.*}}plan.stays

// NONE: timeline [0, 0, 0, 1]
// NONE: plan.launch @cheap
// NONE: plan.launch @dear
// NONE: plan.launch @reads_dear
module {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<1024xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 2 stride 64
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<1024xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<1024xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<2048xf32>>
plan.kernel @cheap registered "k" [#plan.arg<read, tensor<1024xf32>>, #plan.arg<write, tensor<1024xf32>>] cost 0.0, 1.0e3
plan.kernel @dear registered "k" [#plan.arg<read, tensor<1024xf32>>, #plan.arg<write, tensor<1024xf32>>] cost 0.0, 1.0e9
plan.kernel @reads_dear registered "k" [#plan.arg<read, tensor<1024xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 1.0e9
plan.kernel @large registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<2048xf32>>] cost 0.0, 0.0
plan.kernel @sum registered "k" [#plan.arg<read, tensor<2048xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @uses registered "k" [#plan.arg<read, tensor<1024xf32>>, #plan.arg<read_write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @end registered "k"
  [#plan.arg<read, tensor<1024xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<read_write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 0, 1] {
  plan.segment "s" {
    plan.launch @large(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<2048xf32>>
    plan.launch @sum(%t, %y) : !plan.buffer<tensor<2048xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @cheap(%w, %a) : !plan.buffer<tensor<1024xf32>>, !plan.buffer<tensor<1024xf32>>
    plan.launch @uses(%a, %y) : !plan.buffer<tensor<1024xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @dear(%w, %b) : !plan.buffer<tensor<1024xf32>>, !plan.buffer<tensor<1024xf32>>
    plan.launch @reads_dear(%b, %c) : !plan.buffer<tensor<1024xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @end(%b, %c, %y) : !plan.buffer<tensor<1024xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
}
