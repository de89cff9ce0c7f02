#ifndef BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_
#define BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_

// Some kernels read the rows of sequences and the blocks of their caches from arguments. They skip values out of range.
// Callers promise that none is (Sequences in plan.fbs), and the checker compares the promise with these facts.

#include <cstdint>
#include <optional>
#include <string_view>

namespace bowline::kernels {

// Indices of arguments.
struct SequenceOperands {
  uint32_t rows, lengths;
  uint32_t step;                          // the argument whose first dimension is the number of rows of a step
  std::optional<uint32_t> blocks, cache;  // the tables of blocks, and their cache [blocks, tokens of a block, ...]
};

// Returns null if the kernel has no sequences.
const SequenceOperands* FindSequenceOperands(std::string_view kernel);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_
