// Every buffer gets its place.
// RUN: bowline-opt %s --pack-arena --split-input-file | FileCheck %s

// In place, but not where the next run of the segment reads the input again, though it has one command only.
// CHECK: plan.arena_bytes = 208
// CHECK: %x = plan.buffer "x" input {{.*}} at 0
// CHECK: %y = plan.buffer "y" output {{.*}} at 64
// CHECK: %a = plan.buffer "a" temporary {{.*}} at 128
// CHECK: %b = plan.buffer "b" temporary {{.*}} at 192
module {
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
  plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] in_place [1, 0]
    cost 0.0, 0.0
  plan.program @p timeline [0, 0, 1, 0, 1, 0, 2, 0] {
    plan.segment "begin" {
      plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    }
    plan.segment "again" {
      plan.launch @k(%a, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    }
    plan.segment "end" {
      plan.copy %b to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    }
  }
}

// -----

// One run takes over the dying input; only one of two outputs does, though the first is never read.
// CHECK: plan.arena_bytes = 208
// CHECK: %a = plan.buffer "a" temporary {{.*}} at [[A:[0-9]+]]
// CHECK: %b = plan.buffer "b" temporary {{.*}} at [[A]]
// CHECK-NOT: "c" temporary {{.*}} at [[A]]
// CHECK: %c = plan.buffer "c" temporary
module {
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
  %c = plan.buffer "c" temporary : !plan.buffer<tensor<4xf32>>
  plan.kernel @k registered "k"
    [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>]
    in_place [1, 0, 2, 0] cost 0.0, 0.0
  plan.program @p timeline [0, 0] {
    plan.segment "s" {
      plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.launch @k(%a, %b, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
      plan.copy %c to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    }
  }
}

// -----

// A card's library wants its workspace at a multiple of 256 bytes.
// CHECK: plan.arena_bytes = 784
// CHECK: %x = plan.buffer "x" input {{.*}} at 0
// CHECK: %y = plan.buffer "y" output {{.*}} at 256
// CHECK: %a = plan.buffer "a" temporary {{.*}} at 512
// CHECK: %b = plan.buffer "b" temporary {{.*}} at 768
module attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
  plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
  plan.program @p timeline [0, 0] {
    plan.segment "s" {
      plan.copy %x to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.launch @k(%a, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
      plan.copy %b to %y : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    }
  }
}

// -----

// Each memory space has an arena: what is in one says nothing about the places in another, and buffers share bytes of
// the host as they do of the device. Offsets are multiples of each buffer's own alignment.
// CHECK: module attributes
// CHECK-SAME: plan.arena_bytes = 144
// CHECK-SAME: plan.other_arenas = {external = 18 : i64, pinned_host = 528 : i64}
// CHECK: %x = plan.buffer "x" input {{.*}} at 0
// CHECK: %a = plan.buffer "a" temporary {{.*}} at 64
// CHECK: %b = plan.buffer "b" temporary {{.*}} at 128
// CHECK: %kept = plan.buffer "kept" state in pinned_host {{.*}} at 0
// CHECK: %h = plan.buffer "h" temporary in pinned_host {{.*}} at 512
// CHECK: %g = plan.buffer "g" temporary in pinned_host {{.*}} at 512 align 256
// CHECK: %u = plan.buffer "u" parameter in external {{.*}} at 0 align 2
// CHECK: %v = plan.buffer "v" parameter in external {{.*}} at 8 align 4
// CHECK: %w = plan.buffer "w" parameter in external {{.*}} at 16 align 2
module {
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
  %kept = plan.buffer "kept" state in pinned_host : !plan.buffer<tensor<66xf32>>
  %h = plan.buffer "h" temporary in pinned_host : !plan.buffer<tensor<4xf32>>
  %g = plan.buffer "g" temporary in pinned_host : !plan.buffer<tensor<4xf32>> align 256
  %u = plan.buffer "u" parameter in external : !plan.buffer<tensor<3xbf16>> align 2
  %v = plan.buffer "v" parameter in external : !plan.buffer<tensor<2xf32>> align 4
  %w = plan.buffer "w" parameter in external : !plan.buffer<tensor<1xbf16>> align 2
  plan.kernel @add registered "add"
    [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
  plan.program @p timeline [0, 0] {
    plan.segment "s" {
      plan.copy %x to %h : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.copy %h to %a : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.copy %a to %g : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.copy %g to %b : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
      plan.launch @add(%a, %b, %x) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    }
  }
}
