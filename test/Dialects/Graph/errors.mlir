// Every rule of the verifiers refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// An argument's shape is static.
// expected-error @+1 {{argument 0 must be a tensor with a static shape without zeros, got 'tensor<?x3xf32>'}}
graph.func @f(%x: tensor<?x3xf32>) {
  graph.return
}

// -----

// An argument is not empty.
// expected-error @+1 {{argument 0 must be a tensor with a static shape without zeros, got 'tensor<0x3xf32>'}}
graph.func @f(%x: tensor<0x3xf32>) {
  graph.return
}

// -----

// A result is a tensor.
// expected-error @+1 {{result 0 must be a tensor with a static shape without zeros, got 'f32'}}
graph.func @f() -> f32 {
  graph.return
}

// -----

// A port's name is a string.
// expected-error @+1 {{argument 0: 'graph.name' must be a string}}
graph.func @f(%x: tensor<3xf32> {graph.name = 1 : i64}) {
  graph.return
}

// -----

// A limit is positive.
// expected-error @+1 {{argument 0: 'graph.limit' must be a positive integer on an argument with elements of integers or f32}}
graph.func @f(%x: tensor<3xi32> {graph.limit = 0 : i64}) {
  graph.return
}

// -----

// A limit is an integer.
// expected-error @+1 {{argument 0: 'graph.limit' must be a positive integer}}
graph.func @f(%x: tensor<3xi32> {graph.limit = 1.5}) {
  graph.return
}

// -----

// Only integers and f32 have a limit.
// expected-error @+1 {{argument 0: 'graph.limit' must be a positive integer on an argument with elements of integers or f32}}
graph.func @f(%x: tensor<3xbf16> {graph.limit = 5 : i64}) {
  graph.return
}

// -----

// A return has the function's results.
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{operand types must match the results of @f}}
  graph.return %x : tensor<3xf32>
}

// -----

// An entry runs at least one function.
// expected-error @+1 {{needs at least one function}}
graph.entry @e [] repeat []

// -----

// An entry runs functions that exist.
graph.func @f() {
  graph.return
}
// expected-error @+1 {{no graph.func is named @g}}
graph.entry @e [@f, @g] repeat [1, 1]

// -----

// Every function has a repeat count.
graph.func @f() {
  graph.return
}
// expected-error @+1 {{needs one repeat count per function, got 1 for 2}}
graph.entry @e [@f, @f] repeat [1]

// -----

// A function runs at least once.
graph.func @f() {
  graph.return
}
// expected-error @+1 {{repeat counts must be 1 to 1048576, as slots of a plan's buffers, got 0}}
graph.entry @e [@f] repeat [0]

// -----

// Nor more often than there are slots.
graph.func @f() {
  graph.return
}
// expected-error @+1 {{repeat counts must be 1 to 1048576, as slots of a plan's buffers, got 1048577}}
graph.entry @e [@f] repeat [1048577]

// -----

// Only the last function returns results.
graph.func @f() {
  graph.return
}
graph.func @g(%x: tensor<f32>) -> tensor<f32> {
  graph.return %x : tensor<f32>
}
// expected-error @+1 {{only the last function may return results, but @g does}}
graph.entry @e [@g, @f] repeat [1, 1]

// -----

