// What cannot be divided is refused, with the nearest valid choice.
// RUN: bowline-opt %s --assign-stages --verify-diagnostics --split-input-file

dist.strategy @s {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{no function is the loss, 'graph.func loss @name', to divide into stages; give the mesh no axis "pp"}}
  stages "pp"
}

// -----

// A name says nothing.
// expected-error @+1 {{no parameter says in which layer it is; write it, as in graph.param ... layer(0), or give the mesh no axis for stages}}
module {
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.func loss @loss() { graph.return }
}

// -----

module {
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  // expected-error @+1 {{is in layer 2, but none is in layer 1; layers are counted from 0}}
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("1") layer(2)
  graph.func loss @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{4 stages are asked for, 2 on each of 2 ranks along "pp", but the model has 3 layers; use schedule "1f1b"}}
    stages "pp"
    schedule "interleaved:2"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1") layer(1)
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2") layer(2)
  graph.func loss @loss() { graph.return }
}

// -----

module {
  // expected-error @+1 {{2 stages are asked for, 1 on each of 2 ranks along "pp", but the model has 1 layer; give the mesh no axis "pp"}}
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.func loss @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{the last stage ends with layer 3, but the model has 3 layers; the nearest valid last layer is 2}}
    stages "pp" split "[0..1],[2..3]"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1") layer(1)
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2") layer(2)
  graph.func loss @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{the last stage ends with layer 1, but the model has 3 layers}}
    stages "pp" split "[0],[1]"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1") layer(1)
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2") layer(2)
  graph.func loss @loss() { graph.return }
}

// -----

module attributes {stage.count = 2 : i64} {
  // expected-error @+1 {{the module is divided into stages already}}
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.func loss @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{two.csv:1:3: 'F1' is of microbatch 1, but the step has 1, counted from 0; the number of microbatches must be that of the table}}
    schedule "two.csv" table "F0,B0,F1,B1\0AF0,B0,F1,B1"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.func loss @loss() { graph.return }
}
