#include "kernels/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/context.h"

namespace bowline::emulator {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kGuardBytes = 256;  // on either side of shared memory
constexpr unsigned char kPoison = 0xFF;

std::map<std::string, Function>& Functions() {
  static std::map<std::string, Function> functions;
  return functions;
}

struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack;
  Place place;
  uint32_t linear = 0;
  bool ended = false;
  struct Copy {
    void* to;
    const void* from;  // null: zeros
    size_t bytes;
  };
  std::vector<Copy> started;
  std::deque<std::vector<Copy>> groups;
  // Waits until the block or the warp has left the phase, if any.
  const uint64_t* waits_for = nullptr;
  uint64_t phase = 0;
};

struct Warp {
  uint64_t phase = 0;
  int arrived = 0;
  size_t bytes = 0;
  alignas(16) unsigned char values[2][kWarp * kLargestExchange];
};

// The grid that is being executed.
struct Grid {
  const Function* function = nullptr;
  std::vector<uint64_t> values;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  uint64_t phase = 0;
  uint32_t arrived = 0, alive = 0;
  Fiber* current = nullptr;
  Context scheduler;
};
Grid* grid = nullptr;

void Wait(const uint64_t& phase) {
  Fiber& self = *grid->current;
  self.waits_for = &phase;
  self.phase = phase;
  Context::Switch(self.context, grid->scheduler);
}

void LeaveBarrierIfAllArrived() {
  if (grid->arrived == 0 || grid->arrived < grid->alive) return;
  grid->arrived = 0;
  ++grid->phase;
}

void RunFiber() {
  grid->function->call(grid->values.data());
  grid->current->ended = true;
  --grid->alive;
  LeaveBarrierIfAllArrived();
  Context::Switch(grid->current->context, grid->scheduler);
}

bool CanRun(const Fiber& fiber) {
  return !fiber.ended && (fiber.waits_for == nullptr || *fiber.waits_for != fiber.phase);
}

void RunBlock(std::mt19937_64& random, std::vector<uint32_t>& order) {
  grid->phase = 0;
  grid->arrived = 0;
  grid->alive = static_cast<uint32_t>(grid->fibers.size());
  for (Warp& warp : grid->warps) warp.phase = 0, warp.arrived = 0;
  for (Fiber& fiber : grid->fibers) {
    fiber.ended = false;
    fiber.waits_for = nullptr;
    fiber.started.clear();
    fiber.groups.clear();
    fiber.context.Prepare(fiber.stack.get(), kStackBytes, &RunFiber);
  }
  while (grid->alive > 0) {
    bool any = false;
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t index : order) {
      Fiber& fiber = grid->fibers[index];
      if (!CanRun(fiber)) continue;
      any = true;
      fiber.waits_for = nullptr;
      grid->current = &fiber;
      Context::Switch(grid->scheduler, fiber.context);
    }
    if (!any) Fail("threads wait for others that do not come");
  }
}

absl::Status Refuse(const kernels::cuda::DeviceLaunch& launch, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("launch of '", launch.function, "': ", why));
}

absl::Status CheckGeometry(const kernels::cuda::DeviceLaunch& launch, const Function& function) {
  uint64_t threads = 1;
  for (int d = 0; d < 3; ++d) {
    if (launch.threads[d] == 0 || launch.blocks[d] == 0) return Refuse(launch, "an empty grid");
    if (launch.blocks[d] > (d == 0 ? uint32_t{INT32_MAX} : 65535u)) return Refuse(launch, "the grid is too large");
    threads *= launch.threads[d];
  }
  if (threads > function.most_threads) return Refuse(launch, "a block has more threads than its function allows");
  if (threads > 1024 || launch.threads[2] > 64) return Refuse(launch, "a block is too large");
  if (launch.shared_bytes > (227u << 10)) return Refuse(launch, "more shared memory than there is");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> Values(const kernels::cuda::DeviceLaunch& launch, const Function& function,
                                             absl::Span<void* const> arguments, void* scratch) {
  if (launch.parameters.size() != function.parameters.size()) {
    return Refuse(launch, absl::StrCat(launch.parameters.size(), " parameters; it takes ", function.parameters.size()));
  }
  std::vector<uint64_t> values;
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    using Kind = kernels::cuda::Parameter::Kind;
    const kernels::cuda::Parameter& parameter = launch.parameters[i];
    const bool address = parameter.kind != Kind::kConstant;
    const bool null = !address && parameter.value == 0;
    if (parameter.bytes != function.parameters[i].bytes || (address != function.parameters[i].address && !null)) {
      return Refuse(launch, absl::StrCat("parameter ", i, " is of another type"));
    }
    if (parameter.kind == Kind::kArgument && parameter.index >= arguments.size()) {
      return Refuse(launch, absl::StrCat("parameter ", i, " is an argument that there is not"));
    }
    const void* base = parameter.kind == Kind::kArgument  ? arguments[parameter.index]
                       : parameter.kind == Kind::kScratch ? scratch
                                                          : nullptr;
    values.push_back(reinterpret_cast<uintptr_t>(base) + parameter.value);
  }
  return values;
}

}  // namespace

