// What depends on parameters and constants alone runs when these are set, and its results persist.
// RUN: bowline-opt %s --hoist-into-prepare --split-input-file | FileCheck %s
// RUN: bowline-opt %s --allocate-memory=memory-limit=448 --hoist-into-prepare --split-input-file | FileCheck %s --check-prefix=LIMIT
// RUN: bowline-opt %s --hoist-into-prepare --split-input-file --remark-format=emitRemark --remarks-filter=memory \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Two in a row, of which only the second result is used by others; what two entries compute becomes one. A result that
// is changed in place later, what depends on an input, and what a second command writes too, stay where they are.
// CHECK-LABEL: module @generate
// CHECK-DAG: %w = plan.buffer "w" parameter
// CHECK-DAG: %a = plan.buffer "a" temporary
// CHECK-DAG: %b = plan.buffer "b" state
// CHECK-DAG: %d = plan.buffer "d" temporary
// CHECK-NOT: plan.buffer "b2"
// CHECK: plan.program @prefill_program timeline [0, 0]
// CHECK-NEXT: plan.segment "s" {
// CHECK-NEXT: plan.launch @two(%b, %x, %d)
// CHECK-NEXT: plan.launch @k(%w, %e)
// CHECK-NEXT: plan.launch @change(%e)
// CHECK-NEXT: plan.launch @k(%w, %f)
// CHECK-NEXT: plan.launch @k(%x, %f)
// CHECK-NEXT: plan.launch @two(%d, %f, %y)
// CHECK-NEXT: }
// CHECK: plan.program @decode_program timeline [0, 0]
// CHECK-NEXT: plan.segment "s" {
// CHECK-NEXT: plan.launch @two(%b, %x, %y2)
// CHECK-NEXT: }
// CHECK: plan.entry @decode
// CHECK: plan.program @prepare_program timeline [0, 0] {
// CHECK-NEXT: plan.segment "prepare" {
// CHECK-NEXT: plan.launch @k(%c, %a)
// CHECK-NEXT: plan.launch @two(%w, %a, %b)
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: plan.entry prepare @prepare program @prepare_program inputs [] limits []() outputs []()
// LIMIT-LABEL: module @generate
// LIMIT-NOT: @prepare
// LIMIT-LABEL: module @initialised
// REMARK: remark: [Passed] HoistIntoPrepare | Category:memory
// REMARK-SAME: Remark="4 commands run once when parameters are set instead of in each call"
module @generate {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" constant : !plan.buffer<tensor<4xf32>>
plan.constant %c = dense<1.0> : tensor<4xf32> : !plan.buffer<tensor<4xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%y2 = plan.buffer "y2" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
%d = plan.buffer "d" temporary : !plan.buffer<tensor<4xf32>>
%e = plan.buffer "e" temporary : !plan.buffer<tensor<4xf32>>
%f = plan.buffer "f" temporary : !plan.buffer<tensor<4xf32>>
%a2 = plan.buffer "a2" temporary : !plan.buffer<tensor<4xf32>>
%b2 = plan.buffer "b2" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @change registered "k" [#plan.arg<read_write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @two registered "k"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @prefill_program timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%c, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%w, %a, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%b, %x, %d) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%w, %e) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @change(%e) : !plan.buffer<tensor<4xf32>>
    plan.launch @k(%w, %f) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%x, %f) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%d, %f, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
plan.entry @prefill program @prefill_program inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4xf32>>) outputs ["y"] (%y : !plan.buffer<tensor<4xf32>>)
plan.program @decode_program timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%c, %a2) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%w, %a2, %b2) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%b2, %x, %y2) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
plan.entry @decode program @decode_program inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4xf32>>) outputs ["y"] (%y2 : !plan.buffer<tensor<4xf32>>)
}

// -----

// `init` may write parameters, and is no entry whose commands move.
// CHECK-LABEL: module @initialised
// CHECK: plan.segment "init"
// CHECK-NEXT: plan.launch @k(%c, %w)
// CHECK: plan.segment "prepare"
// CHECK-NEXT: plan.launch @k(%w, %a)
module @initialised {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%c = plan.buffer "c" constant : !plan.buffer<tensor<4xf32>>
plan.constant %c = dense<1.0> : tensor<4xf32> : !plan.buffer<tensor<4xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @two registered "k"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @init_program timeline [0, 0] {
  plan.segment "init" {
    plan.launch @k(%c, %w) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
plan.entry init @init program @init_program inputs [] limits [] () outputs [] ()
plan.program @run_program timeline [0, 0] {
  plan.segment "run" {
    plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @two(%a, %x, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
plan.entry @run program @run_program inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4xf32>>) outputs ["y"] (%y : !plan.buffer<tensor<4xf32>>)
}

// -----

// Where an entry writes parameters there is nothing that stays, and what is made out of little is made again.
// CHECK-LABEL: module @trains
// CHECK-NOT: @prepare
module @trains {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%v = plan.buffer "v" parameter : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @step timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%a, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%y, %v) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
}

// -----

// CHECK-LABEL: module @makes_much_of_little
// CHECK-NOT: @prepare
module @makes_much_of_little {
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%large = plan.buffer "large" temporary : !plan.buffer<tensor<300000xf32>>
plan.kernel @fill registered "f" [#plan.arg<write, tensor<300000xf32>>] cost 0.0, 0.0
plan.kernel @reduce registered "r" [#plan.arg<read, tensor<300000xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @step timeline [0, 0] {
  plan.segment "s" {
    plan.launch @fill(%large) : !plan.buffer<tensor<300000xf32>>
    plan.launch @reduce(%large, %y) : !plan.buffer<tensor<300000xf32>>, !plan.buffer<tensor<4xf32>>
  }
}
}

// -----

// What persists has all its rows.
// CHECK-LABEL: module @leaves_rows_out
// CHECK: %a = plan.buffer "a" temporary
// CHECK-NOT: @prepare
module @leaves_rows_out {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4x2xf32>>
%n = plan.buffer "n" constant : !plan.buffer<tensor<1xi32>>
plan.constant %n = dense<3> : tensor<1xi32> : !plan.buffer<tensor<1xi32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<4x2xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4x2xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4x2xf32>>
plan.kernel @rows symbol "rows" extent 4
  [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<1xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1, 0, 2] cost 0.0, 0.0
plan.kernel @use symbol "use" extent 4
  [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<1xi32>>, #plan.arg<read, tensor<4x2xf32>>, #plan.arg<write, tensor<4x2xf32>>]
  cost 0.0, 0.0
plan.program @run_program timeline [0, 0] {
  plan.segment "run" {
    plan.launch @rows(%w, %n, %a) : !plan.buffer<tensor<4x2xf32>>, !plan.buffer<tensor<1xi32>>, !plan.buffer<tensor<4x2xf32>>
    plan.launch @use(%a, %n, %x, %y) : !plan.buffer<tensor<4x2xf32>>, !plan.buffer<tensor<1xi32>>, !plan.buffer<tensor<4x2xf32>>, !plan.buffer<tensor<4x2xf32>>
  }
}
plan.entry @run program @run_program inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4x2xf32>>) outputs ["y"] (%y : !plan.buffer<tensor<4x2xf32>>)
}
