// In a pipeline reductions move from the update into the last call of the segment that completes what they reduce.
// RUN: bowline-opt %s --overlap-commands --split-input-file | FileCheck %s
// RUN: bowline-opt %s --overlap-commands --insert-events --elide-events --pack-arena --split-input-file \
// RUN:   | FileCheck %s --check-prefix=PACK
// RUN: bowline-opt %s --overlap-commands --split-input-file --remark-format=emitRemark --remarks-filter=overlap 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: bowline-opt %s --overlap-commands="memory-limit=1000" --split-input-file | FileCheck %s --check-prefix=LIMIT

// The last of two backward passes is a copy, with a temporary buffer of its own, in the place that it had in the
// timeline: before the gradient is sent. What the first reduction adds up is complete before the second one's. Results are the
// accumulators; what is summed over stages, and what computes with results, stays in the update. The number of tokens,
// which the forward pass completes, comes with the gradient in its bucket.
// REMARK: remark: [Passed] {{.*}}step: 2 reductions begin in the last backward pass that adds to their operands
// CHECK-DAG: %t = plan.buffer "t" temporary
// CHECK-DAG: %[[OWN:t_[0-9]+]] = plan.buffer "t" temporary
// CHECK-NOT: plan.buffer "ra"
// CHECK: plan.program @step timeline [0, 0, 1, 0, 0, 1, 2, 0, 3, 1, 2, 1, 4, 0] streams ["compute", "pp", "dp"]
// CHECK-NEXT: plan.segment "forward" {
// CHECK-NEXT: plan.launch @count(%tokens)
// CHECK-NEXT: plan.launch @count(%other)
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment "backward" {
// CHECK-NEXT: plan.launch @backward(%x, %t)
// CHECK-NEXT: plan.launch @add(%t, %a)
// CHECK-NEXT: plan.launch @backward(%x, %t)
// CHECK-NEXT: plan.launch @add(%t, %b)
// CHECK-NEXT: plan.launch @backward(%x, %grad)
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment "send" {
// CHECK-NEXT: plan.send @pp to 1(%grad) on 1
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment "backward+reductions" {
// CHECK-NEXT: plan.launch @backward(%x, %[[OWN]])
// CHECK-NEXT: plan.launch @add(%[[OWN]], %a)
// CHECK-NEXT: plan.signal [[A:[0-9]+]] from "OverlapCommands"
// CHECK-NEXT: plan.wait [[A]] on 2 from "OverlapCommands"
// CHECK-NEXT: plan.collective {{ *}}all_reduce @dp(%tokens, %a) to(%tokens, %a) on 2
// CHECK-NEXT: plan.launch @backward(%x, %[[OWN]])
// CHECK-NEXT: plan.launch @add(%[[OWN]], %b)
// CHECK-NEXT: plan.launch @narrow(%b, %narrow)
// CHECK-NEXT: plan.signal [[B:[0-9]+]]
// CHECK-NEXT: plan.wait [[B]] on 2
// CHECK-NEXT: plan.collective {{ *}}reduce_scatter @dp(%narrow) to(%rb) on 2
// CHECK-NEXT: plan.launch @backward(%x, %grad)
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment "update" {
// CHECK-DAG: plan.launch @update(%a, %y)
// CHECK-DAG: all_reduce @dp(%other) to(%ro)
// CHECK-DAG: all_reduce @pp(%tokens) to(%total)
// CHECK: plan.launch @shard(%rb, %z)

// The copy of the buffer that the last call has for itself, and the results of that call, share memory with the buffer
// of the other calls: the arena ends with the copy, of 2^20 bytes.
// PACK: plan.arena_bytes = 7340416
// PACK: %t_{{[0-9]+}} = plan.buffer "t" {{.*}} at 6291840

// Where nothing fits, nothing changes.
// LIMIT: plan.program @step timeline [0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 2, 1, 3, 0] streams ["compute", "pp"]
// LIMIT: plan.segment "update" {
// LIMIT-NEXT: all_reduce @dp(%tokens, %a) to(%rtokens, %ra) :
module attributes {stage.axis = "pp"} {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 2 stride 64
  %y = plan.buffer "y" output : !plan.buffer<tensor<262144xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<131072xf32>>
  %t = plan.buffer "t" temporary : !plan.buffer<tensor<262144xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<262144xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<262144xf32>>
  %grad = plan.buffer "grad" temporary : !plan.buffer<tensor<262144xf32>> slots 2 stride 1048576
  %tokens = plan.buffer "tokens" temporary : !plan.buffer<tensor<f32>>
  %other = plan.buffer "other" temporary : !plan.buffer<tensor<f32>>
  %ra = plan.buffer "ra" temporary : !plan.buffer<tensor<262144xf32>>
  %rtokens = plan.buffer "rtokens" temporary : !plan.buffer<tensor<f32>>
  %ro = plan.buffer "ro" output : !plan.buffer<tensor<f32>>
  %total = plan.buffer "total" output : !plan.buffer<tensor<f32>>
  %narrow = plan.buffer "narrow" temporary : !plan.buffer<tensor<262144xf32>>
  %rb = plan.buffer "rb" temporary : !plan.buffer<tensor<131072xf32>>
  plan.communicator @pp over ["pp"]
  plan.communicator @dp over ["dp"]
  plan.kernel @count registered "k" [#plan.arg<read_write, tensor<f32>>] cost 0.0, 8.0
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e8, 0.0
  plan.kernel @add registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<read_write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.kernel @narrow registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.kernel @update registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.kernel @shard registered "k" [#plan.arg<read, tensor<131072xf32>>, #plan.arg<write, tensor<131072xf32>>]
    cost 0.0, 1.0e6
  plan.program @step timeline [0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 2, 1, 3, 0] streams ["compute", "pp"] {
    plan.segment "forward" {
      plan.launch @count(%tokens) : !plan.buffer<tensor<f32>>
      plan.launch @count(%other) : !plan.buffer<tensor<f32>>
    }
    plan.segment "backward" {
      plan.launch @backward(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @add(%t, %a) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @add(%t, %b) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %grad) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "send" {
      plan.send @pp to 1(%grad) on 1 : !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "update" {
      plan.collective all_reduce @dp(%tokens, %a) to(%rtokens, %ra)
        : (!plan.buffer<tensor<f32>>, !plan.buffer<tensor<262144xf32>>)
        to(!plan.buffer<tensor<f32>>, !plan.buffer<tensor<262144xf32>>)
      plan.launch @narrow(%b, %narrow) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective reduce_scatter @dp(%narrow) to(%rb)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.collective all_reduce @dp(%other) to(%ro) : (!plan.buffer<tensor<f32>>) to(!plan.buffer<tensor<f32>>)
      plan.collective all_reduce @pp(%rtokens) to(%total) : (!plan.buffer<tensor<f32>>) to(!plan.buffer<tensor<f32>>)
      plan.launch @update(%ra, %y) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @shard(%rb, %z) : !plan.buffer<tensor<131072xf32>>, !plan.buffer<tensor<131072xf32>>
    }
  }
}

// -----

// With one microbatch there is nothing to copy. What the update needs in front of a reduction keeps its operand; what
// depends on a result that stays behind, and what reads a slot, stays too.
// CHECK: plan.program @step timeline [0, 0, 1, 0, 2, 0] streams ["compute", "pp", "dp"]
// CHECK-NEXT: plan.segment "backward+reductions" {
// CHECK-NEXT: plan.launch @backward(%x, %a)
// CHECK: all_reduce @dp(%a) to(%ra) on 2
// CHECK-NEXT: plan.launch @backward(%x, %b)
// CHECK-NEXT: }
// CHECK: plan.segment "update" {
// CHECK: all_reduce @dp(%slots) to(%w)
// CHECK-NEXT: plan.launch @update(%a, %y)
// CHECK-NEXT: all_reduce @pp(%b) to(%rb)
// CHECK: all_reduce @dp(%rb) to(%z)
module attributes {stage.axis = "pp"} {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<262144xf32>>
  %v = plan.buffer "v" output : !plan.buffer<tensor<262144xf32>>
  %w = plan.buffer "w" output : !plan.buffer<tensor<262144xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<262144xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<262144xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<262144xf32>>
  %ra = plan.buffer "ra" temporary : !plan.buffer<tensor<262144xf32>>
  %rb = plan.buffer "rb" temporary : !plan.buffer<tensor<262144xf32>>
  %slots = plan.buffer "slots" temporary : !plan.buffer<tensor<262144xf32>> slots 2 stride 1048576
  plan.communicator @pp over ["pp"]
  plan.communicator @dp over ["dp"]
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e8, 0.0
  plan.kernel @update registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.program @step timeline [0, 0, 1, 0, 2, 0] streams ["compute", "pp"] {
    plan.segment "backward" {
      plan.launch @backward(%x, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "receive" {
      plan.receive @pp from 1(%slots) on 1 : !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "update" {
      plan.launch @update(%a, %y) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective all_reduce @dp(%a) to(%ra)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.collective all_reduce @pp(%b) to(%rb)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.collective all_reduce @dp(%rb) to(%z)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.collective all_reduce @dp(%slots) to(%w)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @update(%ra, %v) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
    }
  }
}

// -----

// Two stages on one rank, whose last backward passes lie apart: each has its reductions behind it. What a reduction of
// the later one needs moves with that, and what else needs it comes no earlier.
// CHECK: plan.program @step timeline [1, 0, 2, 0, 0, 0, 3, 0] streams ["compute", "pp", "dp"]
// CHECK-NEXT: plan.segment "backward.0+reductions" {
// CHECK-NEXT: plan.launch @narrow(%a, %n)
// CHECK: reduce_scatter @dp(%n) to(%s) on 2
// CHECK-NEXT: plan.launch @backward(%x, %b)
// CHECK: all_reduce @dp(%b, %n) to(%b, %rn) on 2
// CHECK: plan.segment "backward.1+reductions" {
// CHECK-NEXT: plan.launch @backward(%x, %a)
// CHECK-NEXT: plan.launch @backward(%x, %c)
// CHECK: all_reduce @dp(%c) to(%c) on 2
// CHECK: plan.segment "receive" {
// CHECK: plan.segment "update" {
// CHECK-NEXT: plan.launch @narrow(%c, %y)
module attributes {stage.axis = "pp"} {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<262144xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<262144xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<262144xf32>>
  %c = plan.buffer "c" temporary : !plan.buffer<tensor<262144xf32>>
  %n = plan.buffer "n" temporary : !plan.buffer<tensor<262144xf32>>
  %rb = plan.buffer "rb" temporary : !plan.buffer<tensor<262144xf32>>
  %rc = plan.buffer "rc" temporary : !plan.buffer<tensor<262144xf32>>
  %rn = plan.buffer "rn" temporary : !plan.buffer<tensor<262144xf32>>
  %s = plan.buffer "s" output : !plan.buffer<tensor<131072xf32>>
  %in = plan.buffer "in" temporary : !plan.buffer<tensor<4xf32>>
  plan.communicator @pp over ["pp"]
  plan.communicator @dp over ["dp"]
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e8, 0.0
  plan.kernel @narrow registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.program @step timeline [1, 0, 2, 0, 0, 0, 3, 0] streams ["compute", "pp"] {
    plan.segment "backward.0" {
      plan.launch @backward(%x, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "backward.1" {
      plan.launch @backward(%x, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "receive" {
      plan.receive @pp from 1(%in) on 1 : !plan.buffer<tensor<4xf32>>
    }
    plan.segment "update" {
      plan.launch @narrow(%a, %n) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective all_reduce @dp(%b, %n) to(%rb, %rn)
        : (!plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>)
        to(!plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>)
      plan.collective reduce_scatter @dp(%n) to(%s)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.collective all_reduce @dp(%c) to(%rc)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @narrow(%rc, %y) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
    }
  }
}
