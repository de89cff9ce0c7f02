// Operations on sequences side by side, whose keys and values are in a cache of blocks.
// RUN: bowline-opt %s --verify-roundtrip | FileCheck %s

graph.state @keys cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @narrow cache : tensor<9x4x2x8xbf16> init(#graph.fill<0.0>)
graph.state @bytes cache : tensor<9x4x2x12xui8> init(#graph.fill<0.0>)

// CHECK: graph.func step @step
// CHECK-SAME: plan.sequences = #plan.sequences<rows = "rows", lengths = "lengths", blocks = "blocks", tokens = 6, block_tokens = 4, block_count = 9>
graph.func step @step(%query: tensor<6x4x8xf32>, %values: tensor<6x2x8xf32>, %rows: tensor<4xi32> {graph.name = "rows"},
                      %lengths: tensor<3xi32> {graph.name = "lengths"}, %blocks: tensor<3x5xi32> {graph.name = "blocks"})
    -> (tensor<6x4x8xf32>, tensor<6xi32>)
    attributes {plan.sequences = #plan.sequences<rows = "rows", lengths = "lengths", blocks = "blocks", tokens = 6, block_tokens = 4, block_count = 9>} {
  // CHECK: graph.sequence_positions %{{.*}}, %{{.*}} : (tensor<4xi32>, tensor<3xi32>) -> tensor<6xi32>
  %positions = graph.sequence_positions %rows, %lengths : (tensor<4xi32>, tensor<3xi32>) -> tensor<6xi32>
  // CHECK: graph.cache_write %{{.*}}, %{{.*}} at %{{.*}}, %{{.*}}, %{{.*}} : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  %keys = graph.read @keys : tensor<9x4x2x8xf32>
  %written = graph.cache_write %keys, %values at %rows, %lengths, %blocks
      : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @keys, %written : tensor<9x4x2x8xf32>
  // A cache may be narrower than what goes there and what is asked for.
  // CHECK: graph.cache_write {{.*}} -> tensor<9x4x2x8xbf16>
  %narrow = graph.read @narrow : tensor<9x4x2x8xbf16>
  %rounded = graph.cache_write %narrow, %values at %rows, %lengths, %blocks
      : (tensor<9x4x2x8xbf16>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xbf16>
  graph.write @narrow, %rounded : tensor<9x4x2x8xbf16>
  // CHECK: graph.paged_attention %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}}, %{{.*}}, %{{.*}} scale 0.5 : (tensor<6x4x8xf32>,
  %all = graph.paged_attention %query, %written, %written at %rows, %lengths, %blocks scale 0.5
      : (tensor<6x4x8xf32>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  // CHECK: graph.paged_attention window 3 %{{.*}}, %{{.*}}, %{{.*}} at
  %near = graph.paged_attention window 3 %all, %rounded, %rounded at %rows, %lengths, %blocks scale 0.5
      : (tensor<6x4x8xf32>, tensor<9x4x2x8xbf16>, tensor<9x4x2x8xbf16>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  // Or bytes, of a scale and whole numbers in each row.
  // CHECK: graph.cache_write %{{.*}}, %{{.*}} at %{{.*}}, %{{.*}}, %{{.*}} format "int8" : {{.*}} -> tensor<9x4x2x12xui8>
  %bytes = graph.read @bytes : tensor<9x4x2x12xui8>
  %whole = graph.cache_write %bytes, %values at %rows, %lengths, %blocks format "int8"
      : (tensor<9x4x2x12xui8>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x12xui8>
  graph.write @bytes, %whole : tensor<9x4x2x12xui8>
  // CHECK: graph.paged_attention window 3 %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}}, %{{.*}}, %{{.*}} scale 0.5 format "int8" :
  %last = graph.paged_attention window 3 %near, %whole, %whole at %rows, %lengths, %blocks scale 0.5 format "int8"
      : (tensor<6x4x8xf32>, tensor<9x4x2x12xui8>, tensor<9x4x2x12xui8>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  graph.return %last, %positions : tensor<6x4x8xf32>, tensor<6xi32>
}

// A module may have several steps.
// CHECK: graph.func step @other
graph.func step @other() {
  graph.return
}