void Fail(const std::string& message) {
  std::fprintf(stderr, "emulator: %s", message.c_str());
  if (grid != nullptr) {
    const Place& place = grid->current->place;
    std::fprintf(stderr, ", in '%s', block (%u, %u, %u), thread (%u, %u, %u)", grid->function->name.c_str(),
                 place.block.x, place.block.y, place.block.z, place.thread.x, place.thread.y, place.thread.z);
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

const Place& Current() { return grid->current->place; }
uint32_t Lane() { return grid->current->linear % kWarp; }

void BlockBarrier() {
  const uint64_t phase = grid->phase;
  ++grid->arrived;
  LeaveBarrierIfAllArrived();
  if (grid->phase == phase) Wait(grid->phase);
}

const unsigned char* ExchangeBytes(const void* value, size_t bytes) {
  const uint32_t linear = grid->current->linear;
  if (linear / kWarp >= grid->fibers.size() / kWarp) Fail("an exchange in a warp of less than 32 threads");
  Warp& warp = grid->warps[linear / kWarp];
  if (warp.arrived == 0) warp.bytes = bytes;
  if (warp.bytes != bytes) Fail("lanes of a warp meet in different operations");
  unsigned char* values = warp.values[warp.phase % 2];
  std::memcpy(values + linear % kWarp * kLargestExchange, value, bytes);
  if (++warp.arrived == kWarp) {
    warp.arrived = 0;
    ++warp.phase;
  } else {
    Wait(warp.phase);
  }
  return values;
}

void StartCopy(void* to, const void* from, size_t bytes, bool inside) {
  CheckAligned(to, bytes);
  CheckAligned(from, bytes);
  grid->current->started.push_back({to, inside ? from : nullptr, bytes});
}

void CommitCopies() { grid->current->groups.push_back(std::exchange(grid->current->started, {})); }

void WaitForCopies(size_t pending) {
  auto& groups = grid->current->groups;
  for (; groups.size() > pending; groups.pop_front()) {
    for (const Fiber::Copy& copy : groups.front()) {
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, copy.bytes);
      } else {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
  }
}

void Register(Function function) {
  const std::string name = function.name;
  Functions().emplace(name, std::move(function));
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Functions()) names.push_back(name);
  return names;
}

const Function* FindFunction(const std::string& name) {
  const auto found = Functions().find(name);
  return found == Functions().end() ? nullptr : &found->second;
}

absl::Status Check(const kernels::cuda::DeviceLaunch& launch, size_t arguments, size_t scratch_bytes) {
  const auto found = Functions().find(launch.function);
  if (found == Functions().end()) return Refuse(launch, "there is no such function");
  if (absl::Status status = CheckGeometry(launch, found->second); !status.ok()) return status;
  for (const kernels::cuda::Parameter& parameter : launch.parameters) {
    if (parameter.kind == kernels::cuda::Parameter::Kind::kScratch && parameter.value >= scratch_bytes) {
      return Refuse(launch, "an address beyond the workspace");
    }
  }
  const std::vector<void*> addresses(arguments, nullptr);
  return Values(launch, found->second, addresses, nullptr).status();
}

absl::Status Launch(const kernels::cuda::DeviceLaunch& launch, absl::Span<void* const> arguments, void* scratch,
                    uint64_t seed) {
  const auto found = Functions().find(launch.function);
  if (found == Functions().end()) return Refuse(launch, "there is no such function");
  const Function& function = found->second;
  if (absl::Status status = CheckGeometry(launch, function); !status.ok()) return status;
  absl::StatusOr<std::vector<uint64_t>> values = Values(launch, function, arguments, scratch);
  if (!values.ok()) return values.status();

  std::vector<unsigned char> shared_memory(launch.shared_bytes + 2 * kGuardBytes + 1024);
  unsigned char* shared = shared_memory.data() + kGuardBytes;
  shared += (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  Grid own;
  own.function = &function;
  own.values = *std::move(values);
  const auto [tx, ty, tz] = launch.threads;
  const auto [bx, by, bz] = launch.blocks;
  own.fibers = std::vector<Fiber>(tx * ty * tz);
  own.warps = std::vector<Warp>((own.fibers.size() + kWarp - 1) / kWarp);
  for (uint32_t i = 0; i < own.fibers.size(); ++i) {
    Fiber& fiber = own.fibers[i];
    fiber.stack.reset(new char[kStackBytes]);
    fiber.linear = i;
    fiber.place = {{i % tx, i / tx % ty, i / tx / ty}, {}, {tx, ty, tz}, {bx, by, bz}, shared};
  }
  std::mt19937_64 random(seed);
  std::vector<uint32_t> order(own.fibers.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<uint64_t> blocks(static_cast<uint64_t>(bx) * by * bz);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  grid = &own;
  own.current = own.fibers.data();
  for (uint64_t block : blocks) {
    std::fill(shared_memory.begin(), shared_memory.end(), kPoison);
    const Dim3 place = {static_cast<uint32_t>(block % bx), static_cast<uint32_t>(block / bx % by),
                        static_cast<uint32_t>(block / bx / by)};
    for (Fiber& fiber : own.fibers) fiber.place.block = place;
    RunBlock(random, order);
    for (size_t i = 1; i <= kGuardBytes; ++i) {
      if (*(shared - i) != kPoison || shared[launch.shared_bytes + i - 1] != kPoison) {
        Fail("a write beyond shared memory");
      }
    }
  }
  grid = nullptr;
  return absl::OkStatus();
}

absl::Status Execute(const kernels::cuda::KernelProgram& program, absl::Span<void* const> arguments, void* scratch,
                     uint64_t seed) {
  if (!program.products.empty()) return absl::InvalidArgumentError("a product is a library's");
  for (const kernels::cuda::DeviceLaunch& launch : program.launches) {
    if (absl::Status status = Launch(launch, arguments, scratch, seed++); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace bowline::emulator
