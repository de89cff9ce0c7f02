// Weights that commands only read move to memory of the caller, and nothing makes copies of them.
// RUN: bowline-opt %s --map-weights --hoist-into-prepare --state-alignments --pack-arena --split-input-file | FileCheck %s
// RUN: bowline-opt %s --map-weights --split-input-file --remark-format=emitRemark --remarks-filter=memory \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// What a kernel or a copy reads moves; what is written, by whichever entry, or sent to other ranks, stays; and so does a
// state that is no weight. What depends on an external weight is not computed ahead.
// CHECK-LABEL: module @generate
// CHECK-SAME: plan.other_arenas = {external = 48 : i64}
// CHECK-DAG: %read = plan.buffer "read" parameter in external {{.*}} at 0 align 4
// CHECK-DAG: %copied = plan.buffer "copied" parameter in external {{.*}} at 16 align 2
// CHECK-DAG: %unused = plan.buffer "unused" parameter in external {{.*}} at 32 align 4
// CHECK-DAG: %written = plan.buffer "written" parameter : {{.*}} at
// CHECK-DAG: %sent = plan.buffer "sent" parameter : {{.*}} at
// CHECK-DAG: %cache = plan.buffer "cache" state : {{.*}} at
// CHECK-DAG: #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>, align 64>
// CHECK-NOT: prepare
// REMARK: 3 weights of 48 bytes are read where the caller maps them
// REMARK: 2 weights of 32 bytes stay in the arena
module @generate {
  dist.mesh @mesh ["dp"] [2]
  plan.communicator @dp over ["dp"]
  %read = plan.buffer "read" parameter : !plan.buffer<tensor<4xf32>>
  %copied = plan.buffer "copied" parameter : !plan.buffer<tensor<8xbf16>>
  %unused = plan.buffer "unused" parameter : !plan.buffer<tensor<4xf32>>
  %written = plan.buffer "written" parameter : !plan.buffer<tensor<4xf32>>
  %sent = plan.buffer "sent" parameter : !plan.buffer<tensor<4xf32>>
  %cache = plan.buffer "cache" state : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<8xbf16>>
  %c = plan.buffer "c" temporary : !plan.buffer<tensor<8xf32>>
  plan.state %read key "read" saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.state %copied key "copied" saved|weight init "fill(0)" : !plan.buffer<tensor<8xbf16>>
  plan.state %unused key "unused" saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.state %written key "written" saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.state %sent key "sent" saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.state %cache key "cache" per_request init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
  plan.program @generate_program timeline [0, 0] {
    plan.segment "s" {
      plan.launch @k(%read, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
      plan.launch @k(%a, %cache) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
      plan.copy %copied to %b : !plan.buffer<tensor<8xbf16>> to !plan.buffer<tensor<8xbf16>>
      plan.collective all_gather @dp (%sent) to (%c) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<8xf32>>)
    }
  }
  plan.entry generate @generate program @generate_program inputs [] limits [] () outputs [] ()
  plan.program @init_program timeline [0, 0] {
    plan.segment "s" {
      plan.launch @k(%read, %written) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    }
  }
  plan.entry init @init program @init_program inputs [] limits [] () outputs [] ()
}

// -----

// Kernels of cards take larger alignments, which then are those of their buffers, also where a weight is the caller's.
// CHECK-LABEL: module @card
// CHECK-DAG: %w = plan.buffer "w" parameter in external {{.*}} at 0 align 256
// CHECK-DAG: %a = plan.buffer "a" output : {{.*}} at 0 align 256
// CHECK-DAG: #plan.arg<read, tensor<4xf32>, align 256>, #plan.arg<write, tensor<4xf32>, align 256>
module @card attributes {plan.target = #plan.target<device = "cuda", arch = "x86_64", cpu = "sm_80", threads = 1>} {
  %w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>>
  %a = plan.buffer "a" output : !plan.buffer<tensor<4xf32>>
  plan.state %w key "w" saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
  plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
  plan.program @p timeline [0, 0] {
    plan.segment "s" {
      plan.launch @k(%w, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>
    }
  }
}