// A parameter's elements are floats.
// expected-error @+1 {{attribute 'type' failed to satisfy constraint: type attribute of tensor of f32, f64, bf16, f16 or ui8 with a static shape without zeros}}
graph.param @w : tensor<3xi32> init(#graph.fill<1.0>) key("w")

// -----

// A parameter is not empty.
// expected-error @+1 {{attribute 'type' failed to satisfy constraint}}
graph.param @w : tensor<0xf32> init(#graph.fill<1.0>) key("w")

// -----

// A variable starts from a normal distribution or one value.
// expected-error @+1 {{attribute 'init' failed to satisfy constraint: #graph.normal or #graph.fill}}
graph.param @w : tensor<3xf32> init(1 : i32) key("w")

// -----

// A standard deviation is not negative.
// expected-error @+1 {{the standard deviation must be finite and not negative}}
graph.param @w : tensor<3xf32> init(#graph.normal<-1.0>) key("w")

// -----

// A standard deviation is finite.
// expected-error @+1 {{the standard deviation must be finite and not negative}}
graph.param @w : tensor<3xf32> init(#graph.normal<0x7FF0000000000000>) key("w")

// -----

// A fill value is finite.
// expected-error @+1 {{the fill value must be finite}}
graph.param @w : tensor<3xf32> init(#graph.fill<0x7FF8000000000000>) key("w")

// -----

// expected-error @+1 {{is in layer -1; the nearest valid one is 0, the first}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") layer(-1)

// -----

// expected-error @+1 {{there is no role 'collumn'; use none, column, row, keys, fused, vocabulary or expert}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(collumn)

// -----

// expected-error @+1 {{role fused needs the sizes of at least two parts, as in fused 64, 64, 64}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(fused 3)

// -----

// expected-error @+1 {{role fused has a part of size 0; the nearest valid one is 1}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(fused 3, 0)

// -----

// expected-error @+1 {{role keys has heads shared by 0 of the queries; the nearest valid number is 1}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(keys shared 0)

// -----

// expected-error @+1 {{expected ')'}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(column 3)

// -----

// expected-error @+1 {{role fused needs the sizes of at least two parts, as in fused 64, 64, 64}}
graph.param @w : tensor<3xf32> init(#graph.fill<0.0>) key("w") role(fused)

// -----

// A state's shape is static.
// expected-error @+1 {{attribute 'type' failed to satisfy constraint}}
graph.state @s saved|step : tensor<?xi32> init(#graph.fill<0.0>)

// -----

// Normal values are floats.
// expected-error @+1 {{#graph.normal needs floating-point elements, but the type is 'tensor<i32>'}}
graph.state @s saved|step : tensor<i32> init(#graph.normal<1.0>)

// -----

// An integer is filled with a whole number.
// expected-error @+1 {{the fill value 5.000000e-01 is no 'i32'}}
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.5>)

// -----

// An integer is filled with a number that it can hold.
// expected-error @+1 {{the fill value 2.147484e+09 is no 'i32'}}
graph.state @s saved|step : tensor<i32> init(#graph.fill<2147483648.0>)

// -----

// An accumulator is filled.
// expected-error @+1 {{an accumulator must start from #graph.fill}}
graph.state @s accumulator : tensor<f32> init(#graph.normal<1.0>)

// -----

// A kind of persistent tensor is flags that the dialect knows...
// expected-error @+1 {{does not know the flag 'optimizer' of a state; flags are trained|saved|weight|mirror|step|per_request}}
graph.state @s optimizer : tensor<f32> init(#graph.fill<0.0>)

// -----

// ...and that have a meaning together.
// expected-error @+1 {{is step, but must be one of saved|mirror|per_request|cache: the flag says how a resumed run gets the value}}
graph.state @s step : tensor<i32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{is trained|weight, which only a graph.param may be}}
graph.state @s trained|saved|weight : tensor<f32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{counts steps, and must be a tensor<i32>, not 'tensor<1xi32>'}}
graph.state @s saved|step : tensor<1xi32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{is not persistent, so it cannot have the flags saved}}
"graph.state"() <{sym_name = "s", lifetime = 1 : i32, flags = 2 : i32, type = tensor<f32>, init = #graph.fill<0.0>}> : () -> ()

// -----

// A checkpoint has it, or a request does.
// expected-error @+1 {{is saved|per_request, but must be one of saved|mirror|per_request}}
graph.state @s saved|per_request : tensor<f32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{is step|per_request, but only a saved variable that is no weight counts steps}}
graph.state @s step|per_request : tensor<i32> init(#graph.fill<0.0>)

// -----

// Gradients and moments are of a parameter.
// expected-error @+1 {{is of @w, which is no graph.param}}
graph.state @w.m saved of @w : tensor<f32> init(#graph.fill<0.0>)

// -----

graph.state @v saved|step : tensor<i32> init(#graph.fill<0.0>)
// expected-error @+1 {{is a mirror of @v, which is no graph.param}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @v

// -----

// The program of one rank: the owner is elsewhere.
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @v

// -----

graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
graph.param @v : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @w
// expected-error @+1 {{is a mirror of @v, which is a mirror itself; name its owner}}
graph.param @u : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @v

// -----

graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{is a mirror of @w, and must have the same shape, initial value and key, and the same or a narrower element type}}
graph.param @v : tensor<4xf32> init(#graph.fill<0.0>) key("v") mirror_of @w

// -----

graph.param @w : tensor<4xbf16> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{is a mirror of @w, and must have the same shape}}
graph.param @v : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @w

// -----

graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{is a mirror of @w, and must have the same shape}}
graph.param @v : tensor<5xbf16> init(#graph.fill<0.0>) key("w") mirror_of @w

// -----

graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{is a mirror of @w, and must have the same shape, initial value and key, and the same or a narrower element type, and be frozen like it}}
graph.param frozen @v : tensor<4xf32> init(#graph.fill<0.0>) key("w") mirror_of @w

// -----

// Rounded, and divided among ranks.
graph.param @w : tensor<2xf32> init(#graph.fill<0.0>) key("w") {dist.global_shape = array<i64: 4>}
graph.param @v : tensor<4xbf16> init(#graph.fill<0.0>) key("w") mirror_of @w {dist.global_shape = array<i64: 4>}

// -----

// A variable that is read exists.
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{no graph.param or graph.state is named @t}}
  %0 = graph.read @t : tensor<i32>
  graph.return
}

// -----

// A function is not a variable.
graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{no graph.param or graph.state is named @f}}
  %0 = graph.read @f : tensor<i32>
  graph.return
}

// -----

// A variable is read with its type.
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{type 'tensor<i64>' differs from the declared type of @s, 'tensor<i32>'}}
  %0 = graph.read @s : tensor<i64>
  graph.return
}

// -----

// A variable that is written exists.
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{no graph.param or graph.state is named @t}}
  graph.write @t, %x : tensor<f32>
  graph.return
}

// -----

// A variable is written with its type.
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{type 'tensor<f32>' differs from the declared type of @s, 'tensor<i32>'}}
  graph.write @s, %x : tensor<f32>
  graph.return
}

// -----

// Batch lists have equal length.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{batch dimension lists must have equal length, got 1 and 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b batch [0] x [] contract [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// Contracted lists have equal length.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{contract dimension lists must have equal length, got 2 and 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b contract [0, 1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// Dimensions of the left side are in range.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{lhs dimension 2 is out of range for a tensor of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b contract [2] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  graph.return
}

// -----

// Dimensions of the right side are in range.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{rhs dimension -1 is out of range for a tensor of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b contract [1] x [-1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  graph.return
}

// -----

// A dimension is not both batch and contracted.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{lhs dimension 1 is named twice}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b batch [1] x [0] contract [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// Contracted dimensions have equal size.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{contract dimensions 0 and 1 differ in size: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b contract [0] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  graph.return
}

// -----

// Batch dimensions have equal size.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{batch dimensions 1 and 0 differ in size: 3 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b batch [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2x3xf32>
  graph.return
}

// -----

// Both sides have one element type.
graph.func @f(%a: tensor<2xf32>, %b: tensor<2xbf16>) {
  // expected-error @+2 {{element types of both sides must agree, got 'f32' and 'bf16'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %b contract [0] x [0] : (tensor<2xf32>, tensor<2xbf16>) -> tensor<f32>
  graph.return
}

// -----

