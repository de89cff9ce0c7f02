// Every rule of the verifiers refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// A target has threads.
// expected-error @+1 {{a target has 1 to 4096 threads, got 0}}
module attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "native", threads = 0>} {
}

// -----

// expected-error @+1 {{a target has 1 to 4096 threads, got -1}}
module attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "native", threads = -1>} {
}

// -----

// expected-error @+1 {{a target has 1 to 4096 threads, got 4097}}
module attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "native", threads = 4097>} {
}

// -----

// What a module says of its plan has its type.
// expected-error @+1 {{has "plan.seed" = "x"; it must be an i64}}
module attributes {plan.seed = "x"} {
}

// -----

// expected-error @+1 {{has "plan.compiler" = 7 : i64; it must be a string}}
module attributes {plan.compiler = 7} {
}

// -----

// expected-error @+1 {{has "plan.target" = 3 : i64; it must be a #plan.target}}
module attributes {plan.target = 3} {
}

// -----

// expected-error @+1 {{has "plan.arena_bytes" = -1 : i64; it must be an i64 from 0 on}}
module attributes {plan.arena_bytes = -1} {
}

// -----

// An argument of a kernel is a tensor.
// expected-error @+1 {{a kernel argument must be a ranked tensor of static shape with integer or floating-point elements, got f32}}
plan.kernel @k registered "fill" [#plan.arg<write, f32>] cost 0.0, 0.0

// -----

// An argument of a kernel has a static shape.
// expected-error @+1 {{a kernel argument must be a ranked tensor of static shape with integer or floating-point elements, got tensor<?xf32>}}
plan.kernel @k registered "fill" [#plan.arg<write, tensor<?xf32>>] cost 0.0, 0.0

// -----

// An argument's alignment is one that addresses have.
// expected-error @+1 {{alignment 48 is no power of two up to 4096}}
plan.kernel @k registered "fill" [#plan.arg<write, tensor<4xf32>, align 48>] cost 0.0, 0.0

// -----

// A buffer's too.
// expected-error @+1 {{alignment 8192 is no power of two up to 4096}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> at 0 align 8192

// -----

// Offsets are multiples of the buffer's own alignment.
// expected-error @+1 {{offset 64 is not a multiple of 256}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> at 64 align 256

// -----

// And so are strides.
// expected-error @+1 {{stride 64 of its slots must be a multiple of 256}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> at 0 align 256 slots 2 stride 64

// -----

// Nobody writes memory of the caller.
// expected-error @+1 {{is external, which only a parameter with one slot may be}}
%b = plan.buffer "b" temporary in external : !plan.buffer<tensor<4xf32>>

// -----

// What the caller gives has no slots.
// expected-error @+1 {{is external, which only a parameter with one slot may be}}
%b = plan.buffer "b" parameter in external : !plan.buffer<tensor<4xf32>> slots 2 stride 64

// -----

// Engines of a device copy from the host and to it.
%a = plan.buffer "a" temporary in pinned_host : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary in pinned_host : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{copies within memory of the host, which no engine of a device does}}
    plan.copy %a to %b : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}

// -----

// An argument of a kernel has elements of a type that plans have.
// expected-error @+1 {{plans have no elements of type 'i24'; they have f32, f64, bf16, f16, i64, i32, ui16, i8, ui8, i1}}
plan.kernel @k registered "fill" [#plan.arg<write, tensor<4xi24>>] cost 0.0, 0.0

// -----

// A buffer has a name.
// expected-error @+1 {{needs a name}}
%b = plan.buffer "" temporary : !plan.buffer<tensor<4xf32>>

// -----

// Offsets are multiples of the alignment.
// expected-error @+1 {{offset 65 is not a multiple of 64}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> at 65

// -----

// Offsets are not negative.
// expected-error @+1 {{offset -64 is not a multiple of 64}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> at -64

// -----

// A buffer has a slot.
// expected-error @+1 {{needs at least one slot}}
%b = plan.buffer "b" input : !plan.buffer<tensor<4xf32>> slots 0 stride 0

// -----

// One slot needs no stride.
// expected-error @+1 {{has one slot, so that its stride must be 0, got 64}}
%b = plan.buffer "b" input : !plan.buffer<tensor<4xf32>> slots 1 stride 64

// -----

// Slots are aligned.
// expected-error @+1 {{stride 32 of its slots must be a multiple of 64 and at least the size 16}}
%b = plan.buffer "b" input : !plan.buffer<tensor<4xf32>> slots 2 stride 32

// -----

// Slots do not overlap.
// expected-error @+1 {{stride 64 of its slots must be a multiple of 64 and at least the size 128}}
%b = plan.buffer "b" input : !plan.buffer<tensor<32xf32>> slots 2 stride 64

// -----

// Weights are parameters, and all else is a state.
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{key "b" must name a buffer that is a parameter, as weights must be}}
plan.state %b key "b" trained|saved|weight init "" : !plan.buffer<tensor<4xf32>>

// -----

%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{key "b" must name a buffer that is a state, as states other than weights must be}}
plan.state %b key "b" saved init "" : !plan.buffer<tensor<4xf32>>

