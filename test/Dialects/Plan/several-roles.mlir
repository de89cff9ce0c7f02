// A pipeline of two stages becomes a file and is read back: what each stage has of its own, what they share, and the
// proof that they do not wait for each other for ever.
// RUN: bowline-translate --mlir-to-plan %s -o %t.plan
// RUN: bowline-check %t.plan | FileCheck %s --check-prefix=CHECKED
// RUN: bowline-inspect --json %t.plan | FileCheck %s --check-prefix=SHARED
// RUN: bowline-translate --plan-to-mlir %t.plan -o %t.mlir
// RUN: bowline-opt %t.mlir | FileCheck %s
// RUN: bowline-translate --mlir-to-plan %t.mlir -o %t.again.plan
// RUN: cmp %t.plan %t.again.plan

// CHECKED: ranks   4 (pp=2, dp=2), 2 roles
// CHECKED: kernels 2 registered, 1 generated
// CHECKED: proven  matching        3 operations between roles have all their members
// CHECKED: proven  no deadlock     3 operations have one order that suits all ranks

// Two stages of equal code hold it once.
// SHARED: "image_bytes": 8

// CHECK: module @pipeline attributes {
// CHECK-NOT: plan.arena_bytes
// CHECK-SAME: plan.compiler = "hand"
// CHECK-SAME: plan.seed = 7 : i64
// CHECK-SAME: plan.target = #plan.target<device = "cpu"
// CHECK-SAME: stage.axis = "pp"
// CHECK-NEXT: dist.mesh @mesh ["pp", "dp"] [2, 2]
// CHECK: module @first attributes {plan.arena_bytes = 400 : i64}
// CHECK: %y = plan.buffer "y" temporary : !plan.buffer<tensor<4xf32>> at 192 slots 2 stride 64
// CHECK: plan.communicator @pp over ["pp"]
// CHECK: plan.communicator @dp over ["dp"]
// CHECK: plan.communicator @all over ["pp", "dp"]
// CHECK: plan.state %w key "w.0" trained|saved|weight init "fill(0)"
// CHECK: plan.image "elf" dense<[127, 69, 76, 70, 2, 1, 1, 0]>
// CHECK-NEXT: plan.kernel @fill.0 registered "fill"
// CHECK-NEXT: plan.kernel @add.1 symbol "add"
// CHECK-NEXT: plan.program @init_program
// CHECK: plan.program @step_program timeline [0, 0, 0, 1, 1, 0] streams ["compute", "network"]
// CHECK: plan.signal 1 slots 2 from "InsertEvents"
// CHECK-NEXT: plan.wait 1 slots 2 on 1 from "InsertEvents"
// CHECK-NEXT: plan.send @pp to 1(%y) on 1 from "ScheduleCommands"
// CHECK: plan.entry init @init {{.*}} order []
// CHECK: plan.entry @step {{.*}} order [0, 1, 2]
// CHECK: module @second attributes {plan.arena_bytes = 464 : i64}
// CHECK: plan.state %w key "w.1" trained|saved|weight init "fill(1)"
// CHECK: plan.image "elf" dense<[127, 69, 76, 70, 2, 1, 1, 0]>
// CHECK-NEXT: plan.kernel @add.1 symbol "add"
// CHECK-NEXT: plan.kernel @fill.2 registered "fill"
// CHECK-NEXT: plan.program @init_program
// CHECK: plan.receive @pp from 0(%x) on 1 from "ScheduleCommands"
// CHECK-NEXT: plan.signal 0 slots 2 on 1 from "InsertEvents"
// CHECK-NEXT: plan.wait 0 slots 2 from "InsertEvents"
// CHECK: plan.entry @step {{.*}} order [0, 1, 2]
// CHECK: }
// CHECK: plan.attachment "config.json" "{}"

// A proof that was changed by hand is data until somebody loads the plan, and is refused then. The file is not written.
// RUN: rm -f %t.swapped.plan
// RUN: sed 's/order \[0, 1, 2\]/order [1, 0, 2]/' %t.mlir > %t.swapped.mlir
// RUN: not bowline-translate --mlir-to-plan %t.swapped.mlir -o %t.swapped.plan 2>&1 | FileCheck %s --check-prefix=SWAPPED
// RUN: not ls %t.swapped.plan
// SWAPPED: certificate 1 for entry 'step': role 0: call 1: {{.*}} has number 0 after 1; numbers must increase