// A result is not narrower than the operands.
graph.func @f(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<f32>' are incompatible with return type(s) of operation 'tensor<bf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %a contract [0] x [0] : (tensor<2xf32>, tensor<2xf32>) -> tensor<bf16>
  graph.return
}

// -----

// A wider result is f32.
graph.func @f(%a: tensor<2xbf16>) {
  // expected-error @+2 {{inferred type(s) 'tensor<bf16>' are incompatible with return type(s) of operation 'tensor<f64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %a contract [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<f64>
  graph.return
}

// -----

// Sums of f32 are not kept in more.
graph.func @f(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<f32>' are incompatible with return type(s) of operation 'tensor<f64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %a contract [0] x [0] : (tensor<2xf32>, tensor<2xf32>) -> tensor<f64>
  graph.return
}

// -----

// A result in f32 has the inferred shape.
graph.func @f(%a: tensor<2x3xbf16>) {
  // expected-error @+2 {{inferred type(s) 'tensor<3x3xbf16>' are incompatible with return type(s) of operation 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.dot_general %a, %a contract [0] x [0] : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xf32>
  graph.return
}

// -----

// Integers are not contracted.
graph.func @f(%a: tensor<2xi32>) {
  // expected-error @+1 {{operand #0 must be tensor of f32, f64, bf16 or f16 with a static shape without zeros, but got 'tensor<2xi32>'}}
  %0 = graph.dot_general %a, %a contract [0] x [0] : (tensor<2xi32>, tensor<2xi32>) -> tensor<i32>
  graph.return
}

// -----

// A stated result type is the inferred one.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.reduce sum %a dims [1] : (tensor<2x3xf32>) -> tensor<3xf32>
  graph.return
}

// -----

// Reduced dimensions are in range.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{reduced dimension 2 is out of range for a tensor of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.reduce sum %a dims [2] : (tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// Reduced dimensions increase.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{reduced dimensions must be strictly increasing}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.reduce max %a dims [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  graph.return
}

// -----

// Every operand dimension goes somewhere.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{needs one entry of 'dims' per operand dimension}}
  %0 = graph.broadcast %a dims [0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// Broadcast dimensions are in range.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{broadcast dimension 3 is out of range for a tensor of rank 3}}
  %0 = graph.broadcast %a dims [0, 3] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
  graph.return
}

// -----

// Broadcast dimensions increase.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{broadcast dimensions must be strictly increasing}}
  %0 = graph.broadcast %a dims [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  graph.return
}

// -----

// Broadcast keeps sizes.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{operand dimension 1 of size 3 does not fit result dimension 1 of size 4}}
  %0 = graph.broadcast %a dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x4xf32>
  graph.return
}

// -----

// Broadcast keeps the element type.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{element types must agree}}
  %0 = graph.broadcast %a dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf64>
  graph.return
}

// -----

// A permutation has an entry for each dimension.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{'perm' must be a permutation of the operand's 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.transpose %a perm [0] : (tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// A permutation is in range.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{permuted dimension 2 is out of range for a tensor of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.transpose %a perm [0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A permutation repeats nothing.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{permuted dimension 1 is named twice}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.transpose %a perm [1, 1] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  graph.return
}

// -----

// Reshape keeps the element count.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{the element count must not change, but it goes from 6 to 5}}
  %0 = graph.reshape %a : (tensor<2x3xf32>) -> tensor<5xf32>
  graph.return
}

// -----

// Reshape keeps the element type.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{element types must agree}}
  %0 = graph.reshape %a : (tensor<2x3xf32>) -> tensor<6xi32>
  graph.return
}

// -----

// A slice has an offset for each dimension.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{needs one offset and one size for each of 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [0] sizes [2, 3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A slice has a size for each dimension.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{needs one offset and one size for each of 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [0, 0] sizes [2] : (tensor<2x3xf32>) -> tensor<2xf32>
  graph.return
}

// -----

// A slice is not empty.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{the range [0, 0) of dimension 1 is empty or outside of its size 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [0, 0] sizes [2, 0] : (tensor<2x3xf32>) -> tensor<2x1xf32>
  graph.return
}

// -----

// A slice begins inside.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{the range [-1, 1) of dimension 0 is empty or outside of its size 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [-1, 0] sizes [2, 3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A slice ends inside.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{the range [1, 4) of dimension 1 is empty or outside of its size 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [0, 1] sizes [2, 3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A slice cannot end inside by overflow.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{the range [9223372036854775807, 9223372036854775807) of dimension 1 is empty or outside of its size 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.slice %a at [0, 9223372036854775807] sizes [2, 1] : (tensor<2x3xf32>) -> tensor<2x1xf32>
  graph.return
}

// -----

// Padding has an amount for each dimension.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{needs one amount on each side for each of 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.pad %a low [0] high [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// Padding is not negative.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{amounts of padding must not be negative}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.pad %a low [0, 0] high [0, -1] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  graph.return
}

// -----

// Padding does not overflow.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{dimension 0 padded by 9223372036854775807 and 0 is larger than any tensor}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.pad %a low [9223372036854775807, 0] high [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// Something is concatenated.
graph.func @f() {
  // expected-error @+2 {{needs at least one operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.concat dim 0 : () -> tensor<1xf32>
  graph.return
}

// -----

// Concatenated tensors have equal ranks.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{operands may differ only along dimension 0, got 'tensor<2xf32>' after 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.concat %a, %b dim 0 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  graph.return
}

// -----

// Concatenated tensors have equal element types.
graph.func @f(%a: tensor<2xf32>, %b: tensor<2xi32>) {
  // expected-error @+2 {{operands may differ only along dimension 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.concat %a, %b dim 0 : (tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
  graph.return
}

// -----

// Concatenated tensors have equal other sizes.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+2 {{operands may differ only along dimension 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.concat %a, %b dim 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  graph.return
}

// -----

// The concatenated dimension exists.
graph.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{concatenated dimension 2 is out of range for a tensor of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.concat %a, %b dim 2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  graph.return
}

