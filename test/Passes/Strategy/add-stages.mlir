// A flag completes a line of stages that has no split, and must not contradict one that has, "balanced" included.
// RUN: sed 's/SPLIT//' %s | bowline-opt --add-strategy='stages=[0],[1..2]' | FileCheck %s
// RUN: sed 's/SPLIT/split "[0], [1 .. 2]"/' %s | bowline-opt --add-strategy='stages=[0],[1..2]' | FileCheck %s --check-prefix=SAME
// RUN: sed 's/SPLIT/split "balanced"/' %s | bowline-opt --add-strategy='stages=balanced' | FileCheck %s --check-prefix=BALANCED
// RUN: sed 's/SPLIT/split "balanced"/' %s | not bowline-opt --add-strategy='stages=[0],[1..2]' 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/SPLIT/split "[0..1],[2]"/' %s | not bowline-opt --add-strategy='stages=[0],[1..2]' 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/SPLIT/split "[0..1],[2]"/' %s | not bowline-opt --add-strategy='stages=balanced' 2>&1 | FileCheck %s --check-prefix=LESS

// CHECK: stages "pp" split "[0],[1..2]"
// SAME: stages "pp" split "[0],[1..2]"
// BALANCED: stages "pp" split "balanced"
// OTHER: error: 'dist.stages' op says otherwise than --stages [0],[1..2]; remove one of them
// LESS: error: 'dist.stages' op says otherwise than --stages balanced; remove one of them
dist.strategy @own {
  mesh @ranks ["pp"] [2]
  stages "pp" SPLIT
}
