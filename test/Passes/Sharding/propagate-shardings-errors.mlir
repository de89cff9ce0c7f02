// What could not have an effect is refused.
// RUN: bowline-opt %s --propagate-shardings --verify-diagnostics

dist.mesh @mesh ["tp"] [2]
// expected-error @+1 {{result 'y' cannot be sharded: results are whole on every rank; to keep the value sharded, write it to a variable with this sharding}}
graph.func @f(%x: tensor<4x6xf32>)
    -> (tensor<4x6xf32> {dist.sharding = #dist.sharding<[{"tp"}, {}]>, graph.name = "y"}) {
  graph.return %x : tensor<4x6xf32>
}
