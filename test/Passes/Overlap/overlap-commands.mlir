// Communication runs beside computation, on a stream for each communicator.
// RUN: bowline-opt %s --overlap-commands --split-input-file | FileCheck %s
// RUN: bowline-opt %s --overlap-commands="prefetch=0" --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: bowline-opt %s --overlap-commands="memory-limit=1000" --split-input-file --remark-format=emitRemark \
// RUN:   --remarks-filter=overlap 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: bowline-opt %s --overlap-commands --insert-events --elide-events --pack-arena --split-input-file \
// RUN:   | FileCheck %s --check-prefix=PACK

// Gradients are reduced as the backward pass completes them, not after it; the update of the first does not wait for the
// second. What is reduced becomes the result.
// CHECK: plan.program @step timeline [0, 0] streams ["compute", "dp"]
// CHECK-NEXT: plan.segment "microbatch+update"
// CHECK-NEXT: plan.launch @backward(%x, %b)
// CHECK-NEXT: plan.signal 0 from "OverlapCommands"
// CHECK-NEXT: plan.wait 0 on 1 from "OverlapCommands"
// CHECK-NEXT: plan.collective {{ *}}all_reduce @dp(%b) to(%gb) on 1
// CHECK-NEXT: plan.launch @backward(%x, %a)
// CHECK-NEXT: plan.signal 1
// CHECK-NEXT: plan.wait 1 on 1
// CHECK-NEXT: plan.collective {{ *}}all_reduce @dp(%a) to(%ga) on 1
// CHECK-NEXT: plan.launch @update(%gb, %z)
// CHECK-NEXT: plan.launch @update(%ga, %y)
// CHECK-NEXT: }
// LIMIT: communication stays between commands that compute: beside them it would take more than the 1000 bytes
// LIMIT: plan.program @step timeline [0, 0, 1, 0] {
// PACK: %a = plan.buffer "a" {{.*}} at [[A:[0-9]+]]
// PACK: %b = plan.buffer "b" {{.*}} at [[B:[0-9]+]]
// PACK: %ga = plan.buffer "ga" {{.*}} at [[A]]
// PACK: %gb = plan.buffer "gb" {{.*}} at [[B]]
// PACK: all_reduce @dp(%b) to(%gb) on 1
// PACK-NEXT: plan.signal [[GB:[0-9]+]] on 1 from "InsertEvents"
// PACK: plan.wait [[GB]] from "InsertEvents"
// PACK-NEXT: plan.launch @update(%gb, %z)
module {
  dist.mesh @mesh ["dp"] [2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<262144xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<262144xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<262144xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<262144xf32>>
  %ga = plan.buffer "ga" temporary : !plan.buffer<tensor<262144xf32>>
  %gb = plan.buffer "gb" temporary : !plan.buffer<tensor<262144xf32>>
  plan.communicator @dp over ["dp"]
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e7, 0.0
  plan.kernel @update registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.program @step timeline [0, 0, 1, 0] {
    plan.segment "microbatch" {
      plan.launch @backward(%x, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "update" {
      plan.collective all_reduce @dp(%b) to(%gb)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.collective all_reduce @dp(%a) to(%ga)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @update(%ga, %y) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @update(%gb, %z) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
    }
  }
}

// -----

// The last of three microbatches is a copy in front of the update, with temporary buffers of its own; the accumulator is
// the same.
// CHECK: %t = plan.buffer "t" temporary
// CHECK-NEXT: %[[OWN:.*]] = plan.buffer "t" temporary
// CHECK: plan.program @step timeline [0, 0, 0, 1, 1, 2] streams ["compute", "dp"]
// CHECK-NEXT: plan.segment "microbatch" {
// CHECK-NEXT: plan.launch @backward(%x, %t)
// CHECK-NEXT: plan.launch @add(%t, %sum)
// CHECK-NEXT: plan.launch @backward(%x, %t)
// CHECK-NEXT: plan.launch @add(%t, %other)
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment "microbatch+update" {
// CHECK-NEXT: plan.launch @backward(%x, %[[OWN]])
// CHECK-NEXT: plan.launch @add(%[[OWN]], %sum)
// CHECK-NEXT: plan.signal
// CHECK-NEXT: plan.wait
// CHECK-NEXT: plan.collective {{ *}}all_reduce @dp(%sum) to(%y) on 1
// CHECK-NEXT: plan.launch @backward(%x, %[[OWN]])
// CHECK-NEXT: plan.launch @add(%[[OWN]], %other)
module {
  dist.mesh @mesh ["dp"] [2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 3 stride 64
  %y = plan.buffer "y" output : !plan.buffer<tensor<262144xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<262144xf32>>
  %t = plan.buffer "t" temporary : !plan.buffer<tensor<262144xf32>>
  %sum = plan.buffer "sum" temporary : !plan.buffer<tensor<262144xf32>>
  %other = plan.buffer "other" temporary : !plan.buffer<tensor<262144xf32>>
  plan.communicator @dp over ["dp"]
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e7, 0.0
  plan.kernel @add registered "k" [#plan.arg<read, tensor<262144xf32>>, #plan.arg<read_write, tensor<262144xf32>>]
    cost 0.0, 2.0e6
  plan.program @step timeline [0, 0, 0, 1, 0, 2, 1, 0] {
    plan.segment "microbatch" {
      plan.launch @backward(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @add(%t, %sum) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @backward(%x, %t) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @add(%t, %other) : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "update" {
      plan.collective all_reduce @dp(%sum) to(%y)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.collective all_reduce @dp(%other) to(%z)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
    }
  }
}

// -----

// Parameters are gathered while the layer before computes, as many ahead as their prefetch distance says; without
// prefetch where they are used, and then nothing is to be gained.
// CHECK: plan.program @forward timeline [0, 0] streams ["compute", "fsdp"]
// CHECK: all_gather @fsdp(%w0) to(%g0) on 1
// CHECK-NEXT: plan.launch @layer(%x, %g0, %h0)
// CHECK-NEXT: plan.signal 1
// CHECK-NEXT: plan.wait 1 on 1
// CHECK-NEXT: all_gather @fsdp(%w1) to(%g1) on 1
// CHECK-NEXT: plan.launch @layer(%h0, %g0, %h1)
// CHECK-NEXT: plan.launch @layer(%h1, %g1, %h0)
// CHECK-NEXT: plan.signal 2
// CHECK-NEXT: plan.wait 2 on 1
// CHECK-NEXT: all_gather @fsdp(%w2) to(%g2) on 1
// CHECK-NEXT: plan.launch @layer(%h0, %g1, %h1)
// CHECK-NEXT: plan.launch @layer(%h1, %g2, %y)
// NONE: plan.program @forward timeline [0, 0] {
// NONE: plan.launch @layer(%h0, %g0, %h1)
// NONE-NEXT: all_gather @fsdp(%w1) to(%g1) :
module {
  dist.mesh @mesh ["fsdp"] [2]
  %w0 = plan.buffer "w0" parameter : !plan.buffer<tensor<131072xf32>>
  %w1 = plan.buffer "w1" parameter : !plan.buffer<tensor<131072xf32>>
  %w2 = plan.buffer "w2" parameter : !plan.buffer<tensor<131072xf32>>
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<4xf32>>
  %h0 = plan.buffer "h0" temporary : !plan.buffer<tensor<4xf32>>
  %h1 = plan.buffer "h1" temporary : !plan.buffer<tensor<4xf32>>
  %g0 = plan.buffer "g0" temporary : !plan.buffer<tensor<262144xf32>>
  %g1 = plan.buffer "g1" temporary : !plan.buffer<tensor<262144xf32>>
  %g2 = plan.buffer "g2" temporary : !plan.buffer<tensor<262144xf32>>
  plan.communicator @fsdp over ["fsdp"]
  plan.kernel @layer registered "k"
    [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<4xf32>>]
    cost 8.0e7, 0.0
  plan.program @forward timeline [0, 0] {
    plan.segment "forward" {
      plan.collective all_gather @fsdp(%w0) to(%g0) {dist.prefetch = 1 : i64}
        : (!plan.buffer<tensor<131072xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @layer(%x, %g0, %h0) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<4xf32>>
      plan.launch @layer(%h0, %g0, %h1) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<4xf32>>
      plan.collective all_gather @fsdp(%w1) to(%g1) {dist.prefetch = 1 : i64}
        : (!plan.buffer<tensor<131072xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @layer(%h1, %g1, %h0) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<4xf32>>
      plan.launch @layer(%h0, %g1, %h1) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<4xf32>>
      plan.collective all_gather @fsdp(%w2) to(%g2) {dist.prefetch = 1 : i64}
        : (!plan.buffer<tensor<131072xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @layer(%h1, %g2, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<4xf32>>
    }
  }
}

// -----

// Segments of a pipeline take turns; collectives in them get streams, and transfers keep theirs. Memory stays sound: what
// goes through the transfer has slots, and the rest is over before the next call begins.
// CHECK: plan.program @stage timeline [0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2] streams ["compute", "pp", "tp"]
// CHECK: plan.segment "forward"
// CHECK: all_reduce @tp(%part) to(%sum) on 2
// CHECK-NEXT: plan.launch @independent(%x, %other)
// CHECK-NEXT: plan.launch @add(%sum, %other, %stash)
// CHECK: plan.segment "send"
// CHECK-NEXT: plan.send @pp to 1(%stash) on 1
// PACK: plan.program @stage
// PACK-NEXT: plan.segment "begin"
// PACK-NEXT: plan.signal [[FREE:[0-9]+]] from "InsertEvents"
// PACK-NEXT: plan.signal {{[0-9]+}} from "InsertEvents"
// PACK-NEXT: }
// PACK-NEXT: plan.segment "forward"
// PACK: plan.wait {{[0-9]+}} on 2
// PACK-NEXT: all_reduce @tp(%part) to(%sum) on 2
// PACK-NEXT: plan.signal [[SUM:[0-9]+]] on 2
// PACK-NEXT: plan.launch @independent(%x, %other)
// PACK-DAG: plan.wait [[FREE]] slots 2 from "InsertEvents"
// PACK-DAG: plan.wait [[SUM]] from "InsertEvents"
// PACK: plan.launch @add(%sum, %other, %stash)
// PACK-NEXT: plan.signal [[STASH:[0-9]+]] slots 2 from "InsertEvents"
// PACK: plan.segment "send"
// PACK-NEXT: plan.wait [[STASH]] slots 2 on 1 from "InsertEvents"
// PACK-NEXT: plan.send @pp to 1(%stash) on 1
// PACK-NEXT: plan.signal [[FREE]] slots 2 on 1 from "InsertEvents"
module {
  dist.mesh @mesh ["pp", "tp"] [2, 2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> slots 2 stride 64
  %part = plan.buffer "part" temporary : !plan.buffer<tensor<262144xf32>>
  %sum = plan.buffer "sum" temporary : !plan.buffer<tensor<262144xf32>>
  %other = plan.buffer "other" temporary : !plan.buffer<tensor<262144xf32>>
  %stash = plan.buffer "stash" temporary : !plan.buffer<tensor<262144xf32>> slots 2 stride 1048576
  plan.communicator @pp over ["pp"]
  plan.communicator @tp over ["tp"]
  plan.kernel @independent registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e7, 0.0
  plan.kernel @add registered "k"
    [#plan.arg<read, tensor<262144xf32>>, #plan.arg<read, tensor<262144xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 0.0, 3.0e6
  plan.program @stage timeline [0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2] streams ["compute", "pp"] {
    plan.segment "forward" {
      plan.launch @independent(%x, %part) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective all_reduce @tp(%part) to(%sum)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<262144xf32>>)
      plan.launch @independent(%x, %other) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.launch @add(%sum, %other, %stash)
        : !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>, !plan.buffer<tensor<262144xf32>>
    }
    plan.segment "send" {
      plan.send @pp to 1(%stash) on 1 : !plan.buffer<tensor<262144xf32>>
    }
  }
}

// -----

// Whole gradients of which shards are kept wait to be reduced, two of the largest at most: what computes the fourth one
// waits until the first one is reduced, and so on.
// CHECK: plan.program @shards timeline [0, 0] streams ["compute", "dp"]
// CHECK: reduce_scatter @dp(%a) to(%sa) on 1
// CHECK-NEXT: plan.signal [[A:[0-9]+]] on 1
// CHECK-NEXT: plan.launch @backward(%x, %b)
// CHECK: reduce_scatter @dp(%b) to(%sb) on 1
// CHECK-NEXT: plan.signal [[B:[0-9]+]] on 1
// CHECK-NEXT: plan.launch @backward(%x, %c)
// CHECK: reduce_scatter @dp(%c) to(%sc) on 1
// CHECK-NOT: plan.signal {{.*}} on 1
// CHECK: plan.wait [[A]] from "OverlapCommands"
// CHECK-NEXT: plan.launch @backward(%x, %d)
// CHECK: reduce_scatter @dp(%d) to(%sd) on 1
// CHECK: plan.wait [[B]] from "OverlapCommands"
// CHECK-NEXT: plan.launch @update(%sa, %y)
// The fourth one is where the first one was.
// PACK: %a = plan.buffer "a" {{.*}} at [[A:[0-9]+]]
// PACK: %d = plan.buffer "d" {{.*}} at [[A]]
module {
  dist.mesh @mesh ["dp"] [2]
  %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>>
  %y = plan.buffer "y" output : !plan.buffer<tensor<131072xf32>>
  %a = plan.buffer "a" temporary : !plan.buffer<tensor<262144xf32>>
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<262144xf32>>
  %c = plan.buffer "c" temporary : !plan.buffer<tensor<262144xf32>>
  %d = plan.buffer "d" temporary : !plan.buffer<tensor<262144xf32>>
  %sa = plan.buffer "sa" temporary : !plan.buffer<tensor<131072xf32>>
  %sb = plan.buffer "sb" temporary : !plan.buffer<tensor<131072xf32>>
  %sc = plan.buffer "sc" temporary : !plan.buffer<tensor<131072xf32>>
  %sd = plan.buffer "sd" temporary : !plan.buffer<tensor<131072xf32>>
  plan.communicator @dp over ["dp"]
  plan.kernel @backward registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<262144xf32>>]
    cost 8.0e7, 0.0
  plan.kernel @update registered "k" [#plan.arg<read, tensor<131072xf32>>, #plan.arg<read_write, tensor<131072xf32>>]
    cost 0.0, 2.0e6
  plan.program @shards timeline [0, 0] {
    plan.segment "step" {
      plan.launch @backward(%x, %a) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective reduce_scatter @dp(%a) to(%sa)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.launch @backward(%x, %b) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective reduce_scatter @dp(%b) to(%sb)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.launch @backward(%x, %c) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective reduce_scatter @dp(%c) to(%sc)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.launch @backward(%x, %d) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<262144xf32>>
      plan.collective reduce_scatter @dp(%d) to(%sd)
        : (!plan.buffer<tensor<262144xf32>>) to(!plan.buffer<tensor<131072xf32>>)
      plan.launch @update(%sa, %y) : !plan.buffer<tensor<131072xf32>>, !plan.buffer<tensor<131072xf32>>
      plan.launch @update(%sb, %y) : !plan.buffer<tensor<131072xf32>>, !plan.buffer<tensor<131072xf32>>
      plan.launch @update(%sc, %y) : !plan.buffer<tensor<131072xf32>>, !plan.buffer<tensor<131072xf32>>
      plan.launch @update(%sd, %y) : !plan.buffer<tensor<131072xf32>>, !plan.buffer<tensor<131072xf32>>
    }
  }
}
