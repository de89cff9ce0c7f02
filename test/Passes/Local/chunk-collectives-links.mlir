// How many chunks there are, and what is refused, depends on the links.
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=1000GB/s' | FileCheck %s --check-prefix=FAST
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=200MB/s' | FileCheck %s --check-prefix=SLOW
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=1000GB/s;tp:bandwidth=200MB/s' \
// RUN:   | FileCheck %s --check-prefix=SLOW
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=1000GB/s;dp:bandwidth=200MB/s' \
// RUN:   | FileCheck %s --check-prefix=FAST
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=1000GB/s' -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY
// WHY: remark: loc("--overlap-chunks auto"): nothing is divided: by the cost model no number of chunks takes less time than one; --link describes the network
// RUN: bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=bandwidth=200MB/s' -o /dev/null 2>&1 | count 0
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=pp:latency=5us' 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: --link pp:latency=5us: the mesh has no axis 'pp'; its axes are dp, tp
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2,tp=2 overlap-chunks=0' --chunk-collectives='links=latency=5' 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: --link latency=5: link 'latency=5': '5' is not a latency; write bandwidth=NUMBER

dist.mesh @mesh ["dp", "tp"] [2, 2]

// Of nothing but products there is nothing to hide; where exchanges take as long, chunks do.
// FAST-NOT: graph.slice
// SLOW: graph.slice
graph.func @sum(%a: tensor<512x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<512x1024xf32> {
  %y = graph.dot_general %a, %w contract [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
  %r = dist.all_reduce sum %y over ["tp"] : tensor<512x1024xf32>
  graph.return %r : tensor<512x1024xf32>
}