// -----

// Checkpoints have a value for each.
%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{is trained|weight, but must be one of saved|mirror|per_request|cache: the flag says how a resumed run gets the value}}
plan.state %b key "b" trained|weight init "" : !plan.buffer<tensor<4xf32>>

// -----

%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{is trained|saved|weight|mirror, but must be one of saved|mirror|per_request}}
plan.state %b key "b" trained|saved|weight|mirror init "" : !plan.buffer<tensor<4xf32>>

// -----

%b = plan.buffer "b" state : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{is trained|saved, but only a weight is trained}}
plan.state %b key "b" trained|saved init "" : !plan.buffer<tensor<4xf32>>

// -----

%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{is weight|per_request, but a weight serves all requests}}
plan.state %b key "b" weight|per_request init "" : !plan.buffer<tensor<4xf32>>

// -----

%b = plan.buffer "b" parameter : !plan.buffer<tensor<i32>>
// expected-error @+1 {{is saved|weight|step, but only a saved variable that is no weight counts steps}}
plan.state %b key "b" saved|weight|step init "" : !plan.buffer<tensor<i32>>

// -----

%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{does not know the flag 'parameter' of a state; flags are trained|saved|weight|mirror|step|per_request}}
plan.state %b key "b" parameter init "" : !plan.buffer<tensor<4xf32>>

// -----

// Only constants have content.
%b = plan.buffer "b" parameter : !plan.buffer<tensor<2xf32>>
// expected-error @+1 {{must fill a constant buffer}}
plan.constant %b = dense<1.0> : tensor<2xf32> : !plan.buffer<tensor<2xf32>>

// -----

// Content has the buffer's type.
%b = plan.buffer "b" constant : !plan.buffer<tensor<2xf32>>
// expected-error @+1 {{content of type 'tensor<2xi32>' does not fit the buffer's type 'tensor<2xf32>'}}
plan.constant %b = dense<1> : tensor<2xi32> : !plan.buffer<tensor<2xf32>>

// -----

