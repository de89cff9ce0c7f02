// Two stages with one product each. A transfer is the identity, and its gradient the transfer back.
module attributes {stage.count = 2 : i64} {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @strategy {
    mesh @mesh ["pp"] [2]
    schedule "1f1b"
    microbatches 2
  }
  graph.param @a : tensor<4xf32> init(#graph.fill<1.0>) key("a")
  graph.param @b : tensor<4xf32> init(#graph.fill<1.0>) key("b")
  graph.state @a.grad accumulator of @a : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @b.grad accumulator of @b : tensor<4xf32> init(#graph.fill<0.0>)
  graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
  graph.func microbatch @train_microbatch(%x: tensor<4xf32> {graph.name = "x"}) {
    %a = graph.read @a : tensor<4xf32>
    %h = arith.mulf %x, %a : tensor<4xf32>
    %y = graph.silu %h : tensor<4xf32>
    %there = stage.transfer %y from 0 to 1 : tensor<4xf32>
    %b = graph.read @b : tensor<4xf32>
    %z = arith.mulf %there, %b : tensor<4xf32>
    %loss = graph.reduce sum %z dims [0] : (tensor<4xf32>) -> tensor<f32>
    %loss_sum = graph.read @loss_sum : tensor<f32>
    %total = arith.addf %loss_sum, %loss : tensor<f32>
    graph.write @loss_sum, %total : tensor<f32>
    graph.write @b.grad, %there : tensor<4xf32>
    %dy = stage.transfer %b from 1 to 0 : tensor<4xf32>
    %slope = math.tanh %h : tensor<4xf32>
    %dh = arith.mulf %dy, %slope : tensor<4xf32>
    %da = arith.mulf %dh, %x : tensor<4xf32>
    graph.write @a.grad, %da : tensor<4xf32>
    graph.return
  }
  graph.func update @train_update() {
    %da = graph.read @a.grad : tensor<4xf32>
    graph.write @a, %da : tensor<4xf32>
    %db = graph.read @b.grad : tensor<4xf32>
    graph.write @b, %db : tensor<4xf32>
    graph.return
  }
  graph.entry train_step @train_step [@train_microbatch, @train_update] repeat [2, 1]
}
