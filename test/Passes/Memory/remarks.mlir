// The size of the arena, beside what no packing goes below: inputs, outputs and what is alive at one command.
// RUN: bowline-opt %s --pack-arena --remark-format=emitRemark --remarks-filter=memory -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// CHECK: remark: [Analysis] PackArena | Category:memory
// CHECK-SAME: Remark="arena of 256 bytes: 128 persistent, 128 temporary, 1.000 times the 128 alive at one time"
// CHECK-NOT: arena
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<16xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<16xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<16xf32>>
plan.kernel @first registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<16xf32>>] cost 0.0, 0.0
plan.kernel @next registered "k" [#plan.arg<read, tensor<16xf32>>, #plan.arg<write, tensor<16xf32>>] cost 0.0, 0.0
plan.kernel @last registered "k" [#plan.arg<read, tensor<16xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    plan.launch @first(%x, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<16xf32>>
    plan.launch @next(%a, %b) : !plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<16xf32>>
    plan.launch @next(%b, %c) : !plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<16xf32>>
    plan.launch @last(%c, %y) : !plan.buffer<tensor<16xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