// A kernel comes from somewhere.
// expected-error @+1 {{must have one of: 'registered', 'body', 'symbol'}}
plan.kernel @k [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// Code takes the place of a body.
// expected-error @+1 {{has both a 'body' and a 'symbol'}}
plan.kernel @k body @f symbol "f" extent 1 [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// The registered kernel decides how its epilogue is called.
// expected-error @+1 {{has an extent or a grid exactly where its symbol is the whole kernel}}
plan.kernel @k registered "matmul" symbol "f" extent 1 [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// Neither has a registered kernel an extent of its own.
// expected-error @+1 {{has an extent or a grid exactly where its symbol is the whole kernel}}
plan.kernel @k registered "fill" extent 1 [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A body has no extent before it is code.
// expected-error @+1 {{has an extent or a grid exactly where its symbol is the whole kernel}}
plan.kernel @k body @f extent 1 [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// An epilogue is generated once as well.
// expected-error @+1 {{has both a 'body' and a 'symbol'}}
plan.kernel @k registered "matmul" body @f symbol "f" [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A registered kernel is launched as it decides itself.
// expected-error @+1 {{has an extent or a grid exactly where its symbol is the whole kernel}}
plan.kernel @k registered "fill" grid [1, 32] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// What rows a registered kernel leaves out the registry knows.
// expected-error @+1 {{is registered, so that the registry knows which rows it leaves out}}
plan.kernel @k registered "fill" [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1, 0, 2] cost 0.0, 0.0

// -----

// A count of rows is an argument.
// expected-error @+1 {{names argument 3 in 'rows', which it does not have or names twice}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [3, 0, 2] cost 0.0, 0.0

// -----

// A count is not what has rows.
// expected-error @+1 {{names argument 1 in 'rows', which it does not have or names twice}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1, 1, 2] cost 0.0, 0.0

// -----

// A count alone says nothing.
// expected-error @+1 {{needs a count and an argument in 'rows'}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1] cost 0.0, 0.0

// -----

// A count is of integers.
// expected-error @+1 {{takes argument 0 for a count of rows, which is not read as i32 with one dimension}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [0, 2] cost 0.0, 0.0

// -----

// Rows are as many in all arguments.
// expected-error @+1 {{in 'rows', which have other rows}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<2x4xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1, 0, 2] cost 0.0, 0.0

// -----

// All that is written has rows.
// expected-error @+1 {{writes argument 2, which is not among those in 'rows'}}
plan.kernel @k symbol "k" extent 4 [#plan.arg<read, tensor<4x2xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4x2xf32>>] rows [1, 0] cost 0.0, 0.0

// -----

// No code leaves out what is one element, or one of several that one piece of memory has.
// expected-error @+1 {{leaves rows out, so that all its results must be floating-point tensors with the same first dimension of 2 or more, and with several elements in each row; leave 'rows' out}}
plan.kernel @k body @b [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<3xi32>>, #plan.arg<write, tensor<4xf32>>] rows [1, 0, 2] cost 0.0, 0.0

// -----

// Code is called on ranges, or launched as a grid.
// expected-error @+1 {{has both an extent and a grid: one says how it is launched}}
plan.kernel @k symbol "k" extent 4 grid [1, 32] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A grid has blocks and threads.
// expected-error @+1 {{a grid is [blocks, threads]: 1 to 2^31 - 1 blocks of 1 to 1024 threads; then constants}}
plan.kernel @k symbol "k" grid [4] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A grid has a block.
// expected-error @+1 {{a grid is [blocks, threads]}}
plan.kernel @k symbol "k" grid [0, 32] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A grid has no more blocks than a device counts.
// expected-error @+1 {{a grid is [blocks, threads]}}
plan.kernel @k symbol "k" grid [2147483648, 32] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A block has a thread.
// expected-error @+1 {{a grid is [blocks, threads]}}
plan.kernel @k symbol "k" grid [1, 0] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// A block has no more threads than a device runs together.
// expected-error @+1 {{a grid is [blocks, threads]}}
plan.kernel @k symbol "k" grid [1, 1025] [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0

// -----

// Code is called somehow.
// expected-error @+1 {{has an extent or a grid exactly where its symbol is the whole kernel}}
"plan.kernel"() {sym_name = "k", symbol = "k", arguments = [], flops = 0.0, bytes_moved = 0.0} : () -> ()

// -----

// In-place pairs are pairs.
// expected-error @+1 {{'in_place' holds pairs (output, input)}}
plan.kernel @k registered "fill" [#plan.arg<write, tensor<f32>>] in_place [0] cost 0.0, 0.0

// -----

// An in-place pair names arguments.
// expected-error @+1 {{in-place pair (1, 0) must name a written and a read argument}}
plan.kernel @k registered "fill" [#plan.arg<read, tensor<f32>>] in_place [1, 0] cost 0.0, 0.0

// -----

// The output of an in-place pair is written.
// expected-error @+1 {{in-place pair (0, 1) must name a written and a read argument}}
plan.kernel @k registered "fill" [#plan.arg<read, tensor<f32>>, #plan.arg<write, tensor<f32>>] in_place [0, 1]
  cost 0.0, 0.0

// -----

// The arguments of an in-place pair have one size.
// expected-error @+1 {{in-place pair (1, 0) must have equal sizes}}
plan.kernel @k registered "fill" [#plan.arg<read, tensor<2xf32>>, #plan.arg<write, tensor<f32>>] in_place [1, 0]
  cost 0.0, 0.0

// -----

// A call runs a kernel that exists.
graph.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{no plan.kernel is named @k}}
  plan.call @k(%x) : (tensor<2xf32>) -> ()
  graph.return
}

// -----

// A call gives what the kernel reads.
plan.kernel @k registered "k" [#plan.arg<read, tensor<3xf32>>, #plan.arg<write, tensor<3xf32>>] cost 0.0, 0.0
graph.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{operands do not have the types of the arguments that @k reads}}
  %0 = plan.call @k(%x) : (tensor<2xf32>) -> tensor<3xf32>
  graph.return
}

// -----

// A call takes what the kernel writes.
plan.kernel @k registered "k" [#plan.arg<read, tensor<3xf32>>, #plan.arg<write, tensor<3xf32>>] cost 0.0, 0.0
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{results do not have the types of the arguments that @k writes}}
  %0 = plan.call @k(%x) : (tensor<3xf32>) -> tensor<3xi32>
  graph.return
}

// -----

// A program holds segments.
// expected-error @+1 {{may hold segments only}}
plan.program @p timeline [] {
  %b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
}

// -----

// A timeline holds pairs.
// expected-error @+1 {{the timeline holds pairs (segment, slot)}}
plan.program @p timeline [0] {
  plan.segment "s" {
  }
}

// -----

// A timeline names segments that exist.
// expected-error @+1 {{timeline call 1 names segment 1, slot 0, of 1 segments}}
plan.program @p timeline [0, 0, 1, 0] {
  plan.segment "s" {
  }
}

// -----

// Slots are not negative.
// expected-error @+1 {{timeline call 0 names segment 0, slot -1, of 1 segments}}
plan.program @p timeline [0, -1] {
  plan.segment "s" {
  }
}

// -----

// A segment stands in a program.
// expected-error @+1 {{expects parent op 'plan.program'}}
plan.segment "s" {
}

// -----

// A command stands in a segment.
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{expects parent op 'plan.segment'}}
plan.copy %b to %b : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>

// -----

// A launch runs a kernel that exists.
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{no plan.kernel is named @k}}
    plan.launch @k()
  }
}

// -----

// A launch gives every argument.
plan.kernel @k registered "fill" [#plan.arg<write, tensor<f32>>] cost 0.0, 0.0
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{gives 0 buffers to @k, which has 1 arguments}}
    plan.launch @k()
  }
}

// -----

// A launch gives arguments of the right size.
plan.kernel @k registered "fill" [#plan.arg<write, tensor<3xf32>>] cost 0.0, 0.0
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{argument 0 of @k is 'tensor<3xf32>', got 'tensor<4xf32>'}}
    plan.launch @k(%b) : !plan.buffer<tensor<4xf32>>
  }
}

// -----

// A launch gives arguments of the right elements.
plan.kernel @k registered "fill" [#plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xi32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{argument 0 of @k is 'tensor<4xf32>', got 'tensor<4xi32>'}}
    plan.launch @k(%b) : !plan.buffer<tensor<4xi32>>
  }
}