// -----

// A table has rows.
graph.func @f(%t: tensor<f32>, %i: tensor<2xi32>) {
  // expected-error @+2 {{the table needs at least one dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.gather %t[%i] : (tensor<f32>, tensor<2xi32>) -> tensor<2xf32>
  graph.return
}

// -----

// Indices are i32.
graph.func @f(%t: tensor<3xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{operand #1 must be tensor of i32 with a static shape without zeros, but got 'tensor<2xi64>'}}
  %0 = graph.gather %t[%i] : (tensor<3xf32>, tensor<2xi64>) -> tensor<2xf32>
  graph.return
}

// -----

// Updates have the indices' dimensions.
graph.func @f(%u: tensor<2x4xf32>, %i: tensor<3xi32>) {
  // expected-error @+1 {{updates must have the indices' dimensions, then the result's dimensions after the first}}
  %0 = graph.scatter_add %u at %i : (tensor<2x4xf32>, tensor<3xi32>) -> tensor<7x4xf32>
  graph.return
}

// -----

// Updates have the rows' dimensions.
graph.func @f(%u: tensor<2x4xf32>, %i: tensor<2xi32>) {
  // expected-error @+1 {{updates must have the indices' dimensions, then the result's dimensions after the first}}
  %0 = graph.scatter_add %u at %i : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<7x5xf32>
  graph.return
}

// -----

// Updates have the result's element type.
graph.func @f(%u: tensor<2x4xf32>, %i: tensor<2xi32>) {
  // expected-error @+1 {{element types must agree}}
  %0 = graph.scatter_add %u at %i : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<7x4xf64>
  graph.return
}

// -----

// Rows are added to a table.
graph.func @f(%u: tensor<f32>, %i: tensor<i32>) {
  // expected-error @+1 {{the result needs at least one dimension}}
  %0 = graph.scatter_add %u at %i : (tensor<f32>, tensor<i32>) -> tensor<f32>
  graph.return
}

// -----

// A counted dimension exists.
graph.func @f() {
  // expected-error @+1 {{counted dimension 1 is out of range for a tensor of rank 1}}
  %0 = graph.iota dim 1 : tensor<3xi32>
  graph.return
}

// -----

// A random number's deviation is not negative.
graph.func @f() {
  // expected-error @+1 {{the standard deviation must be finite and not negative}}
  %0 = graph.random normal(-1.0) seed(0) stream(0) : tensor<3xf32>
  graph.return
}

// -----

// A whole has elements.
graph.func @f(%place: tensor<i32>) {
  // expected-error @+1 {{is a shard of a tensor whose dimension 0 of size 0 cannot be}}
  %0 = graph.random normal(1.0) seed(0) stream(0) shard %place along [0] of [0] : tensor<3xf32>
  graph.return
}

// -----

// And no more than can be counted.
graph.func @f() {
  // expected-error @+1 {{is a shard of a tensor whose dimension 1 of size 9223372036854775807 cannot be}}
  %0 = graph.random normal(1.0) seed(0) stream(0) of [3, 9223372036854775807] : tensor<3x2xf32>
  graph.return
}

// -----

// A dimension that is not sharded has its whole size.
graph.func @f(%place: tensor<i32>) {
  // expected-error @+1 {{has size 2 along dimension 1, which is not sharded, of a whole of size 4}}
  %0 = graph.random normal(1.0) seed(0) stream(0) shard %place along [0] of [6, 4] : tensor<3x2xf32>
  graph.return
}

// -----

// A norm has a row.
graph.func @f(%x: tensor<f32>, %s: tensor<3xf32>) {
  // expected-error @+2 {{the input needs at least one dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps 0.0 : (tensor<f32>, tensor<3xf32>) -> tensor<f32>
  graph.return
}

// -----

// A scale is as long as a row.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+2 {{scale and bias must have one dimension of size 3, got 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps 0.0 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A scale is a vector.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<1x3xf32>) {
  // expected-error @+2 {{scale and bias must have one dimension of size 3, got 'tensor<1x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps 0.0 : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A scale has the input's element type.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<3xbf16>) {
  // expected-error @+2 {{element types must agree}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps 0.0 : (tensor<2x3xf32>, tensor<3xbf16>) -> tensor<2x3xf32>
  graph.return
}

// -----

