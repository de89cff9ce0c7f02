// A weight that several matrix products read is brought into their order once.
// RUN: bowline-opt %s --pack-weights --split-input-file | FileCheck %s
// RUN: bowline-opt %s --allocate-memory=memory-limit=1000000 --pack-weights --split-input-file | FileCheck %s --check-prefix=ROOM
// RUN: bowline-opt %s --allocate-memory=memory-limit=180000 --pack-weights --split-input-file | FileCheck %s --check-prefix=LIMIT
// RUN: bowline-opt %s --pack-weights --split-input-file --remark-format=emitRemark --remarks-filter=memory \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: bowline-opt %s --pack-weights=min-persistent-saving=0.03 --split-input-file | FileCheck %s --check-prefix=LITTLE
// RUN: bowline-opt %s --pack-weights=min-saving=1.0 --split-input-file | FileCheck %s --check-prefix=FOR-GOOD

// Forward, twice in the same layout, and backward, in another one, six times each; products need less scratch then.
// Where there is room for one buffer only, the forward one is worth more.
// CHECK: plan.kernel @matmul.0.packed registered "matmul" config
// CHECK-SAME: b_packed = 1
// CHECK-NOT: b_strides
// CHECK-SAME: #plan.arg<read, tensor<8640xf32>>
// CHECK: plan.kernel @matmul.1.packed registered "matmul" config
// CHECK-SAME: b_packed = 1
// CHECK-SAME: #plan.arg<read, tensor<9216xf32>>
// CHECK: plan.kernel @pack_matrix registered "pack_matrix" config {b_strides = array<i64: 0, 1, 90>, k = 90 : i64, n = 96 : i64}
// CHECK-SAME: [#plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<8640xf32>>]
// CHECK: plan.segment "begin"
// CHECK-NEXT: plan.launch @copy
// CHECK-NEXT: plan.launch @pack_matrix(%w, %[[F:w.packed.*]]) from "PackWeights"
// CHECK-NEXT: plan.launch @pack_matrix_0(%w, %[[B:w.packed.*]]) from "PackWeights"
// CHECK: plan.segment "repeated"
// CHECK-NEXT: plan.launch @matmul.0.packed(%x, %[[F]], %a, %{{.*}})
// CHECK-NEXT: plan.launch @matmul.0.packed(%b, %[[F]], %a, %{{.*}})
// CHECK-NEXT: plan.launch @matmul.1.packed(%a, %[[B]], %b, %{{.*}})
// CHECK: plan.segment "end"
// ROOM: plan.launch @pack_matrix_0
// LIMIT: plan.launch @pack_matrix(
// LIMIT-NOT: plan.launch @pack_matrix_0
// LIMIT: plan.launch @matmul.1(
// REMARK: remark: [Passed] PackWeights | Category:memory
// REMARK-SAME: Remark="'w' is packed once for 12 products: 34560 bytes,
// REMARK: Remark="'w' is packed once for 6 products: 36864 bytes,
%w = plan.buffer "w" parameter : !plan.buffer<tensor<96x90xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<64x90xf32>>
%a = plan.buffer "a" temporary : !plan.buffer<tensor<64x96xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<64x90xf32>>
%s0 = plan.buffer "s0" scratch : !plan.buffer<tensor<1000xui8>>
%s1 = plan.buffer "s1" scratch : !plan.buffer<tensor<1000xui8>>
%s2 = plan.buffer "s2" scratch : !plan.buffer<tensor<1000xui8>>
plan.kernel @matmul.0 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 6144, 96, 1>, k = 90 : i64, m = 64 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<64x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.1 registered "matmul"
  config {a_strides = array<i64: 0, 96, 1>, b_strides = array<i64: 0, 90, 1>, batch = 1 : i64, c_strides = array<i64: 5760, 90, 1>, k = 96 : i64, m = 64 : i64, n = 90 : i64}
  [#plan.arg<read, tensor<64x96xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<64x90xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @update registered "u" [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read_write, tensor<96x90xf32>>] cost 0.0, 0.0
plan.kernel @copy registered "k" [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<write, tensor<64x90xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 1, 0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 2, 0] {
  plan.segment "begin" {
    plan.launch @copy(%x, %b) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<64x90xf32>>
  }
  plan.segment "repeated" {
    plan.launch @matmul.0(%x, %w, %a, %s0) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.0(%b, %w, %a, %s1) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.1(%a, %w, %b, %s2) : !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<1000xui8>>
  }
  plan.segment "end" {
    plan.launch @update(%b, %w) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>
  }
}

// -----

// Packed right behind the command that computes it, whose result is then needed no longer.
// CHECK-LABEL: module @computed
// CHECK: plan.segment "begin"
// CHECK-NEXT: plan.launch @copy(%w, %v)
// CHECK-NEXT: plan.launch @pack_matrix(%v, %
// CHECK-NEXT: plan.launch @copy(%w, %u)
module @computed {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<96x90xf32>>
%v = plan.buffer "v" temporary : !plan.buffer<tensor<96x90xf32>>
%u = plan.buffer "u" temporary : !plan.buffer<tensor<96x90xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<64x90xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<64x96xf32>>
%s = plan.buffer "s" scratch : !plan.buffer<tensor<1000xui8>>
plan.kernel @matmul.0 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 6144, 96, 1>, k = 90 : i64, m = 64 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<64x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @copy registered "k" [#plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<96x90xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 1, 0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5] {
  plan.segment "begin" {
    plan.launch @copy(%w, %v) : !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<96x90xf32>>
    plan.launch @copy(%w, %u) : !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<96x90xf32>>
  }
  plan.segment "repeated" {
    plan.launch @matmul.0(%x, %v, %y, %s) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
  }
}
}

// -----

// As they are: a weight that the segment writes, too few calls, so many rows that packing is nothing beside them, few
// rows, which are multiplied with the weight in place, a column, and bf16 where the target has no pairs of it.
// CHECK-LABEL: module @plain
// CHECK-NOT: packed
module @plain attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v4", threads = 1>} {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<96x90xf32>>
%v = plan.buffer "v" parameter : !plan.buffer<tensor<96x90xf32>>
%b16 = plan.buffer "b16" parameter : !plan.buffer<tensor<96x90xbf16>>
%x16 = plan.buffer "x16" input : !plan.buffer<tensor<64x90xbf16>>
%x = plan.buffer "x" input : !plan.buffer<tensor<64x90xf32>>
%many = plan.buffer "many" input : !plan.buffer<tensor<2048x90xf32>>
%few = plan.buffer "few" input : !plan.buffer<tensor<8x96xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<64x96xf32>>
%ymany = plan.buffer "ymany" temporary : !plan.buffer<tensor<2048x96xf32>>
%yfew = plan.buffer "yfew" temporary : !plan.buffer<tensor<8x90xf32>>
%col = plan.buffer "col" temporary : !plan.buffer<tensor<64x1xf32>>
%wcol = plan.buffer "wcol" parameter : !plan.buffer<tensor<90x1xf32>>
%s = plan.buffer "s" scratch : !plan.buffer<tensor<1000xui8>>
plan.kernel @matmul.0 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 6144, 96, 1>, k = 90 : i64, m = 64 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<64x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.1 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 196608, 96, 1>, k = 90 : i64, m = 2048 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<2048x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<2048x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.2 registered "matmul"
  config {a_strides = array<i64: 0, 96, 1>, b_strides = array<i64: 0, 90, 1>, batch = 1 : i64, c_strides = array<i64: 720, 90, 1>, k = 96 : i64, m = 8 : i64, n = 90 : i64}
  [#plan.arg<read, tensor<8x96xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<8x90xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.3 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 1>, batch = 1 : i64, c_strides = array<i64: 64, 1, 1>, k = 90 : i64, m = 64 : i64, n = 1 : i64}
  [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read, tensor<90x1xf32>>, #plan.arg<write, tensor<64x1xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.4 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 6144, 96, 1>, k = 90 : i64, m = 64 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<64x90xbf16>>, #plan.arg<read, tensor<96x90xbf16>>, #plan.arg<write, tensor<64x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @change registered "k" [#plan.arg<read_write, tensor<96x90xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 1, 0, 1, 1, 1, 2] {
  plan.segment "repeated" {
    plan.launch @matmul.0(%x, %w, %y, %s) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @change(%w) : !plan.buffer<tensor<96x90xf32>>
    plan.launch @matmul.1(%many, %v, %ymany, %s) : !plan.buffer<tensor<2048x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<2048x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.2(%few, %v, %yfew, %s) : !plan.buffer<tensor<8x96xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<8x90xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.3(%x, %wcol, %col, %s) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<90x1xf32>>, !plan.buffer<tensor<64x1xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.4(%x16, %b16, %y, %s) : !plan.buffer<tensor<64x90xbf16>>, !plan.buffer<tensor<96x90xbf16>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
  }
  plan.segment "three_times" {
    plan.launch @matmul.0(%x, %v, %y, %s) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
  }
}
}

// -----

// Where no entry writes parameters, they are packed when they are set, also for one call, and for two entries at once.
// What `prepare` computes is packed there too, and the plain result is then temporary. Few rows, of a weight that is
// contiguous in n, and many rows leave a weight plain.
// CHECK-LABEL: module @generates
// CHECK-DAG: %v = plan.buffer "v" temporary
// CHECK-DAG: plan.buffer "w.packed" state : !plan.buffer<tensor<8640xf32>>
// CHECK-DAG: plan.buffer "v.packed" state : !plan.buffer<tensor<8640xf32>>
// CHECK: plan.segment "prefill"
// CHECK-NEXT: plan.launch @matmul.0.packed(%x, %[[W:w.packed.*]], %y, %{{.*}})
// CHECK-NEXT: plan.launch @matmul.0.packed(%x, %[[V:v.packed.*]], %y, %{{.*}})
// CHECK-NEXT: plan.launch @matmul.1(%many, %u, %ymany, %s2)
// CHECK-NEXT: plan.launch @matmul.2(%few, %t, %yfew, %s3)
// CHECK-NEXT: plan.launch @matmul.4(%some, %r, %ysome, %s5)
// CHECK: plan.segment "decode"
// CHECK-NEXT: plan.launch @matmul.3.packed(%two, %[[W]], %ytwo
// CHECK: plan.segment "prepare"
// CHECK-NEXT: plan.launch @copy(%w, %v)
// CHECK-NEXT: plan.launch @pack_matrix(%v, %[[V]]) from "PackWeights"
// CHECK-NEXT: plan.launch @pack_matrix(%w, %[[W]]) from "PackWeights"
// REMARK: Remark="'w' is packed once when parameters are set, for 2 products: 34560 bytes,
// REMARK: Remark="1 weights are not packed: their products have so few rows that they read them once and in place"
// REMARK: Remark="2 weights are not packed: panels of 69120 bytes that persist would save less than 10.0% of their products' time"
// 256 rows gain 4 %: enough for a copy that each step makes and drops, and not for one that stays.
// LITTLE: module @generates
// LITTLE: plan.launch @matmul.4.packed(%some,
// LITTLE: plan.entry prepare @prepare
// The share of a step's packing says nothing about what persists.
// FOR-GOOD-NOT: pack_matrix
// FOR-GOOD: module @generates
// FOR-GOOD: plan.segment "prepare"
// FOR-GOOD: plan.launch @pack_matrix
module @generates {
%w = plan.buffer "w" parameter : !plan.buffer<tensor<96x90xf32>>
%u = plan.buffer "u" parameter : !plan.buffer<tensor<96x90xf32>>
%t = plan.buffer "t" parameter : !plan.buffer<tensor<96x90xf32>>
%r = plan.buffer "r" parameter : !plan.buffer<tensor<96x90xf32>>
%v = plan.buffer "v" state : !plan.buffer<tensor<96x90xf32>>
%x = plan.buffer "x" input : !plan.buffer<tensor<64x90xf32>>
%many = plan.buffer "many" input : !plan.buffer<tensor<2048x90xf32>>
%few = plan.buffer "few" input : !plan.buffer<tensor<8x96xf32>>
%two = plan.buffer "two" input : !plan.buffer<tensor<2x90xf32>>
%some = plan.buffer "some" input : !plan.buffer<tensor<256x90xf32>>
%ysome = plan.buffer "ysome" output : !plan.buffer<tensor<256x96xf32>>
%y = plan.buffer "y" output : !plan.buffer<tensor<64x96xf32>>
%ymany = plan.buffer "ymany" output : !plan.buffer<tensor<2048x96xf32>>
%yfew = plan.buffer "yfew" output : !plan.buffer<tensor<8x90xf32>>
%ytwo = plan.buffer "ytwo" output : !plan.buffer<tensor<2x96xf32>>
%s0 = plan.buffer "s0" scratch : !plan.buffer<tensor<1000xui8>>
%s1 = plan.buffer "s1" scratch : !plan.buffer<tensor<1000xui8>>
%s2 = plan.buffer "s2" scratch : !plan.buffer<tensor<1000xui8>>
%s3 = plan.buffer "s3" scratch : !plan.buffer<tensor<1000xui8>>
%s4 = plan.buffer "s4" scratch : !plan.buffer<tensor<1000xui8>>
%s5 = plan.buffer "s5" scratch : !plan.buffer<tensor<1000xui8>>
plan.kernel @matmul.0 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 6144, 96, 1>, k = 90 : i64, m = 64 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<64x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<64x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.1 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 196608, 96, 1>, k = 90 : i64, m = 2048 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<2048x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<2048x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.2 registered "matmul"
  config {a_strides = array<i64: 0, 96, 1>, b_strides = array<i64: 0, 90, 1>, batch = 1 : i64, c_strides = array<i64: 720, 90, 1>, k = 96 : i64, m = 8 : i64, n = 90 : i64}
  [#plan.arg<read, tensor<8x96xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<8x90xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.3 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 192, 96, 1>, k = 90 : i64, m = 2 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<2x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<2x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @matmul.4 registered "matmul"
  config {a_strides = array<i64: 0, 90, 1>, b_strides = array<i64: 0, 1, 90>, batch = 1 : i64, c_strides = array<i64: 24576, 96, 1>, k = 90 : i64, m = 256 : i64, n = 96 : i64}
  [#plan.arg<read, tensor<256x90xf32>>, #plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<256x96xf32>>, #plan.arg<write, tensor<1000xui8>>] cost 0.0, 0.0
plan.kernel @copy registered "k" [#plan.arg<read, tensor<96x90xf32>>, #plan.arg<write, tensor<96x90xf32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "prefill" {
    plan.launch @matmul.0(%x, %w, %y, %s0) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.0(%x, %v, %y, %s1) : !plan.buffer<tensor<64x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<64x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.1(%many, %u, %ymany, %s2) : !plan.buffer<tensor<2048x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<2048x96xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.2(%few, %t, %yfew, %s3) : !plan.buffer<tensor<8x96xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<8x90xf32>>, !plan.buffer<tensor<1000xui8>>
    plan.launch @matmul.4(%some, %r, %ysome, %s5) : !plan.buffer<tensor<256x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<256x96xf32>>, !plan.buffer<tensor<1000xui8>>
  }
}
plan.program @q timeline [0, 0] {
  plan.segment "decode" {
    plan.launch @matmul.3(%two, %w, %ytwo, %s4) : !plan.buffer<tensor<2x90xf32>>, !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<2x96xf32>>, !plan.buffer<tensor<1000xui8>>
  }
}
plan.program @prepare_program timeline [0, 0] {
  plan.segment "prepare" {
    plan.launch @copy(%w, %v) : !plan.buffer<tensor<96x90xf32>>, !plan.buffer<tensor<96x90xf32>>
  }
}
plan.entry prepare @prepare program @prepare_program inputs [] limits [] () outputs [] ()
}