// -----

// A copy keeps the size.
%a = plan.buffer "a" temporary : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<5xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{source and destination differ in size}}
    plan.copy %a to %b : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<5xf32>>
  }
}

// -----

// One entry of each kind and bucket.
plan.program @p timeline [] {
}
plan.entry train_step @e program @p inputs [] limits [] () outputs [] ()
plan.entry step @small bucket 8 program @p inputs [] limits [] () outputs [] ()
plan.entry step @large bucket 16 program @p inputs [] limits [] () outputs [] ()
// expected-error @+1 {{is of kind train_step, as entry @e is; there may be one entry of a kind}}
plan.entry train_step @f program @p inputs [] limits [] () outputs [] ()

// -----

plan.program @p timeline [] {
}
// expected-error @+1 {{does not know the kind 'train' of an entry}}
plan.entry train @e program @p inputs [] limits [] () outputs [] ()

// -----

plan.program @p timeline [] {
}
// expected-error @+1 {{is of kind embed, which computes a number of tokens; say which: 'bucket 1' or more}}
plan.entry embed @e program @p inputs [] limits [] () outputs [] ()

// -----

plan.program @p timeline [] {
}
// expected-error @+1 {{has bucket 2, which entries of kind generate do not have; leave it out}}
plan.entry generate @e bucket 2 program @p inputs [] limits [] () outputs [] ()

// -----

// An entry runs a program that exists.
// expected-error @+1 {{no plan.program is named @p}}
plan.entry @e program @p inputs [] limits [] () outputs [] ()

// -----

// Every input has a name.
plan.program @p timeline [] {
}
%b = plan.buffer "b" input : !plan.buffer<tensor<4xi32>>
// expected-error @+1 {{needs one name per input and per output}}
plan.entry @e program @p inputs [] limits [4] (%b : !plan.buffer<tensor<4xi32>>) outputs [] ()

// -----

// Every output has a name.
plan.program @p timeline [] {
}
%b = plan.buffer "b" output : !plan.buffer<tensor<4xi32>>
// expected-error @+1 {{needs one name per input and per output}}
plan.entry @e program @p inputs [] limits [] () outputs ["x", "y"] (%b : !plan.buffer<tensor<4xi32>>)

// -----

// Every input has a limit.
plan.program @p timeline [] {
}
%b = plan.buffer "b" input : !plan.buffer<tensor<4xi32>>
// expected-error @+1 {{needs one limit per input}}
plan.entry @e program @p inputs ["b"] limits [] (%b : !plan.buffer<tensor<4xi32>>) outputs [] ()