// An eps is not negative.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @+2 {{eps must be finite and not negative}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps -1.0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// An eps is a number.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @+2 {{eps must be finite and not negative}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rms_norm %x, %s eps 0x7FF8000000000000 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// A bias is as long as a row.
graph.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{scale and bias must have one dimension of size 3, got 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.layer_norm %x, %s, %b eps 0.0 : (tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  graph.return
}

// -----

// Positions are a vector.
graph.func @f(%p: tensor<2x3xi32>) {
  // expected-error @+1 {{positions must have one dimension, got 'tensor<2x3xi32>'}}
  %0:2 = graph.rope_angles %p theta 1.0 : (tensor<2x3xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.return
}

// -----

// Angles have a row for each position.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{both results must have the same shape [2, half of the head dimension]}}
  %0:2 = graph.rope_angles %p theta 1.0 : (tensor<2xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
  graph.return
}

// -----

// Cosines and sines have one shape.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{both results must have the same shape [2, half of the head dimension]}}
  %0:2 = graph.rope_angles %p theta 1.0 : (tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2x5xf32>)
  graph.return
}

// -----

// Theta is positive.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{theta must be finite and positive}}
  %0:2 = graph.rope_angles %p theta 0.0 : (tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.return
}

// -----

// A scaling lowers frequencies.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{the factor must be finite and at least 1, got 5.000000e-01}}
  %0:2 = graph.rope_angles %p theta 1.0 scaled <factor 0.5> : (tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.return
}

// -----

// A scaling counts turns within some positions.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{the original number of positions must be at least 1, got 0}}
  %0:2 = graph.rope_angles %p theta 1.0 scaled <factor 2.0 original 0 low 1.0 high 4.0> : (tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.return
}

// -----

// Frequencies that are divided turn less often than those that are not.
graph.func @f(%p: tensor<2xi32>) {
  // expected-error @+1 {{low and high must be finite, with 0 < low < high}}
  %0:2 = graph.rope_angles %p theta 1.0 scaled <factor 2.0 original 8 low 4.0 high 4.0> : (tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.return
}

// -----

// Rotated tensors have four dimensions.
graph.func @f(%x: tensor<3x2x4xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) {
  // expected-error @+2 {{the input must have four dimensions, the last one even, got 'tensor<3x2x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2x4xf32>
  graph.return
}

// -----

// The rotated dimension is even.
graph.func @f(%x: tensor<1x3x2x5xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) {
  // expected-error @+2 {{the input must have four dimensions, the last one even, got 'tensor<1x3x2x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x5xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x5xf32>
  graph.return
}

// -----

// There is an angle for each pair.
graph.func @f(%x: tensor<1x3x2x4xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+2 {{cosine and sine must both have shape [3, 2]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<1x3x2x4xf32>
  graph.return
}

// -----

// There is a sine for each cosine.
graph.func @f(%x: tensor<1x3x2x4xf32>, %c: tensor<3x2xf32>, %s: tensor<3x1xf32>) {
  // expected-error @+2 {{cosine and sine must both have shape [3, 2]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xf32>, tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<1x3x2x4xf32>
  graph.return
}

// -----

// Angles have the input's element type.
graph.func @f(%x: tensor<1x3x2x4xf32>, %c: tensor<3x2xf64>, %s: tensor<3x2xf64>) {
  // expected-error @+2 {{element types must agree}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xf32>, tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<1x3x2x4xf32>
  graph.return
}

// -----

// Angles in f32 are for narrower inputs.
graph.func @f(%x: tensor<1x3x2x4xf64>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) {
  // expected-error @+2 {{element types must agree, or cosine and sine be f32 for a narrower input}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xf64>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x4xf64>
  graph.return
}

// -----

// Angles are not narrower than the input.
graph.func @f(%x: tensor<1x3x2x4xf32>, %c: tensor<3x2xbf16>, %s: tensor<3x2xbf16>) {
  // expected-error @+2 {{element types must agree, or cosine and sine be f32 for a narrower input}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xf32>, tensor<3x2xbf16>, tensor<3x2xbf16>) -> tensor<1x3x2x4xf32>
  graph.return
}

// -----

// Both tables have one element type.
graph.func @f(%x: tensor<1x3x2x4xbf16>, %c: tensor<3x2xf32>, %s: tensor<3x2xbf16>) {
  // expected-error @+2 {{cosine and sine must both have shape [3, 2]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.rope %x, %c, %s : (tensor<1x3x2x4xbf16>, tensor<3x2xf32>, tensor<3x2xbf16>) -> tensor<1x3x2x4xbf16>
  graph.return
}

// -----

// A query has four dimensions.
graph.func @f(%q: tensor<2x3x6xf32>, %k: tensor<2x5x2x6xf32>, %v: tensor<2x5x2x6xf32>) {
  // expected-error @+2 {{query, key and value must have four dimensions, got 'tensor<2x3x6xf32>' and 'tensor<2x5x2x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// A key has four dimensions.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x6xf32>) {
  // expected-error @+2 {{query, key and value must have four dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// There is a value for each key.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>, %v: tensor<2x4x2x6xf32>) {
  // expected-error @+2 {{key and value must have equal types, got 'tensor<2x5x2x6xf32>' and 'tensor<2x4x2x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x4x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// Queries and keys have one element type.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf64>, %v: tensor<2x5x2x6xf64>) {
  // expected-error @+2 {{element types must agree}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf64>, tensor<2x5x2x6xf64>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// Queries and keys have one batch.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<1x5x2x6xf32>, %v: tensor<1x5x2x6xf32>) {
  // expected-error @+2 {{batch and head dimensions of query and key must agree, got}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<1x5x2x6xf32>, tensor<1x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// Queries and keys have one width.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x7xf32>, %v: tensor<2x5x2x7xf32>) {
  // expected-error @+2 {{batch and head dimensions of query and key must agree, got}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x7xf32>, tensor<2x5x2x7xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// Key heads are shared evenly.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x3x6xf32>, %v: tensor<2x5x3x6xf32>) {
  // expected-error @+2 {{the number of query heads 4 must be a multiple of the number of key heads 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// A causal query sees at least itself.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x2x2x6xf32>, %v: tensor<2x2x2x6xf32>) {
  // expected-error @+2 {{causal attention needs at least as many keys as queries, got 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention causal %q, %k, %v scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x2x2x6xf32>, tensor<2x2x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// A window has keys.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>) {
  // expected-error @+2 {{a window must have at least one key, got -1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention causal window -1 %q, %k, %k scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// A window is of the last keys that a query sees.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>) {
  // expected-error @+2 {{a window of keys needs causal attention}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.attention window 2 %q, %k, %k scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  graph.return
}

// -----

// The result of attention is like the query.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>, %r: tensor<2x3x4x5xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x6xf32>) {
  // expected-error @+2 {{result and its gradient must have the query's type 'tensor<2x3x4x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = graph.attention_grad %q, %k, %k, %r, %l, %g scale 1.0
   
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>, tensor<2x3x4x5xf32>, tensor<2x4x3xf32>, tensor<2x3x4x6xf32>)
      -> (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>)
  graph.return
}

// -----

// The result's gradient is like the query.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>, %r: tensor<2x3x4x6xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x5xf32>) {
  // expected-error @+2 {{result and its gradient must have the query's type 'tensor<2x3x4x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = graph.attention_grad %q, %k, %k, %r, %l, %g scale 1.0
   
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>, tensor<2x3x4x6xf32>, tensor<2x4x3xf32>, tensor<2x3x4x5xf32>)
      -> (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>)
  graph.return
}

