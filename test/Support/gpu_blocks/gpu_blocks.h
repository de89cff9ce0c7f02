#ifndef BOWLINE_TEST_SUPPORT_GPU_BLOCKS_GPU_BLOCKS_H_
#define BOWLINE_TEST_SUPPORT_GPU_BLOCKS_GPU_BLOCKS_H_

// Runs blocks of threads whose code was generated for GPUs and compiled for this processor
// (test/Unit/Codegen/EmulatedCode.h).

#include <cstdint>
#include <string>

namespace bowline::testing {

// One block while it runs. The code has its address, and finds the addresses of these functions at its begin.
enum BlockFunction { kThreadNumber, kBlockNumber, kBarrier, kShuffle, kBlockFunctionCount };
struct BlockState;

struct EmulatedGrid {
  // Runs one thread; with no state it poisons shared memory instead.
  void (*entry)(void* const* arguments, BlockState* state) = nullptr;
  uint32_t blocks = 1, threads = 1;
  bool has_barriers = false;  // threads wait for each other
};

// A thread is a fiber; blocks run one after another, in a random order, and the threads of a block in a random order
// between two points where they wait for each other. Barriers and shuffles have their meaning, and are errors where not
// all threads come; shared memory is poisoned when a block begins. Returns the error, or nothing.
std::string RunBlocks(const EmulatedGrid& grid, void* const* arguments, uint64_t seed);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_SUPPORT_GPU_BLOCKS_GPU_BLOCKS_H_
