// Every operation parses, prints in its own form and survives the round trip.
// RUN: bowline-opt %s | FileCheck %s

// CHECK: dist.mesh @single ["dp"] [1]
dist.mesh @single ["dp"] [1]

// CHECK: dist.mesh @cluster ["pp", "dp", "tp"] [2, 4, 8]
dist.mesh @cluster ["pp", "dp", "tp"] [2, 4, 8]

// A mesh without axes is one rank.
// CHECK: dist.mesh @point [] []
dist.mesh @point [] []
