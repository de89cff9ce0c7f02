#include "test/Support/gpu_blocks/gpu_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/emulator/context.h"

namespace bowline::testing {
namespace {
using emulator::Context;
constexpr int kWarp = 32;
constexpr size_t kStackBytes = 64 << 10;
}  // namespace

struct BlockState {
  void* functions[kBlockFunctionCount];
  uint32_t block = 0, thread = 0;

  struct Fiber {
    Context context;
    bool is_done = false, waits_at_barrier = false;
  };
  struct Warp {
    std::array<uint32_t, kWarp> values, results[2];
    int arrived = 0;
    uint64_t generation = 0;
  };
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Context scheduler;
  uint64_t barriers = 0, progress = 0;
  void (*entry)(void* const*, BlockState*) = nullptr;
  void* const* arguments = nullptr;

  void Yield() { Context::Switch(fibers[thread].context, scheduler); }
};

namespace {

uint32_t ThreadOf(BlockState* state) { return state->thread; }
uint32_t BlockOf(BlockState* state) { return state->block; }

void Barrier(BlockState* state) {
  const uint64_t number = state->barriers;
  state->fibers[state->thread].waits_at_barrier = true;
  ++state->progress;
  while (state->barriers == number) state->Yield();
}

uint32_t Shuffle(BlockState* state, uint32_t value, uint32_t distance) {
  const uint32_t lane = state->thread % kWarp;
  BlockState::Warp& warp = state->warps[state->thread / kWarp];
  const uint64_t generation = warp.generation;
  warp.values[lane] = value;
  ++state->progress;
  if (++warp.arrived == kWarp) {
    warp.results[generation % 2] = warp.values;
    warp.arrived = 0;
    ++warp.generation;
  }
  while (warp.generation == generation) state->Yield();
  return warp.results[generation % 2][lane ^ distance];
}

thread_local BlockState* running = nullptr;  // the block whose fiber begins

void RunFiber() {
  BlockState* state = running;
  state->entry(state->arguments, state);
  state->fibers[state->thread].is_done = true;
  ++state->progress;
  state->Yield();
}

// The stacks of all threads of one block.
class Stacks {
 public:
  explicit Stacks(size_t count) : bytes_(count * kStackBytes) {
    start_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Stacks() { munmap(start_, bytes_); }
  char* at(size_t i) { return start_ + i * kStackBytes; }

 private:
  size_t bytes_;
  char* start_;
};

std::string RunBlock(BlockState& state, Stacks& stacks, std::mt19937_64& random) {
  const size_t threads = state.fibers.size();
  running = &state;
  for (size_t i = 0; i < threads; ++i) {
    BlockState::Fiber& fiber = state.fibers[i];
    fiber.is_done = fiber.waits_at_barrier = false;
    fiber.context.Prepare(stacks.at(i), kStackBytes, &RunFiber);
  }
  std::vector<uint32_t> order(threads);
  std::iota(order.begin(), order.end(), 0);
  while (true) {
    std::shuffle(order.begin(), order.end(), random);
    const uint64_t before = state.progress;
    size_t done = 0, waiting = 0;
    for (const uint32_t i : order) {
      if (state.fibers[i].is_done || state.fibers[i].waits_at_barrier) continue;
      state.thread = i;
      Context::Switch(state.scheduler, state.fibers[i].context);
    }
    for (const BlockState::Fiber& fiber : state.fibers) {
      done += fiber.is_done;
      waiting += fiber.waits_at_barrier;
    }
    if (done == threads) return "";
    if (waiting == threads) {
      ++state.barriers;
      for (BlockState::Fiber& fiber : state.fibers) fiber.waits_at_barrier = false;
    } else if (state.progress == before) {
      return "block " + std::to_string(state.block) + ": " + std::to_string(waiting) + " of " +
             std::to_string(threads) + " threads wait at a barrier, " + std::to_string(done) +
             " have ended, and the others wait for lanes of their warp that never come";
    }
  }
}

}  // namespace

std::string RunBlocks(const EmulatedGrid& grid, void* const* arguments, uint64_t seed) {
  std::mt19937_64 random(seed);
  BlockState state;
  state.functions[kThreadNumber] = reinterpret_cast<void*>(&ThreadOf);
  state.functions[kBlockNumber] = reinterpret_cast<void*>(&BlockOf);
  state.functions[kBarrier] = reinterpret_cast<void*>(&Barrier);
  state.functions[kShuffle] = reinterpret_cast<void*>(&Shuffle);
  state.entry = grid.entry;
  state.arguments = arguments;
  state.fibers.resize(grid.threads);
  state.warps.resize((grid.threads + kWarp - 1) / kWarp);
  std::vector<uint32_t> blocks(grid.blocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::unique_ptr<Stacks> stacks;
  if (grid.has_barriers) stacks = std::make_unique<Stacks>(grid.threads);
  for (const uint32_t block : blocks) {
    state.block = block;
    state.entry(arguments, nullptr);
    if (grid.has_barriers) {
      std::string wrong = RunBlock(state, *stacks, random);
      if (!wrong.empty()) return wrong;
      continue;
    }
    for (state.thread = 0; state.thread < grid.threads; ++state.thread) state.entry(arguments, &state);
  }
  return "";
}

}  // namespace bowline::testing
