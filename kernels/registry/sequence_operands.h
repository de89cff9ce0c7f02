#ifndef BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_
#define BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_

// Kernels whose data say where the rows of sequences and the blocks of their caches are. They skip what is out of
// range; callers promise that nothing is (Sequences in plan.fbs), which the checker holds against these facts.

#include <cstdint>
#include <optional>
#include <string_view>

namespace bowline::kernels {

// Numbers of arguments.
struct SequenceOperands {
  uint32_t rows, lengths;
  uint32_t step;                          // whose first dimension is the rows of a step
  std::optional<uint32_t> blocks, cache;  // tables, and a cache [blocks, tokens of a block, ...] that they are about
};

// Null: the kernel knows no sequences.
const SequenceOperands* FindSequenceOperands(std::string_view kernel);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_SEQUENCE_OPERANDS_H_
