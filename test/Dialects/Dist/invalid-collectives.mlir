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
  // expected-error @below {{dimension 1 of the whole must be the group's size times that of the part}}
  %0 = dist.all_gather %x dim 1 over ["tp"] : tensor<8x64xf32> -> tensor<8x128xf32>
  graph.return %0 : tensor<8x128xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 4]
graph.func @scatter(%x: tensor<9x64xf32>) -> tensor<4x64xf32> {
  // expected-error @below {{dimension 0 of the whole must be the group's size times that of the part}}
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
  // expected-error @below {{axis "tp" is named twice; it can cut one dimension, or be unreduced}}
  %0 = dist.reshard %x to <[{"tp"}, {"tp"}]> : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}

// -----

graph.func @rank(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{has a sharding of 1 dimensions for 'tensor<8x64xf32>'}}
  %0 = dist.reshard %x to <[{"tp"}]> : tensor<8x64xf32>
  graph.return %0 : tensor<8x64xf32>
}