// -----

// The logsumexp has one value per head and query.
graph.func @f(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x2x6xf32>, %r: tensor<2x3x4x6xf32>, %l: tensor<2x3x4xf32>, %g: tensor<2x3x4x6xf32>) {
  // expected-error @+2 {{logsumexp must have type 'tensor<2x4x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = graph.attention_grad %q, %k, %k, %r, %l, %g scale 1.0
   
    : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4xf32>, tensor<2x3x4x6xf32>)
      -> (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>)
  graph.return
}

// -----

// A gradient needs keys that attention takes.
graph.func @f(%q: tensor<2x3x4x6xf32>, %l: tensor<2x4x3xf32>, %k: tensor<2x5x3x6xf32>) {
  // expected-error @+2 {{the number of query heads 4 must be a multiple of the number of key heads 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = graph.attention_grad %q, %k, %k, %q, %l, %q scale 1.0
    : (tensor<2x3x4x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x3x4x6xf32>, tensor<2x4x3xf32>,
       tensor<2x3x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x6xf32>)
  graph.return
}

// -----

// There is a label for each position.
graph.func @f(%x: tensor<2x5xf32>, %l: tensor<3xi32>) {
  // expected-error @+2 {{the labels' shape must be the logits' without the last dimension, got 'tensor<3xi32>' for 'tensor<2x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.softmax_cross_entropy %x, %l : (tensor<2x5xf32>, tensor<3xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  graph.return
}

// -----

// Logits have a dimension of classes.
graph.func @f(%x: tensor<f32>, %l: tensor<i32>) {
  // expected-error @+2 {{the labels' shape must be the logits' without the last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = graph.softmax_cross_entropy %x, %l : (tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>)
  graph.return
}

// -----

// A gradient needs a label for each position.
graph.func @f(%x: tensor<2x5xf32>, %y: tensor<3xi32>, %l: tensor<2xf32>, %g: tensor<2xf32>) {
  // expected-error @+2 {{the labels' shape must be the logits' without the last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.softmax_cross_entropy_grad %x, %y, %l, %g
    : (tensor<2x5xf32>, tensor<3xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x5xf32>
  graph.return
}

// -----

// A logsumexp belongs to each position.
graph.func @f(%x: tensor<2x5xf32>, %y: tensor<2xi32>, %l: tensor<3xf32>, %g: tensor<2xf32>) {
  // expected-error @+2 {{logsumexp and loss gradient must have type 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.softmax_cross_entropy_grad %x, %y, %l, %g
    : (tensor<2x5xf32>, tensor<2xi32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x5xf32>
  graph.return
}

// -----

// A loss gradient belongs to each position.
graph.func @f(%x: tensor<2x5xf32>, %y: tensor<2xi32>, %l: tensor<2xf32>, %g: tensor<2xf64>) {
  // expected-error @+2 {{logsumexp and loss gradient must have type 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.softmax_cross_entropy_grad %x, %y, %l, %g
    : (tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf64>) -> tensor<2x5xf32>
  graph.return
}

// -----

graph.func @f(%x: tensor<6xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{has the epilogue of a library: its body must begin with a contraction that takes one, and it can leave out no rows}}
  %0 = graph.fusion(%x) epilogue "bias" : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6xf32>):
    %1 = arith.negf %a : tensor<6xf32>
    graph.yield %1 : tensor<6xf32>
  }
  graph.return %0 : tensor<6xf32>
}

// -----

// A fusion's arguments are its inputs.
graph.func @f(%x: tensor<6xf32>) {
  // expected-error @+1 {{body arguments must have the types of the inputs}}
  %0 = graph.fusion(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<5xf32>):
    %1 = arith.constant dense<0.0> : tensor<6xf32>
    graph.yield %1 : tensor<6xf32>
  }
  graph.return
}

// -----

// A count of rows is one of the inputs, and no result.
graph.func @f(%x: tensor<6x2xf32>) {
  // expected-error @+1 {{names tensor 1 in 'rows'; the first number must name one of its 1 inputs, later ones an input or a result (results count on behind the inputs), and no number may stand there twice}}
  %0 = graph.fusion(%x) rows [1] : (tensor<6x2xf32>) -> tensor<6x2xf32> {
  ^bb0(%a: tensor<6x2xf32>):
    graph.yield %a : tensor<6x2xf32>
  }
  graph.return
}

// -----

// A count of rows is of integers.
graph.func @f(%x: tensor<6x2xf32>) {
  // expected-error @+1 {{needs a count of rows that is i32 with one dimension}}
  %0 = graph.fusion(%x) rows [0] : (tensor<6x2xf32>) -> tensor<6x2xf32> {
  ^bb0(%a: tensor<6x2xf32>):
    graph.yield %a : tensor<6x2xf32>
  }
  graph.return
}

// -----

// What has rows has as many.
graph.func @f(%x: tensor<6x2xf32>, %y: tensor<3x4xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{names tensors in 'rows' whose first dimensions differ: 'tensor<6x2xf32>' and 'tensor<3x4xf32>'}}
  %0 = graph.fusion(%x, %y, %n) rows [2, 0, 1, 3] : (tensor<6x2xf32>, tensor<3x4xf32>, tensor<1xi32>) -> tensor<6x2xf32> {
  ^bb0(%a: tensor<6x2xf32>, %b: tensor<3x4xf32>, %c: tensor<1xi32>):
    graph.yield %a : tensor<6x2xf32>
  }
  graph.return
}

// -----

