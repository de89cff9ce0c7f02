// Every rule on what ranks do together refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// An event has a number.
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{event -1 is negative}}
    plan.signal -1
  }
}

// -----

// An event has a slot.
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{needs at least one slot}}
    plan.signal 0 slots 0
  }
}

// -----

// A wait is for an event with a number.
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{event -3 is negative}}
    plan.wait -3 slots 2
  }
}

// -----

// A wait chooses among slots.
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{needs at least one slot}}
    plan.wait 2 slots -1
  }
}

// -----

// A command names a stream of its program.
plan.program @p timeline [0, 0] streams ["compute", "network"] {
  plan.segment "s" {
    // expected-error @+1 {{is on stream 2, but the program has 2 streams}}
    plan.wait 0 on 2
  }
}

// -----

// A collective has a reduction that exists.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{has no reduction 7}}
    plan.collective all_reduce by 7 @tp (%x) to (%x) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// A permutation goes to somebody else.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{has no shift 0}}
    plan.collective permute @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// It is not in place: a neighbour would read what has arrived.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{source and destination are the same buffer, which only an all_reduce allows}}
    plan.collective permute by 1 @tp (%x) to (%x) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// It gives as much as it takes.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<8xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{cannot make 'tensor<8xf32>' of 'tensor<4xf32>'}}
    plan.collective permute by 1 @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<8xf32>>)
  }
}

// -----

// It says one that has a name.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{expected a reduction}}
    plan.collective all_reduce by most @tp (%x) to (%x) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// A collective names a communicator that exists.
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{no plan.communicator is named @tp}}
    plan.collective all_reduce @tp (%x) to (%x) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// Each source has a destination.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{has 2 sources and 1 destinations; it needs one destination per source}}
    plan.collective all_reduce @tp (%x, %x) to (%x)
      : (!plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// A collective moves one type of elements.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<4xi32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{moves elements of one type; got 'tensor<4xf32>' and 'tensor<4xi32>'}}
    plan.collective all_reduce @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xi32>>)
  }
}

// -----

// A gather gives a multiple of what it takes.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<6xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{cannot make 'tensor<6xf32>' of 'tensor<4xf32>'}}
    plan.collective all_gather @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<6xf32>>)
  }
}

// -----

// A reduction keeps the size.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<8xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{cannot make 'tensor<8xf32>' of 'tensor<4xf32>'}}
    plan.collective all_reduce @tp (%x) to (%y) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<8xf32>>)
  }
}

// -----

// Only a reduction works in place.
plan.communicator @tp over ["tp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{source and destination are the same buffer, which only an all_reduce allows}}
    plan.collective all_to_all @tp (%x) to (%x) : (!plan.buffer<tensor<4xf32>>) to (!plan.buffer<tensor<4xf32>>)
  }
}

// -----

// A transfer names a communicator that exists.
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{no plan.communicator is named @pp}}
    plan.send @pp to 1 (%x) : !plan.buffer<tensor<4xf32>>
  }
}

// -----

// A peer has a place.
plan.communicator @pp over ["pp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{peer -1 is negative}}
    plan.receive @pp from -1 (%x) : !plan.buffer<tensor<4xf32>>
  }
}

// -----

// A transfer moves something.
plan.communicator @pp over ["pp"]
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{needs at least one buffer}}
    "plan.send"() {communicator = @pp, peer = 1 : i64} : () -> ()
  }
}

// -----

// A transfer moves one type of elements.
plan.communicator @pp over ["pp"]
%x = plan.buffer "x" temporary : !plan.buffer<tensor<4xf32>>
%y = plan.buffer "y" temporary : !plan.buffer<tensor<4xi32>>
plan.program @p timeline [0, 0] {
  plan.segment "s" {
    // expected-error @+1 {{moves elements of one type}}
    plan.receive @pp from 0 (%x, %y) : !plan.buffer<tensor<4xf32>>, !plan.buffer<tensor<4xi32>>
  }
}

// -----

// A place in a group is an i32.
%x = plan.buffer "x" constant : !plan.buffer<tensor<f32>>
// expected-error @+1 {{must fill a constant buffer of one i32}}
plan.coordinate %x over ["tp"] : !plan.buffer<tensor<f32>>

// -----

// Numbers of a proof have no sign.
plan.program @p timeline [] {
}
// expected-error @+1 {{number -1 in 'order' has more than 32 bits or a sign}}
plan.entry @e program @p inputs [] limits [] () outputs [] () order [0, -1]

// -----

// Numbers of a proof fit into the file.
plan.program @p timeline [] {
}
// expected-error @+1 {{number 4294967296 in 'order' has more than 32 bits or a sign}}
plan.entry @e program @p inputs [] limits [] () outputs [] () order [4294967296]

// -----

// A digest is whole.
plan.program @p timeline [] {
}
// expected-error @+1 {{has 3 numbers in 'values'; a digest is two of them}}
plan.entry @e program @p inputs [] limits [] () outputs [] () order [] values [1, 2, 3]
