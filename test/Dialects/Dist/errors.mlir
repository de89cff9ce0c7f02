// Every rule of the verifiers refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// Every axis has a size.
// expected-error @+1 {{needs one size per axis, got 1 for 2}}
dist.mesh @mesh ["dp", "tp"] [1]

// -----

// An axis has a name.
// expected-error @+1 {{axis names must not be empty}}
dist.mesh @mesh ["dp", ""] [1, 1]

// -----

// Names differ.
// expected-error @+1 {{axis "tp" is named twice}}
dist.mesh @mesh ["tp", "dp", "tp"] [1, 2, 1]

// -----

// Sizes are positive.
// expected-error @+1 {{axis "tp" has size 0, which must be positive}}
dist.mesh @mesh ["dp", "tp"] [1, 0]