// A count without rows counts nothing.
graph.func @f(%x: tensor<6x2xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{needs an input or a result that has rows}}
  %0 = graph.fusion(%x, %n) rows [1] : (tensor<6x2xf32>, tensor<1xi32>) -> tensor<6x2xf32> {
  ^bb0(%a: tensor<6x2xf32>, %c: tensor<1xi32>):
    graph.yield %a : tensor<6x2xf32>
  }
  graph.return
}

// -----

// Rows that are left out are pieces of memory.
graph.func @f(%x: tensor<6xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{leaves rows out, so that all its results must be floating-point tensors with the same first dimension of 2 or more, and with several elements in each row; leave 'rows' out}}
  %0 = graph.fusion(%x, %n) rows [1, 0, 2] : (tensor<6xf32>, tensor<1xi32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6xf32>, %b: tensor<1xi32>):
    graph.yield %a : tensor<6xf32>
  }
  graph.return
}

// -----

// Code writes rows of all results, or leaves them out.
graph.func @f(%x: tensor<6x2xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{becomes code, which leaves out rows of all results: name result 2 in 'rows' too}}
  %0 = graph.fusion(%x, %n) rows [1, 0] : (tensor<6x2xf32>, tensor<1xi32>) -> tensor<6x2xf32> {
  ^bb0(%a: tensor<6x2xf32>, %c: tensor<1xi32>):
    %twice = arith.addf %a, %a : tensor<6x2xf32>
    graph.yield %twice : tensor<6x2xf32>
  }
  graph.return
}

// -----

// Rows that are left out could be told from others by their numbers.
graph.func @f(%x: tensor<6x2xi32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{leaves rows out, so that all its results must be floating-point tensors}}
  %0 = graph.fusion(%x, %n) rows [1, 0, 2] : (tensor<6x2xi32>, tensor<1xi32>) -> tensor<6x2xi32> {
  ^bb0(%a: tensor<6x2xi32>, %b: tensor<1xi32>):
    graph.yield %a : tensor<6x2xi32>
  }
  graph.return
}

// -----

// Some of one row cannot be left out.
graph.func @f(%x: tensor<1x2xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{leaves rows out, so that all its results must be floating-point tensors}}
  %0 = graph.fusion(%x, %n) rows [1, 0, 2] : (tensor<1x2xf32>, tensor<1xi32>) -> tensor<1x2xf32> {
  ^bb0(%a: tensor<1x2xf32>, %b: tensor<1xi32>):
    graph.yield %a : tensor<1x2xf32>
  }
  graph.return
}

// -----

// Rows need a dimension, and their count one.
graph.func @f(%x: tensor<6x2xf32>, %n: tensor<i32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{the rows must have at least one dimension and the count one, got 'tensor<6x2xf32>' and 'tensor<i32>'}}
  %0 = graph.valid_rows %x of %n : (tensor<6x2xf32>, tensor<i32>) -> tensor<6x2xf32>
  graph.return
}

// -----

// A fusion yields its results.
graph.func @f(%x: tensor<6xf32>) {
  // expected-error @+1 {{graph.yield must have the types of the results}}
  %0 = graph.fusion(%x) : (tensor<6xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<6xf32>):
    graph.yield %a : tensor<6xf32>
  }
  graph.return
}

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{timeline must be pairs of a function and a microbatch, but has 1 numbers}}
graph.entry @e [@f] repeat [1] timeline [0] microbatches 1

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{has a timeline, and needs a number of microbatches: 'microbatches 1' or more}}
graph.entry @e [@f] repeat [1] timeline [0, 0]

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{has a number of microbatches, which goes with a timeline}}
graph.entry @e [@f] repeat [1] microbatches 2

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{has a timeline, which says how often functions run; make every repeat count 1}}
graph.entry @e [@f] repeat [2] timeline [0, 0] microbatches 1

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{timeline has function 1 at place 0, but functions are counted from 0 to 0}}
graph.entry @e [@f] repeat [1] timeline [1, 0] microbatches 1

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{timeline has microbatch 2 at place 0, but they are counted from 0 to 1}}
graph.entry @e [@f] repeat [1] timeline [0, 2] microbatches 2

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{timeline never runs @f}}
graph.entry @e [@f, @f] repeat [1, 1] timeline [1, 0] microbatches 1

// -----

graph.func @f() {
  graph.return
}
// expected-error @+1 {{timeline must run @f once, at its end}}
graph.entry @e [@f, @f] repeat [1, 1] timeline [1, 0, 0, 0] microbatches 1

// -----

