// Every operation, attribute and type parses, prints in its own form and survives the round trip.
// RUN: bowline-opt %s | FileCheck %s

// CHECK: module @toy attributes {
// CHECK-SAME: plan.arena_bytes = 8192 : i64
// CHECK-SAME: plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 2>
module @toy attributes {
  plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 2>,
  plan.arena_bytes = 8192 : i64
} {
  // A buffer has a place only after memory was packed. Values print under the buffer's name.
  // CHECK: %w = plan.buffer "w" parameter : !plan.buffer<tensor<4x3xf32>> at 0
  %w = plan.buffer "w" parameter : !plan.buffer<tensor<4x3xf32>> at 0
  // CHECK: %w.m = plan.buffer "w.m" state : !plan.buffer<tensor<4x3xf32>> at 64
  %m = plan.buffer "w.m" state : !plan.buffer<tensor<4x3xf32>> at 64
  // CHECK: %step = plan.buffer "step" state : !plan.buffer<tensor<i32>> at 128
  %step = plan.buffer "step" state : !plan.buffer<tensor<i32>> at 128
  // CHECK: %cache = plan.buffer "cache" state : !plan.buffer<tensor<2xf32>> at 576
  %cache = plan.buffer "cache" state : !plan.buffer<tensor<2xf32>> at 576
  // CHECK: %tokens = plan.buffer "tokens" input : !plan.buffer<tensor<4xi32>> at 192 slots 4 stride 64
  %tokens = plan.buffer "tokens" input : !plan.buffer<tensor<4xi32>> at 192 slots 4 stride 64
  // CHECK: %loss = plan.buffer "loss" output : !plan.buffer<tensor<f32>> at 448
  %loss = plan.buffer "loss" output : !plan.buffer<tensor<f32>> at 448
  // CHECK: %table = plan.buffer "table" constant : !plan.buffer<tensor<2xf32>> at 512
  %table = plan.buffer "table" constant : !plan.buffer<tensor<2xf32>> at 512
  // CHECK: %x = plan.buffer "x" temporary : !plan.buffer<tensor<4x3xf32>>{{$}}
  %x = plan.buffer "x" temporary : !plan.buffer<tensor<4x3xf32>>
  // Memory of the host, or of the caller; and addresses that are multiples of more or less than 64.
  // CHECK: %staged = plan.buffer "staged" temporary in pinned_host : !plan.buffer<tensor<4x3xf32>> at 4096 align 4096 slots 2 stride 8192
  %staged = plan.buffer "staged" temporary in pinned_host : !plan.buffer<tensor<4x3xf32>> at 4096 align 4096 slots 2 stride 8192
  // CHECK: %mapped = plan.buffer "mapped" parameter in external : !plan.buffer<tensor<4x3xbf16>> at 2 align 2{{$}}
  %mapped = plan.buffer "mapped" parameter in external : !plan.buffer<tensor<4x3xbf16>> at 2 align 2
  // CHECK: %work = plan.buffer "work" scratch : !plan.buffer<tensor<256xui8>>{{$}}
  %work = plan.buffer "work" scratch : !plan.buffer<tensor<256xui8>>

  // CHECK: plan.state %w key "model.w" trained|saved|weight init "normal(0, 0.02)" : !plan.buffer<tensor<4x3xf32>>
  plan.state %w key "model.w" trained|saved|weight init "normal(0, 0.02)" : !plan.buffer<tensor<4x3xf32>>
  // CHECK: plan.state %w.m key "w.m" saved init "fill(0)"
  plan.state %m key "w.m" saved init "fill(0)" : !plan.buffer<tensor<4x3xf32>>
  // CHECK: plan.state %step key "step" saved|step init "fill(0)"
  plan.state %step key "step" saved|step init "fill(0)" : !plan.buffer<tensor<i32>>
  // CHECK: plan.state %cache key "cache" per_request init "fill(0)"
  plan.state %cache key "cache" per_request init "fill(0)" : !plan.buffer<tensor<2xf32>>
  // CHECK: plan.constant %table = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  plan.constant %table = dense<[1.0, 2.0]> : tensor<2xf32> : !plan.buffer<tensor<2xf32>>

  // Machine code is bytes.
  // CHECK: plan.image "elf" dense<[127, 69, 76, 70]> : tensor<4xi8>
  plan.image "elf" dense<[127, 69, 76, 70]> : tensor<4xi8>
  // A kernel of the registry, with what it is specialised on and its workspace.
  // CHECK: plan.kernel @gather.0 registered "gather_rows" config {causal = 1 : i64, scale = 5.000000e-01 : f64}
  // CHECK-SAME: [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<write, tensor<4x3xf32>>, #plan.arg<write, tensor<256xui8>>]
  // CHECK-SAME: cost 1.000000e+00, 2.000000e+00
  plan.kernel @gather.0 registered "gather_rows" config {causal = 1 : i64, scale = 0.5}
    [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<write, tensor<4x3xf32>>, #plan.arg<write, tensor<256xui8>>] cost 1.0, 2.0
  // A kernel that waits for code.
  // CHECK: plan.kernel @gather.1 registered "gather_rows"
  // CHECK-SAME: [#plan.arg<read, tensor<4x3xf32>, align 16>, #plan.arg<write, tensor<4x3xf32>, align 64>]
  plan.kernel @gather.1 registered "gather_rows"
    [#plan.arg<read, tensor<4x3xf32>, align 16>, #plan.arg<write, tensor<4x3xf32>, align 64>] cost 1.0, 2.0
  // CHECK: plan.kernel @later.0 body @later.0.body [#plan.arg<read_write, tensor<f32>>] cost
  plan.kernel @later.0 body @later.0.body [#plan.arg<read_write, tensor<f32>>] cost 0.0, 4.0
  // A kernel of the registry whose epilogue waits for code, and one that has it.
  // CHECK: plan.kernel @matmul.0 registered "matmul" config {m = 4 : i64} body @matmul.0.epilogue
  // CHECK-SAME: [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<read, tensor<3x3xf32>>, #plan.arg<write, tensor<4x3xbf16>>] cost 7.200000e+01, 1.080000e+02
  plan.kernel @matmul.0 registered "matmul" config {m = 4} body @matmul.0.epilogue
    [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<read, tensor<3x3xf32>>, #plan.arg<write, tensor<4x3xbf16>>] cost 72.0, 108.0
  // CHECK: plan.kernel @matmul.1 registered "matmul" config {m = 4 : i64} symbol "matmul.1.epilogue" [#plan.arg<read
  // CHECK-NOT: extent
  plan.kernel @matmul.1 registered "matmul" config {m = 4} symbol "matmul.1.epilogue"
    [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<read, tensor<3x3xf32>>, #plan.arg<write, tensor<4x3xbf16>>] cost 72.0, 108.0
  // A kernel with code, whose output may overwrite its input.
  // CHECK: plan.kernel @add.0 symbol "add.0" extent 4 [{{.*}}] in_place [1, 0] cost
  plan.kernel @add.0 symbol "add.0" extent 4 [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<write, tensor<4x3xf32>>]
    in_place [1, 0] cost 12.0, 96.0
  // One that leaves out rows of its arguments.
  // CHECK: plan.kernel @rows.0 symbol "rows.0" extent 4 [{{.*}}] in_place [2, 0] rows [1, 0, 2] cost
  plan.kernel @rows.0 symbol "rows.0" extent 4
    [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<read, tensor<2xi32>>, #plan.arg<write, tensor<4x3xf32>>]
    in_place [2, 0] rows [1, 0, 2] cost 12.0, 96.0
  // A kernel with code for a device that launches blocks of threads.
  // CHECK: plan.kernel @add.1 symbol "add_1" grid [3, 128] [#plan.arg<read, tensor<4x3xf32>>, {{.*}}] cost
  plan.kernel @add.1 symbol "add_1" grid [3, 128] [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<write, tensor<4x3xf32>>]
    cost 12.0, 96.0

  // CHECK: plan.program @train_program timeline [0, 0, 0, 1, 1, 0]
  plan.program @train_program timeline [0, 0, 0, 1, 1, 0] {
    // CHECK: plan.segment "microbatch"
    plan.segment "microbatch" {
      // CHECK: plan.launch @gather.0(%w, %x, %work) from "SelectKernels"
      plan.launch @gather.0(%w, %x, %work) from "SelectKernels"
        : !plan.buffer<tensor<4x3xf32>>, !plan.buffer<tensor<4x3xf32>>, !plan.buffer<tensor<256xui8>>
    }
    // CHECK: plan.segment "update"
    plan.segment "update" {
      // Only the size and the elements matter to a launch and only the size to a copy.
      // CHECK: plan.launch @add.0(%x, %w.m) :
      plan.launch @add.0(%x, %m) : !plan.buffer<tensor<4x3xf32>>, !plan.buffer<tensor<4x3xf32>>
      // CHECK: plan.copy %w.m to %w from "ScheduleCommands"
      plan.copy %m to %w from "ScheduleCommands" : !plan.buffer<tensor<4x3xf32>> to !plan.buffer<tensor<4x3xf32>>
    }
  }
  // CHECK: plan.entry train_step @train program @train_program inputs ["tokens"] limits [32](%tokens : !plan.buffer<tensor<4xi32>>)
  // CHECK-SAME: outputs ["loss"](%loss : !plan.buffer<tensor<f32>>)
  plan.entry train_step @train program @train_program inputs ["tokens"] limits [32] (%tokens : !plan.buffer<tensor<4xi32>>)
    outputs ["loss"] (%loss : !plan.buffer<tensor<f32>>)
  // A program may do nothing, for nobody.
  // CHECK: plan.program @idle timeline []
  plan.program @idle timeline [] {
  }
  // CHECK: plan.entry step @nothing bucket 8 program @idle inputs [] limits []() outputs []()
  plan.entry step @nothing bucket 8 program @idle inputs [] limits [] () outputs [] ()
  // CHECK: plan.attachment "config.json" "{}"
  plan.attachment "config.json" "{}"

  // Before memory exists a kernel is called on values.
  // CHECK-LABEL: graph.func @values
  graph.func @values(%v: tensor<4x3xf32>) -> tensor<12xf32> {
    // CHECK: plan.call @gather.0(%arg0) : (tensor<4x3xf32>) -> tensor<12xf32>
    %0 = plan.call @gather.0(%v) : (tensor<4x3xf32>) -> tensor<12xf32>
    graph.return %0 : tensor<12xf32>
  }
}