// So is one that fits other commands: the second stage sums before it receives the last microbatch.
// RUN: sed '/module @second/,$s/timeline \[0, 0, 0, 1, 1, 0\]/timeline [0, 0, 1, 0, 0, 1]/' %t.mlir > %t.moved.mlir
// RUN: not bowline-translate --mlir-to-plan %t.moved.mlir -o %t.moved.plan 2>&1 | FileCheck %s --check-prefix=MOVED
// MOVED: certificate 1 for entry 'step': role 1: call 1: {{.*}} is on another communicator than {{.*}} in role 0, which has the same number

// A plan without a proof is a plan, for whoever does not ask for one.
// RUN: sed 's/ order \[[0-9, ]*\]//' %t.mlir > %t.unproven.mlir
// RUN: bowline-translate --mlir-to-plan %t.unproven.mlir -o %t.unproven.plan
// RUN: bowline-translate --plan-to-mlir %t.unproven.plan | FileCheck %s --check-prefix=UNPROVEN
// UNPROVEN-NOT: order [
// UNPROVEN: plan.attachment

// One stage alone proves nothing.
// RUN: sed '/module @second/,$s/ order \[[0-9, ]*\]//' %t.mlir > %t.half.mlir
// RUN: not bowline-translate --mlir-to-plan %t.half.mlir -o %t.half.plan 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: certificate 0 for entry 'init': it is for 1 roles; the plan has 2

// Code of a role is one image, for each processor once.
// RUN: sed 's/^ *plan.image .*/&\n&/' %t.mlir > %t.images.mlir
// RUN: not bowline-translate --mlir-to-plan %t.images.mlir -o %t.images.plan 2>&1 | FileCheck %s --check-prefix=IMAGES
// IMAGES: image 0: code 1: format 'elf' for the plan's target is there twice
// RUN: sed 's/^ *plan.image "elf" \(.*\) :/plan.image "elf" \1 : tensor<8xi8> {plan.code_target = "x86-64-v4"}\n&/' %t.mlir > %t.levels.mlir
// RUN: bowline-translate --mlir-to-plan %t.levels.mlir -o %t.levels.plan
// RUN: bowline-translate --plan-to-mlir %t.levels.plan | FileCheck %s --check-prefix=LEVELS
// LEVELS: plan.image "elf" dense<{{.*}}> : tensor<8xi8> {plan.code_target = "x86-64-v4"}
// LEVELS-NEXT: plan.image "elf" dense<{{[^>]*}}> : tensor<8xi8> contracts [{{.*}}] hash "{{[0-9a-f]*}}" loc(

// An axis that the mesh does not have is none of the others.
// RUN: sed 's/@dp over \["dp"\]/@dp over ["zp"]/' %t.mlir > %t.axis.mlir
// RUN: not bowline-translate --mlir-to-plan %t.axis.mlir -o %t.axis.plan 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: sed '/dist.mesh/d' %t.mlir > %t.mesh.mlir
// RUN: not bowline-translate --mlir-to-plan %t.mesh.mlir -o %t.mesh.plan 2>&1 | FileCheck %s --check-prefix=MESH
// AXIS: 'plan.communicator' op names the axis "zp", which the module's dist.mesh does not have
// MESH: 'stage.axis' is "pp", which is no axis of the module's dist.mesh; name the axis along which the ranks of the roles lie