// expected-error @+1 {{needs a number of slots: 'slots 1' or more}}
graph.state @s stash : tensor<4xf32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{has 0 slots; the nearest valid number is 1}}
graph.state @s stash : tensor<4xf32> init(#graph.fill<0.0>) slots 0

// -----

// expected-error @+1 {{has slots, which only a stash may have}}
graph.state @s saved|step : tensor<i32> init(#graph.fill<0.0>) slots 1

// -----

// expected-error @+1 {{a stash must start from #graph.fill}}
graph.state @s stash : tensor<4xf32> init(#graph.normal<1.0>) slots 1

// -----

graph.func @f() {
  graph.return
}
// expected-error@+1 {{may not be of kind prepare: the compiler makes this entry from operations that depend on parameters alone; leave out the kind}}
graph.entry prepare @e [@f] repeat [1]

// -----

// Names are for people: any will do.
graph.func @f() {
  graph.return
}
graph.entry @prepare [@f] repeat [1]
graph.entry @init [@f] repeat [1]

// -----

graph.func @f() {
  graph.return
}
// expected-error@+1 {{does not know the kind 'training' of an entry; kinds are custom, init, train_step, eval_step, generate, prepare, step, embed}}
graph.entry training @e [@f] repeat [1]

// -----

graph.func @f() {
  graph.return
}
graph.entry eval_step @e [@f] repeat [1]
// expected-error@+1 {{is of kind eval_step, as entry @e is; there may be one entry of a kind}}
graph.entry eval_step @g [@f] repeat [1]

// -----

// Entries of a kind with buckets differ in these.
graph.func @f() {
  graph.return
}
graph.entry step @e bucket 8 [@f] repeat [1]
graph.entry step @g bucket 16 [@f] repeat [1]
graph.entry embed @h bucket 16 [@f] repeat [1]
// expected-error@+1 {{is of kind step, as entry @e is; there may be one entry of a kind and bucket}}
graph.entry step @i bucket 8 [@f] repeat [1]

// -----

graph.func @f() {
  graph.return
}
// expected-error@+1 {{is of kind step, which computes a number of tokens; say which: 'bucket 1' or more}}
graph.entry step @e [@f] repeat [1]

// -----

graph.func @f() {
  graph.return
}
// expected-error@+1 {{has bucket 4, which entries of kind custom do not have; leave it out}}
graph.entry @e bucket 4 [@f] repeat [1]

// -----

// expected-error @+1 {{the standard deviation must be finite and not negative, got -1}}
graph.param @w : tensor<4xf32> init(#graph.normal<-1.0>) key("w")

// -----

graph.func @f(%place: tensor<i32>) -> tensor<3xf32> {
  // expected-error @+1 {{needs one place per sharded dimension, and the whole shape where there are any}}
  %0 = "graph.random"(%place) {stddev = 1.0 : f64, seed = 0 : i64, stream = 0 : i64, sharded_dims = array<i64: 0>} : (tensor<i32>) -> tensor<3xf32>
  graph.return %0 : tensor<3xf32>
}

// -----

graph.func @f() -> tensor<3xf32> {
  // expected-error @+1 {{is a shard of a tensor of rank 2, but has rank 1}}
  %0 = graph.random normal(1.0) seed(0) stream(0) of [3, 2] : tensor<3xf32>
  graph.return %0 : tensor<3xf32>
}

// -----

// A cap is positive.
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{the cap must be finite and positive, got}}
  %0 = graph.softcap %x cap 0.0 : tensor<3xf32>
  graph.return
}

// -----

// A cap is a number.
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{the cap must be finite and positive, got}}
  %0 = graph.softcap %x cap 0x7FF8000000000000 : tensor<3xf32>
  graph.return
}

// -----

// Rows have two dimensions, matrices three.
graph.func @f(%x: tensor<4x3x1xf32>, %m: tensor<2x3x5xf32>, %o: tensor<3xi32>) {
  // expected-error @+2 {{the rows must have two dimensions and the matrices three, got 'tensor<4x3x1xf32>' and 'tensor<2x3x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.grouped_dot %x, %m at %o : (tensor<4x3x1xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  graph.return
}

// -----

// Rows fit their matrices.
graph.func @f(%x: tensor<4x5xf32>, %m: tensor<2x3x5xf32>, %o: tensor<3xi32>) {
  // expected-error @+2 {{dimension 1 of the matrices has size 3, but rows have 5 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.grouped_dot %x, %m at %o : (tensor<4x5xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  graph.return
}

// -----

// Every group has a matrix.
graph.func @f(%x: tensor<4x3xf32>, %m: tensor<2x3x5xf32>, %o: tensor<4xi32>) {
  // expected-error @+2 {{the offsets must have one dimension of 2 to 3 elements, one more than groups, got 'tensor<4xi32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.grouped_dot %x, %m at %o : (tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<4xi32>) -> tensor<4x5xf32>
  graph.return
}

// -----

// Both sides have one type.
graph.func @f(%x: tensor<4x3xbf16>, %m: tensor<2x3x5xf32>, %o: tensor<3xi32>) {
  // expected-error @+2 {{element types of both sides must agree, got 'bf16' and 'f32'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.grouped_dot %x, %m at %o : (tensor<4x3xbf16>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  graph.return
}

// -----

// Both sides have the same rows.
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<5x2xf32>, %o: tensor<3xi32>) {
  // expected-error @+1 {{both sides must have two dimensions and the same number of rows, got 'tensor<4x3xf32>' and 'tensor<5x2xf32>'}}
  %0 = graph.grouped_outer %x, %y at %o : (tensor<4x3xf32>, tensor<5x2xf32>, tensor<3xi32>) -> tensor<2x3x2xf32>
  graph.return
}

// -----

// A group's outer products have the sides' columns.
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>, %o: tensor<3xi32>) {
  // expected-error @+1 {{the result must be a matrix of 3 x 2 for each group, got 'tensor<2x2x3xf32>'}}
  %0 = graph.grouped_outer %x, %y at %o : (tensor<4x3xf32>, tensor<4x2xf32>, tensor<3xi32>) -> tensor<2x2x3xf32>
  graph.return
}

// -----

// Every group has a place in the result.
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>, %o: tensor<4xi32>) {
  // expected-error @+1 {{the offsets must have one dimension of 2 to 3 elements, one more than groups, got 'tensor<4xi32>'}}
  %0 = graph.grouped_outer %x, %y at %o : (tensor<4x3xf32>, tensor<4x2xf32>, tensor<4xi32>) -> tensor<2x3x2xf32>
  graph.return
}

// -----

// Sums are f32 or the sides' type.
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>, %o: tensor<3xi32>) {
  // expected-error @+1 {{the result must have the elements of both sides, or f32 where these are narrower}}
  %0 = graph.grouped_outer %x, %y at %o : (tensor<4x3xf32>, tensor<4x2xf32>, tensor<3xi32>) -> tensor<2x3x2xbf16>
  graph.return
}

// -----

// Who looks for the loss finds one function.
graph.func loss @loss() {
  graph.return
}
// expected-error @+1 {{is the part 'loss', as @loss already is; a module has at most one function of each part}}
graph.func loss @other() {
  graph.return
}

// -----

graph.func @f() {
  graph.return
}
// expected-error@+1 {{has bucket 4294967297, but plans count tokens in 32 bits}}
graph.entry step @e bucket 4294967297 [@f] repeat [1]
