// What gives the same in every run of a segment runs once.
// RUN: bowline-opt %s --hoist-invariants --split-input-file | FileCheck %s
// RUN: bowline-opt %s --allocate-memory=memory-limit=384 --hoist-invariants --split-input-file | FileCheck %s --check-prefix=LIMIT
// RUN: bowline-opt %s --hoist-invariants --split-input-file --remark-format=emitRemark --remarks-filter=memory \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Two commands in a row on what is not written in the segment; the segment in front runs once already.
// CHECK: timeline [0, 0, 1, 0, 1, 1]
// CHECK: plan.segment "begin"
// CHECK-NEXT: plan.launch @k(%w, %a)
// CHECK-NEXT: plan.launch @k(%w, %b)
// CHECK-NEXT: plan.launch @k(%b, %c)
// CHECK: plan.segment "repeated"
// CHECK-NEXT: plan.launch @k(%x, %d)
// CHECK-NEXT: plan.launch @two(%c, %d, %y)
// REMARK: remark: [Passed] HoistInvariants | Category:memory
// REMARK-SAME: Remark="2 commands run once instead of once per microbatch"
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 2 stride 64
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
%d = plan.buffer "d" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @two registered "k"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 1, 0, 1, 1] {
  plan.segment "begin" {
    plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
  plan.segment "repeated" {
    plan.launch @k(%w, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%x, %d) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%b, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%c, %d, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}

// -----

// No segment in front runs once: a new one does, and the others keep their places. Equal commands become one.
// CHECK: timeline [0, 0, 1, 0, 1, 1, 2, 0]
// CHECK: plan.segment "repeated_begin"
// CHECK-NEXT: plan.launch @k(%w, %a)
// CHECK-NEXT: }
// CHECK: plan.segment "repeated"
// CHECK-NEXT: plan.launch @two(%a, %a, %y)
// CHECK-NEXT: }
// CHECK: plan.segment "end"
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @two registered "k"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 0, 1, 1, 0] {
  plan.segment "repeated" {
    plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%w, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%a, %b, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
  plan.segment "end" {
    plan.launch @k(%y, %w) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}

// -----

// Stays: what a later command of the segment changes, what another command writes too, what is read before it is
// written, a state that is written, and much that is made out of nothing.
// CHECK: plan.segment "begin"
// CHECK-NEXT: }
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%v = plan.buffer "v" parameter : !plan.buffer<tensor<4xf32>>
%s = plan.buffer "s" state : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
%large = plan.buffer "large" temporary : !plan.buffer<tensor<300000xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @fill registered "f" [#plan.arg<write, tensor<300000xf32>>] cost 0.0, 0.0
plan.kernel @reduce registered "r" [#plan.arg<read, tensor<300000xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 1, 0, 1, 1] {
  plan.segment "begin" {
  }
  plan.segment "repeated" {
    plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%a, %w) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%v, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%w, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%c, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%v, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%v, %s) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @fill(%large) : !plan.buffer<tensor<300000xf32>>
    plan.launch @reduce(%large, %y) : !plan.buffer<tensor<300000xf32>>, !plan.buffer<tensor<4xf32>>
  }
}

// -----

// Kept through all runs, %b needs memory of its own, for which a limit may leave no room.
// CHECK: timeline [0, 0, 1, 0, 1, 1]
// CHECK-NEXT: plan.segment "s_begin"
// CHECK-NEXT: plan.launch @k(%w, %b)
// LIMIT: plan.program @limited timeline [0, 0, 0, 1]
// LIMIT-NEXT: plan.segment "s" {
// LIMIT-NEXT: plan.launch @k(%w, %b)
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 2 stride 64
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
%d = plan.buffer "d" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @two registered "k"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @limited timeline [0, 0, 0, 1] {
  plan.segment "s" {
    plan.launch @k(%w, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%b, %x, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%x, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%c, %d) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%c, %d, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
