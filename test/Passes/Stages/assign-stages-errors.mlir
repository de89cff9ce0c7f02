// What cannot be divided is refused, with the nearest valid choice.
// RUN: bowline-opt %s --assign-stages --verify-diagnostics --split-input-file

dist.strategy @s {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{there is no graph.func @loss to divide into stages; give the mesh no axis "pp"}}
  stages "pp"
}

// -----

// expected-error @+1 {{no parameter has a layer's number in its name, as 'layers.0.attn.wq' has}}
module {
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @w0 : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.func @loss() { graph.return }
}

// -----

// expected-error @+1 {{layers are counted from 0, but there is a parameter of 'layers.2' and none of 'layers.1'}}
module {
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("1")
  graph.func @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{4 stages are asked for, 2 on each of 2 ranks along "pp", but the model has 3 layers, 'layers.0' to 'layers.2'; the nearest valid number of stages is 3}}
    stages "pp"
    schedule "interleaved:2"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1")
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2")
  graph.func @loss() { graph.return }
}

// -----

module {
  // expected-error @+1 {{2 stages are asked for, 1 on each of 2 ranks along "pp", but the model has 1 layer, 'layers.0' to 'layers.0'; the nearest valid number of stages is 1}}
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.func @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{the last stage ends with layer 3, but the model has 3 layers, 'layers.0' to 'layers.2'; the nearest valid last layer is 2}}
    stages "pp" split "[0..1],[2..3]"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1")
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2")
  graph.func @loss() { graph.return }
}

// -----

module {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    // expected-error @+1 {{the last stage ends with layer 1, but the model has 3 layers}}
    stages "pp" split "[0..0],[1..1]"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.param @layers.1.w : tensor<4xf32> init(#graph.fill<1.0>) key("1")
  graph.param @layers.2.w : tensor<4xf32> init(#graph.fill<1.0>) key("2")
  graph.func @loss() { graph.return }
}

// -----

module attributes {stage.count = 2 : i64} {
  // expected-error @+1 {{the module is divided into stages already}}
  dist.strategy @s { mesh @mesh ["pp"] [2] }
  graph.func @loss() { graph.return }
}

// -----

module {
  // expected-error @+1 {{schedule 'no-such-table.csv' is a table for a number of microbatches; say which}}
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    schedule "no-such-table.csv"
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.func @loss() { graph.return }
}

// -----

module {
  // expected-error @+1 {{cannot read the schedule 'no-such-table.csv': No such file or directory; check the path}}
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    schedule "no-such-table.csv" microbatches 2
  }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0")
  graph.func @loss() { graph.return }
}
