// What has no sharding, or one that does not divide, is refused; nothing is rounded down.
// RUN: bowline-opt %s --global-to-local --split-input-file --verify-diagnostics

dist.mesh @mesh ["tp"] [2]
// expected-error @below {{it has no sharding; run propagate-shardings first}}
graph.param @w : tensor<8x4xf32> init(#graph.normal<0.02>) key("w")

// -----

dist.mesh @mesh ["tp"] [2]
// expected-error @below {{it: dimension 0 of 'tensor<53x4xf32>' does not divide over 2 ranks; choose another sharding}}
graph.param @w : tensor<53x4xf32> init(#graph.normal<0.02>) key("w") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}

// -----

dist.mesh @mesh ["dp"] [2]
// expected-error @below {{argument 'arg0': dimension 0 of 'tensor<3xf32>' does not divide over 2 ranks}}
graph.func @f(%x: tensor<3xf32> {dist.sharding = #dist.sharding<[{"dp"}]>}) {
  graph.return
}

// -----

dist.mesh @mesh ["x"] [4]
// expected-error @below {{argument 'arg0': dimension 0 of 'tensor<10xf32>' does not divide over 4 ranks; choose another sharding}}
graph.func @ten_over_four(%x: tensor<10xf32> {dist.sharding = #dist.sharding<[{"x"}]>}) {
  graph.return
}
