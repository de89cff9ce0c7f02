// RUN: bowline-opt %s --split-stages --verify-diagnostics --split-input-file

// What cannot be labelled cannot be divided.
module attributes {stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
  }
  graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
  graph.func loss @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    // expected-error @+1 {{returns as result 0 a 'tensor<4xf32>' of stage 1; only scalars go from one stage to all callers}}
    graph.return %0 : tensor<4xf32>
  }
}

// -----

module attributes {stage.count = 4 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
    // expected-error @+1 {{the schedule has 2 stages, but the program was divided into 4; give the schedule with which it was divided}}
    schedule "1f1b"
  }
  graph.func loss @loss(%x: tensor<f32>) -> tensor<f32> {
    graph.return %x : tensor<f32>
  }
}

// -----

module attributes {stage.count = 4 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
    // expected-error @+1 {{multiple}}
    schedule "interleaved:2"
  }
  graph.func microbatch @train_microbatch(%x: tensor<f32>) {
    graph.return
  }
  graph.entry train_step @train_step [@train_microbatch] repeat [3]
}

// -----

module attributes {stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
  }
  graph.func microbatch @train_microbatch(%x: tensor<f32>) {
    graph.return
  }
  graph.entry train_step @train_step [@train_microbatch] repeat [3]
  // expected-error @+1 {{runs @train_microbatch 4 times, but another entry 3 times; one schedule is for one number of microbatches}}
  graph.entry @long_step [@train_microbatch] repeat [4]
}

// -----

module attributes {stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @s {
    mesh @m ["pp"] [2]
    // expected-error @+1 {{has the number 2, but a step of the program has 3; use that, or compile again}}
    microbatches 2
  }
  graph.func microbatch @train_microbatch(%x: tensor<f32>) {
    graph.return
  }
  graph.entry train_step @train_step [@train_microbatch] repeat [3]
}
