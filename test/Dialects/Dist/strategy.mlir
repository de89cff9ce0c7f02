// A strategy parses, prints as a person writes it and survives the round trip.
// RUN: bowline-opt %s | FileCheck %s

// CHECK:      dist.strategy @three_dimensions {
// CHECK-NEXT:   mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
// CHECK-NEXT:   batch "dp"
// CHECK-NEXT:   tensor_parallel "tp"
// CHECK-NEXT:   shard "layers.*.attn.w{q,k,v}" as <[{"tp"}, {}]>
// CHECK-NEXT:   shard "layers.*.attn.wo" as <[{}, {"dp", "tp", ?}]>
// CHECK-NEXT:   stages "pp" split "[0..5],[6..11]"
// CHECK-NEXT:   schedule "1f1b"
// CHECK-NEXT:   microbatches 8
// CHECK-NEXT:   zero level 1 axis "dp"
// CHECK-NEXT:   sequence_parallel "tp"
// CHECK-NEXT:   recompute "selective"
// CHECK-NEXT:   bucket_bytes 4096
// CHECK-NEXT:   overlap_chunks 4
// CHECK-NEXT: }
dist.strategy @three_dimensions {
  mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
  batch "dp"
  tensor_parallel "tp"
  shard "layers.*.attn.w{q,k,v}" as <[{"tp"}, {}]>
  shard "layers.*.attn.wo" as <[{}, {"dp", "tp", ?}]>
  stages "pp" split "[0..5],[6..11]"
  schedule "1f1b"
  microbatches 8
  zero level 1 axis "dp"
  sequence_parallel "tp"
  recompute "selective"
  bucket_bytes 4096
  overlap_chunks 4
}

// What has a default need not be said.
// CHECK:      dist.strategy @short {
// CHECK-NEXT:   mesh @mesh ["pp", "dp"] [4, 1]
// CHECK-NEXT:   stages "pp" split "balanced"
// CHECK-NEXT:   schedule "zb_h1"
// CHECK-NEXT:   zero level 3
// CHECK-NEXT: }
dist.strategy @short {
  mesh @mesh ["pp", "dp"] [4, 1]
  stages "pp" split "balanced"
  schedule "zb_h1"
  zero level 3
}

// CHECK: dist.strategy @one {
// CHECK-NEXT: mesh @mesh [] []
dist.strategy @one { mesh @mesh [] [] }

// CHECK: dist.strategy @hybrid {
// CHECK-NEXT: mesh @mesh ["dp", "fsdp"] [2, 4]
// CHECK-NEXT: batch "dp", "fsdp"
// CHECK-NEXT: zero level 3 axis "fsdp" prefetch 2
// CHECK-NEXT: overlap_chunks auto
dist.strategy @hybrid {
  mesh @mesh ["dp", "fsdp"] [2, 4]
  batch "dp", "fsdp"
  zero level 3 axis "fsdp" prefetch 2
  overlap_chunks auto
}

// Two lines in one: ends of lines mean nothing.
// CHECK: dist.strategy @table {
// CHECK: schedule "one.csv" table "0F0,0B0\0A1F0,1B0"
// CHECK-NEXT: microbatches 1
dist.strategy @table {
  mesh @mesh ["pp"] [2]
  schedule "one.csv" table "0F0,0B0\0A1F0,1B0" microbatches 1
}

// One rank needs no mesh.
// CHECK: dist.strategy @alone {
// CHECK-NEXT: microbatches 4
// CHECK-NEXT: recompute "full"
dist.strategy @alone {
  microbatches 4
  recompute "full"
}