// -----

// A buffer has a static shape.
// expected-error @+1 {{a buffer holds a tensor of static shape with integer or floating-point elements, got 'tensor<?xf32>'}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<?xf32>>

// -----

// So has a buffer.
// expected-error @+1 {{plans have no elements of type 'i16'; they have f32,}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xi16>>

// -----

// A buffer's elements have a size.
// expected-error @+1 {{a buffer holds a tensor of static shape with integer or floating-point elements, got 'tensor<4xindex>'}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xindex>>

// -----

// A segment holds commands.
%b = plan.buffer "b" constant : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{is no command; a plan.segment holds commands only, such as plan.launch and plan.copy}}
    plan.constant %b = dense<0.0> : tensor<4xf32> : !plan.buffer<tensor<4xf32>>
  }
}

// -----

// The content of a constant is written out.
%b = plan.buffer "b" constant : !plan.buffer<tensor<4xf32>>
// expected-error @+1 {{content must be written out as 'dense<...>'}}
plan.constant %b = sparse<[[1]], [2.0]> : tensor<4xf32> : !plan.buffer<tensor<4xf32>>

// -----

// expected-error @+2 {{a layout's shardings and flat axes are lists of names of axes}}
%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
  layout <global_shape = [4], view = [], dim_shardings = [[0]], flat_axes = []>

// -----

// expected-error @+2 {{a layout has one sharding per dimension or none; got 2 for 1 dimensions}}
%b = plan.buffer "b" parameter : !plan.buffer<tensor<4xf32>>
  layout <global_shape = [4], view = [], dim_shardings = [["dp"], []], flat_axes = []>

// -----

// expected-error @+1 {{has both a 'body' and a 'symbol': code generation replaces the one by the other}}
"plan.kernel"() {sym_name = "k", body = @f, symbol = "f", arguments = [], in_place = array<i64>, flops = 0.0 : f64, bytes_moved = 0.0 : f64} : () -> ()

// -----

// Only kernels with code have dependences.
// expected-error @+1 {{has 'depends', which is for kernels with code}}
plan.kernel @k registered "fill" [#plan.arg<read, tensor<f32>>, #plan.arg<write, tensor<f32>>] depends [array<i64: 1, 0>] cost 0.0, 0.0

// -----

// A list of what a result depends on begins with the result.
// expected-error @+1 {{'depends' has a list that does not begin with a written argument, or one that is there twice}}
plan.kernel @k symbol "k" extent 1 [#plan.arg<read, tensor<f32>>, #plan.arg<write, tensor<f32>>] depends [array<i64: 0>] cost 0.0, 0.0

// -----

// Nothing depends on a result.
// expected-error @+1 {{'depends' names argument 1, which is not read}}
plan.kernel @k symbol "k" extent 1 [#plan.arg<read, tensor<f32>>, #plan.arg<write, tensor<f32>>] depends [array<i64: 1, 1>] cost 0.0, 0.0

// -----

// The hash of code covers its contracts.
// expected-error @+1 {{has only one of 'contracts' and 'hash'; give both or neither}}
plan.image "elf" dense<[127, 69, 76, 70]> : tensor<4xi8> contracts [1, 2]

// -----

// A contract has 128 bits.
// expected-error @+1 {{must have contracts of two integers each}}
plan.image "elf" dense<[127, 69, 76, 70]> : tensor<4xi8> contracts [1] hash "00"

// -----

// A hash is one of sha256.
// expected-error @+1 {{has the hash '00'; it must be 64 hexadecimal digits}}
plan.image "elf" dense<[127, 69, 76, 70]> : tensor<4xi8> contracts [1, 2] hash "00"

// -----

// expected-error @+1 {{lies by rank, but is no view}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> {view_stride = 64 : i64}

// -----

%a = plan.buffer "a" input : !plan.buffer<tensor<8xf32>>
// expected-error @+1 {{is a view, but only a temporary may be one, of a temporary that is no view}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> view %a : !plan.buffer<tensor<8xf32>>

// -----

%a = plan.buffer "a" temporary : !plan.buffer<tensor<8xf32>>
// expected-error @+1 {{must have the element type, memory space, slots and stride of the buffer that it views}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xi32>> view %a : !plan.buffer<tensor<8xf32>>

// -----

%a = plan.buffer "a" temporary : !plan.buffer<tensor<8xf32>>
// expected-error @+1 {{lies 8 bytes further on for each rank; the least is 16 over axes, and 0 without}}
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> view %a : !plan.buffer<tensor<8xf32>> over ["tp"] by 8
