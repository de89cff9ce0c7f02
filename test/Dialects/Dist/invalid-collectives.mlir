// RUN: bowline-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @axis(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{names axis "pp", but the mesh has "dp", "tp"}}
  %0 = dist.all_reduce sum %x over ["pp"] : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @twice(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{names axis "dp" twice}}
  %0 = dist.all_reduce sum %x over ["dp", "dp"] : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @none(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{names no axis}}
  %0 = dist.all_reduce sum %x over [] : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @gather(%x: tensor<8x64xf32>) -> tensor<8x128xf32> {
  // expected-error @below {{dimension 1 of the whole must be the group's size times that of the shard}}
  %0 = dist.all_gather %x dim 1 over ["tp"] : tensor<8x64xf32> -> tensor<8x128xf32>
  graph.return %0 : tensor<8x128xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @scatter(%x: tensor<9x64xf32>) -> tensor<4x64xf32> {
  // expected-error @below {{dimension 0 of the whole must be the group's size times that of the shard}}
  %0 = dist.reduce_scatter sum %x dim 0 over ["dp"] : tensor<9x64xf32> -> tensor<4x64xf32>
  graph.return %0 : tensor<4x64xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @all_to_all(%x: tensor<6x64xf32>) -> tensor<1x256xf32> {
  // expected-error @below {{cannot split dimension 0 of 'tensor<6x64xf32>' among 4 ranks}}
  %0 = dist.all_to_all %x split 0 concat 1 over ["tp"] : tensor<6x64xf32> -> tensor<1x256xf32>
  graph.return %0 : tensor<1x256xf32>
}

// -----

graph.func @sharding(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{axis "tp" is named twice; it can shard one dimension, or be unreduced}}
  %0 = dist.reshard %x to <[{"tp"}, {"tp"}]> : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

graph.func @rank(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{has a sharding of 1 dimensions for 'tensor<8x64xf32>'}}
  %0 = dist.reshard %x to <[{"tp"}]> : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

graph.func @empty_bucket() {
  // expected-error @below {{needs operands and one result for each, not 0 for 0}}
  dist.bucket all_gather over ["dp"] : () -> ()
  graph.return
}

// -----

graph.func @bucket_without_reduction(%x: tensor<8xf32>) {
  // expected-error @below {{reduces, and does not say how}}
  %0 = dist.bucket all_reduce %x over ["dp"] : (tensor<8xf32>) -> tensor<8xf32>
  graph.return
}

// -----

graph.func @bucket_with_reduction(%x: tensor<8xf32>) {
  // expected-error @below {{gathers, and has a reduction}}
  %0 = dist.bucket all_gather(sum) %x over ["dp"] : (tensor<8xf32>) -> tensor<16xf32>
  graph.return
}

// -----

graph.func @bucket_of_two_types(%x: tensor<8xf32>, %y: tensor<8xbf16>) {
  // expected-error @below {{has elements of 'f32' and of 'bf16'}}
  %0:2 = dist.bucket all_reduce(sum) %x, %y over ["dp"] : (tensor<8xf32>, tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xbf16>)
  graph.return
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @bucket_size(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{dimension 0 of the whole must be the group's size times that of the shard}}
  %0:2 = dist.bucket all_gather %x, %y over ["dp"] : (tensor<8xf32>, tensor<4xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  graph.return
}

// -----

graph.func @bucket_changes(%x: tensor<8xf32>) {
  // expected-error @below {{must not change 'tensor<8xf32>'}}
  %0 = dist.bucket all_reduce(sum) %x over ["dp"] : (tensor<8xf32>) -> tensor<16xf32>
  graph.return
}

// -----

dist.mesh @mesh ["tp"] [4]
graph.func @rank(%x: tensor<8xf32>) -> tensor<32x1xf32> {
  // expected-error @below {{must not change rank or element type}}
  %0 = dist.all_gather %x dim 0 over ["tp"] : tensor<8xf32> -> tensor<32x1xf32>
  graph.return %0 : tensor<32x1xf32>
}

// -----

dist.mesh @mesh ["tp"] [4]
graph.func @dimension(%x: tensor<8xf32>) -> tensor<32xf32> {
  // expected-error @below {{dimension 1 is out of range of 'tensor<8xf32>'}}
  %0 = dist.all_gather %x dim 1 over ["tp"] : tensor<8xf32> -> tensor<32xf32>
  graph.return %0 : tensor<32xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @nowhere(%x: tensor<8x64xi1>) -> tensor<8x64xi1> {
  // expected-error @below {{shifts by -8, with which every rank of a group of 4 keeps its own tensor}}
  %0 = dist.permute %x by -8 over ["tp"] : tensor<8x64xi1>
  graph.return %0 : tensor<8x64xi1>
}

// -----

graph.func @nowhere_in_a_fragment(%x: tensor<8x64xi1>) -> tensor<8x64xi1> {
  // expected-error @below {{shifts by 0, with which every rank of a group keeps its own tensor}}
  %0 = dist.permute %x by 0 over ["tp"] : tensor<8x64xi1>
  graph.return %0 : tensor<8x64xi1>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @around_an_axis(%x: tensor<8x64xi1>) -> tensor<8x64xi1> {
  // expected-error @below {{names axis "pp", but the mesh has "dp", "tp"}}
  %0 = dist.permute %x by 1 over ["pp"] : tensor<8x64xi1>
  graph.return %0 : tensor<8x64xi1>
}