module @pipeline attributes {
  plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>,
  plan.seed = 7 : i64, plan.compiler = "hand", stage.axis = "pp"
} {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  module @first attributes {plan.arena_bytes = 400 : i64} {
    plan.communicator @pp over ["pp"]
    plan.communicator @dp over ["dp"]
    plan.communicator @all over ["pp", "dp"]
    %w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>> at 0 loc("model.w0")
    %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> at 64 slots 2 stride 64
    %y = plan.buffer "y" temporary : !plan.buffer<tensor<4xf32>> at 192 slots 2 stride 64 loc("model.y")
    %norm = plan.buffer "norm" output : !plan.buffer<tensor<4xf32>> at 320
    %local = plan.buffer "local" temporary : !plan.buffer<tensor<4xf32>> at 384
    plan.state %w key "w.0" trained|saved|weight init "fill(0)" : !plan.buffer<tensor<4xf32>>
    plan.image "elf" dense<[127, 69, 76, 70, 2, 1, 1, 0]> : tensor<8xi8> contracts [7628900882805972727, -5766653571812876508]
      hash "a6fca7519962dde40f81d5f03cab40835e3264ee3f3a38b3f50b7c2edceec6e2"
    plan.kernel @zero registered "fill" config {value = 0.0} [#plan.arg<write, tensor<4xf32>, align 64>] cost 0.0, 16.0
    plan.kernel @sum symbol "add" extent 4
      [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 4.0, 48.0
    plan.program @init_program timeline [0, 0] {
      plan.segment "all" {
        plan.launch @zero(%w) from "SelectKernels" : !plan.buffer<tensor<4xf32>> loc("model.w0")
      }
    }
    plan.program @step_program timeline [0, 0, 0, 1, 1, 0] streams ["compute", "network"] {
      plan.segment "forward" {
        plan.launch @sum(%x, %w, %y) from "SelectKernels"
          : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>> loc("model.layers.0")
        plan.signal 1 slots 2 from "InsertEvents"
        plan.wait 1 slots 2 on 1 from "InsertEvents"
        plan.send @pp to 1 (%y) on 1 from "ScheduleCommands" : !plan.buffer<tensor<4xf32>> loc("model.layers.1")
      }
      plan.segment "finish" {
        plan.collective all_reduce @dp (%w) to (%local) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
        plan.collective all_reduce by max @all (%local) to (%norm)
          : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
      }
    }
    plan.entry init @init program @init_program inputs [] limits [] () outputs [] () order []
    plan.entry @step program @step_program inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4xf32>>)
      outputs ["norm"] (%norm : !plan.buffer<tensor<4xf32>>) order [0, 1, 2]
  }
  module @second attributes {plan.arena_bytes = 464 : i64} {
    plan.communicator @pp over ["pp"]
    plan.communicator @all over ["pp", "dp"]
    %w = plan.buffer "w" parameter : !plan.buffer<tensor<4xf32>> at 0 loc("model.w1")
    %x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>> at 192 slots 2 stride 64
    %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>> at 320 slots 2 stride 64
    %norm = plan.buffer "norm" output : !plan.buffer<tensor<4xf32>> at 448
    plan.state %w key "w.1" trained|saved|weight init "fill(1)" : !plan.buffer<tensor<4xf32>>
    plan.image "elf" dense<[127, 69, 76, 70, 2, 1, 1, 0]> : tensor<8xi8> contracts [7628900882805972727, -5766653571812876508]
      hash "a6fca7519962dde40f81d5f03cab40835e3264ee3f3a38b3f50b7c2edceec6e2"
    plan.kernel @sum symbol "add" extent 4
      [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 4.0, 48.0
    plan.kernel @one registered "fill" config {value = 1.0} [#plan.arg<write, tensor<4xf32>, align 64>] cost 0.0, 16.0
    plan.program @init_program timeline [0, 0] {
      plan.segment "all" {
        plan.launch @one(%w) from "SelectKernels" : !plan.buffer<tensor<4xf32>> loc("model.w1")
      }
    }
    plan.program @step_program timeline [0, 0, 0, 1, 1, 0] streams ["compute", "network"] {
      plan.segment "forward" {
        plan.receive @pp from 0 (%x) on 1 from "ScheduleCommands" : !plan.buffer<tensor<4xf32>> loc("model.layers.1")
        plan.signal 0 slots 2 on 1 from "InsertEvents"
        plan.wait 0 slots 2 from "InsertEvents"
        plan.launch @sum(%x, %w, %y) from "SelectKernels"
          : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>> loc("model.layers.1")
      }
      plan.segment "finish" {
        plan.collective all_reduce by max @all (%w) to (%norm)
          : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
      }
    }
    plan.entry init @init program @init_program inputs [] limits [] () outputs [] () order []
    plan.entry @step program @step_program inputs [] limits [] ()
      outputs ["y", "norm"] (%y, %norm : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>) order [0, 1, 2]
  }
  plan.attachment "config.json" "{}"
}
