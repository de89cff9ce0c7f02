// Flags become lines: of a new strategy, or of one that is there, which they may complete and not contradict.
// RUN: bowline-opt %s --add-strategy --apply-strategy | FileCheck %s --check-prefix=NOTHING
// RUN: bowline-opt %s --add-strategy='mesh=pp=2,dp=2,tp=2 zero=3 zero-axis=dp prefetch=2 sequence-parallel microbatches=4 stages=[0],[1..2] schedule=gpipe recompute=full bucket-bytes=4096 overlap-chunks=0' | FileCheck %s --check-prefix=ALL
// RUN: bowline-opt %s --add-strategy='microbatches=4 recompute=selective' | FileCheck %s --check-prefix=ALONE
// RUN: bowline-opt %s --add-strategy='microbatches=1 recompute=none overlap-chunks=1 zero=0' | FileCheck %s --check-prefix=NOTHING
// RUN: sed 's/^\/\/ STRATEGY //' %s > %t.mlir
// RUN: bowline-opt %t.mlir --add-strategy='mesh=dp=2,model=2 zero=1 microbatches=4 sequence-parallel' | FileCheck %s --check-prefix=MORE
// RUN: bowline-opt %t.mlir --add-strategy='zero=1 zero-axis=dp' | FileCheck %s --check-prefix=AXIS
// RUN: not bowline-opt %t.mlir --add-strategy='mesh=dp=4' 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: not bowline-opt %t.mlir --add-strategy='zero=2' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not bowline-opt %t.mlir --add-strategy='zero=0' 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not bowline-opt %t.mlir --add-strategy='microbatches=1' 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not bowline-opt %s --add-strategy='mesh=dp' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not bowline-opt %s --add-strategy='zero=1' 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2 zero=7' 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2 zero-axis=dp' 2>&1 | FileCheck %s --check-prefix=NO-ZERO
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2 sequence-parallel' 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// RUN: not bowline-opt %s --add-strategy='mesh=dp=2 stages=[0],[1]' 2>&1 | FileCheck %s --check-prefix=STAGES

// NOTHING-NOT: dist.
// NOTHING: graph.param @w

// ALL:      dist.strategy @strategy {
// ALL-NEXT:   mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
// ALL-NEXT:   zero level 3 axis "dp" prefetch 2
// ALL-NEXT:   sequence_parallel "tp"
// ALL-NEXT:   microbatches 4
// ALL-NEXT:   stages "pp" split "[0],[1..2]"
// ALL-NEXT:   schedule "gpipe"
// ALL-NEXT:   recompute "full"
// ALL-NEXT:   bucket_bytes 4096
// ALL-NEXT:   overlap_chunks auto
// ALL-NEXT: }

// ALONE:      dist.strategy @strategy {
// ALONE-NEXT:   microbatches 4
// ALONE-NEXT:   recompute "selective"
// ALONE-NEXT: }

// MORE:      dist.strategy @own {
// MORE-NEXT:   mesh @ranks ["dp", "model"] [2, 2]
// MORE-NEXT:   tensor_parallel "model"
// MORE-NEXT:   zero level 1
// MORE-NEXT:   microbatches 4
// MORE-NEXT:   sequence_parallel "model"
// MORE-NEXT: }
// AXIS: zero level 1 axis "dp"

// MESH: mlir:[[#@LINE+8]]:3: error: 'dist.mesh' op says otherwise than --mesh dp=4; remove one of them
// ZERO: mlir:[[#@LINE+9]]:3: error: 'dist.zero' op says otherwise than --zero 2; remove one of them
// LESS: error: 'dist.zero' op says otherwise than --zero 0; remove one of them
// ONE: error: 'dist.microbatches' op says otherwise than --microbatches 1; remove one of them
// SIZE: error: loc("--mesh dp"): axes are NAME=SIZE, with commas between, for instance 'dp=N' of N ranks, and not 'dp'
// RANKS: error: loc("--zero 1"): 'dist.zero' op is about several ranks, and the strategy has none; add a mesh of N ranks, --mesh dp=N
// LEVEL: error: loc("--zero 7"): 'dist.zero' op has level 7; the nearest of 0 to 3 is 3
// STRATEGY dist.strategy @own {
// STRATEGY   mesh @ranks ["dp", "model"] [2, 2]
// STRATEGY   tensor_parallel "model"
// STRATEGY   zero level 1
// STRATEGY   microbatches 4
// STRATEGY }
// NO-ZERO: error: loc("--zero-axis dp"): says how parameters and states are divided, which nothing asks for; add --zero 1, 2 or 3, or remove it
// SEQUENCE: error: loc("--sequence-parallel"): it goes along the axis of tensor parallelism, and there is no axis "tp"; add one of N ranks to the mesh: --mesh tp=N
// STAGES: error: loc("--stages [0],[1]"): layers are divided along an axis for stages, and there is none; add one of N ranks to the mesh: --mesh pp=N
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
