// Results are computed where they are wanted.
// RUN: bowline-opt %s --donate-buffers --split-input-file | FileCheck %s

// The copy goes, and with it the temporary buffer.
// CHECK-NOT: "t"
// CHECK: plan.launch @k(%x, %y)
// CHECK-NEXT: }
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.copy %t to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// The kernel reads the variable and may not overwrite it; the other one may.
// CHECK: plan.launch @k(%w, %t)
// CHECK-NEXT: plan.copy %t to %w
// CHECK-NEXT: plan.launch @inplace(%w, %w)
// CHECK-NEXT: }
%w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<4xf32>>
%u = plan.buffer "u" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @inplace registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] in_place [1, 0]
  cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%w, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.copy %t to %w : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.launch @inplace(%w, %u) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.copy %u to %w : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// Ranks gather new values where the parameter is; sums do not overwrite what other ranks still read.
// CHECK: all_gather @dp(%s) to(%w)
// CHECK-NEXT: plan.collective {{.*}}all_reduce @dp(%v) to(%t)
// CHECK-NEXT: plan.copy %t to %v
// CHECK-NEXT: }
dist.mesh @mesh ["dp"] [2]
%w = plan.buffer "w" parameter : !plan.buffer<tensor<8xf32>>
%v = plan.buffer "v" parameter : !plan.buffer<tensor<8xf32>>
%s = plan.buffer "s" input : !plan.buffer<tensor<4xf32>>
%n = plan.buffer "n" temporary : !plan.buffer<tensor<8xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<8xf32>>
plan.communicator @dp over ["dp"]
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    plan.collective all_gather @dp(%s) to(%n) : (!plan.buffer<tensor<4xf32>>) to(!plan.buffer<tensor<8xf32>>)
    plan.copy %n to %w : !plan.buffer<tensor<8xf32>> to !plan.buffer<tensor<8xf32>>
    plan.collective all_reduce @dp(%v) to(%t) : (!plan.buffer<tensor<8xf32>>) to(!plan.buffer<tensor<8xf32>>)
    plan.copy %t to %v : !plan.buffer<tensor<8xf32>> to !plan.buffer<tensor<8xf32>>
  }
}

// -----

// What the next run of the segment reads stays where it is.
// CHECK: plan.launch @k(%t, %y)
// CHECK-NEXT: plan.launch @k(%x, %t)
// CHECK-NEXT: plan.copy %t to %y
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 0, 0] {
  plan.segment "s" {
    plan.launch @k(%t, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.launch @k(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.copy %t to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// A kernel does not reach memory of the host.
// CHECK: plan.launch @k(%x, %t)
// CHECK-NEXT: plan.copy %t to %h
%x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
%h = plan.buffer "h" temporary in pinned_host : !plan.buffer<tensor<4xf32>>
%t = plan.buffer "t" temporary : !plan.buffer<tensor<4xf32>>
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    plan.launch @k(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    plan.copy %t to %h : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}
