// A stand-in for NVIDIA's driver (libcuda.so.1), for tests of the cuda driver on machines without a card: the functions
// that it calls, with memory of the host, a thread for each stream, and waits at random before commands. It is stricter
// than a card: calls without a current context, copies outside of allocations, and unknown handles are errors. As on a
// card, freeing memory waits for all streams.
//
// Device functions run on the emulator of kernels/cuda. Of images it knows the driver's own, which stands for all
// functions of the emulator, and text with the function of test/Unit/Runtime/ptx_fixture.h.

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kMemory = size_t{1} << 36;

// Streams that nobody destroys outlive the program's end, as those of a driver do.
std::mutex& mutex = *new std::mutex();  // of all that follows, and of events
std::condition_variable& changed = *new std::condition_variable();
std::map<CUdeviceptr, size_t>& allocations = *new std::map<CUdeviceptr, size_t>();
size_t allocated = 0;
CUresult sticky = CUDA_SUCCESS;
thread_local CUcontext current = nullptr;

struct Event {
  bool timed = false;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point time;
};
struct EventHandle {
  std::shared_ptr<Event> event = std::make_shared<Event>();
};

class Stream {
 public:
  Stream() : random_(next_seed_++), thread_(&Stream::Work, this) {}
  ~Stream() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stop_ = true;
    }
    changed.notify_all();
    thread_.join();
  }

  void Add(std::function<CUresult()> command) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      commands_.push_back(std::move(command));
      ++added_;
    }
    changed.notify_all();
  }

  void Wait(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [this, until = added_] { return done_ >= until; });
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop_ || !commands_.empty(); });
      if (commands_.empty()) return;
      const std::function<CUresult()> command = std::move(commands_.front());
      commands_.pop_front();
      const auto wait = random_() % 8 == 0 ? random_() % 200 : 0;
      const bool runs = sticky == CUDA_SUCCESS;
      lock.unlock();
      if (wait > 0) std::this_thread::sleep_for(std::chrono::microseconds(wait));
      const CUresult result = runs ? command() : CUDA_SUCCESS;
      lock.lock();
      if (sticky == CUDA_SUCCESS) sticky = result;
      ++done_;
      changed.notify_all();
    }
  }

  static inline std::atomic<uint32_t> next_seed_{1};

  std::minstd_rand random_;
  std::deque<std::function<CUresult()>> commands_;
  uint64_t added_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

std::set<Stream*>& Streams() {
  static auto* const streams = new std::set<Stream*>();
  return *streams;
}

struct Function {
  std::string name;
  std::vector<size_t> parameters;
  int most_threads = 1024, most_shared = 48 << 10;
};
struct Module {
  bool is_text = false;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

bool IsInside(CUdeviceptr begin, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto after = allocations.upper_bound(begin);
  if (after == allocations.begin()) return false;
  const auto& [base, size] = *std::prev(after);
  return begin - base <= size && bytes <= size - (begin - base);
}

CUresult Allocate(CUdeviceptr* address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(mutex);
  if (bytes > kMemory || allocated + bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  // A multiple of 256 and of no more.
  auto* const memory = static_cast<char*>(std::aligned_alloc(512, (bytes + 256 + 511) / 512 * 512));
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory + 256);
  std::memset(memory + 256, 0xa5, std::min<size_t>(bytes, 1 << 20));
  allocations[*address] = bytes;
  allocated += bytes;
  return CUDA_SUCCESS;
}

CUresult Free(CUdeviceptr address) {
  std::unique_lock<std::mutex> lock(mutex);
  const std::set<Stream*> streams = Streams();
  for (Stream* const stream : streams) stream->Wait(lock);
  const auto found = allocations.find(address);
  if (found == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  allocated -= found->second;
  allocations.erase(found);
  std::free(reinterpret_cast<char*>(address) - 256);
  return CUDA_SUCCESS;
}

CUresult CopyNow(void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  if (to_device && !IsInside(reinterpret_cast<CUdeviceptr>(to), bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (from_device && !IsInside(reinterpret_cast<CUdeviceptr>(from), bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

// Of the fixture, or the emulator, which has one grid at a time.
CUresult RunFunction(const Function& function, bowline::kernels::cuda::DeviceLaunch launch,
                     const std::vector<uint64_t>& values) {
  if (function.name == "fixture_increment") {
    auto* const x = reinterpret_cast<float*>(values[0]);
    if (!IsInside(values[0], values[1] * sizeof(float))) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < values[1]; ++i) x[i] += 1;
    return CUDA_SUCCESS;
  }
  using bowline::kernels::cuda::Parameter;
  const bowline::emulator::Function& emulated = *bowline::emulator::FindFunction(function.name);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool address = emulated.parameters[i].address;
    launch.parameters.push_back({address ? Parameter::Kind::kScratch : Parameter::Kind::kConstant, 0,
                                 static_cast<uint32_t>(emulated.parameters[i].bytes), values[i]});
  }
  static std::mutex one_grid;
  static uint64_t seed = 0;
  const std::lock_guard<std::mutex> lock(one_grid);
  const absl::Status status = bowline::emulator::Launch(launch, {}, nullptr, ++seed);
  if (status.ok()) return CUDA_SUCCESS;
  std::fprintf(stderr, "stand-in: %s\n", status.ToString().c_str());
  return CUDA_ERROR_LAUNCH_FAILED;
}

Stream* Of(CUstream stream) { return reinterpret_cast<Stream*>(stream); }
Event& Of(CUevent event) { return *reinterpret_cast<EventHandle*>(event)->event; }
Function* Of(CUfunction function) { return reinterpret_cast<Function*>(function); }

}  // namespace

#define REQUIRE_CONTEXT()                                      \
  do {                                                         \
    if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT; \
  } while (false)

#define REQUIRE_STREAM(stream)                                                                    \
  do {                                                                                            \
    REQUIRE_CONTEXT();                                                                            \
    const std::lock_guard<std::mutex> lock(mutex);                                                \
    if (!Streams().contains(reinterpret_cast<Stream*>(stream))) return CUDA_ERROR_INVALID_HANDLE; \
    if (sticky != CUDA_SUCCESS) return sticky;                                                    \
  } while (false)

STAND_IN CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
STAND_IN CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
STAND_IN CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the stand-in";
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
STAND_IN CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "stand-in", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
STAND_IN CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  static int one;
  *context = reinterpret_cast<CUcontext>(&one);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  REQUIRE_CONTEXT();
  *lowest = 0;
  *highest = -5;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  REQUIRE_CONTEXT();
  return Allocate(address, bytes);
}
STAND_IN CUresult cuMemFree(CUdeviceptr address) {
  REQUIRE_CONTEXT();
  return Free(address);
}
STAND_IN CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  REQUIRE_CONTEXT();
  if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) == 0) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result = Allocate(&address, bytes);
  *memory = reinterpret_cast<void*>(address);
  return result;
}
STAND_IN CUresult cuMemFreeHost(void* memory) {
  REQUIRE_CONTEXT();
  return Free(reinterpret_cast<CUdeviceptr>(memory));
}
STAND_IN CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  REQUIRE_CONTEXT();
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return IsInside(*address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN CUresult cuMemGetInfo(size_t* free, size_t* total) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  *total = kMemory;
  *free = kMemory - allocated;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  Of(stream)->Add(
      [=] { return CopyNow(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true); });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  Of(stream)->Add([=] { return CopyNow(reinterpret_cast<void*>(to), from, bytes, true, false); });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  Of(stream)->Add([=] { return CopyNow(to, reinterpret_cast<const void*>(from), bytes, false, true); });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  Of(stream)->Add([=] {
    if (!IsInside(to, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned options, CUjit_option* names,
                                     void** values) {
  REQUIRE_CONTEXT();
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  auto loaded = std::make_unique<Module>();
  if (magic != 0xba55ed50) {
    const std::string text(static_cast<const char*>(image));
    if (text.rfind(".version", 0) != 0 || text.find("fixture_increment") == std::string::npos ||
        text.find_last_of('}') == std::string::npos) {
      for (unsigned i = 0; i < options; ++i) {
        if (names[i] == CU_JIT_ERROR_LOG_BUFFER) std::strcpy(static_cast<char*>(values[i]), "line 1: not the fixture");
      }
      return CUDA_ERROR_INVALID_PTX;
    }
    loaded->is_text = true;
  }
  *module = reinterpret_cast<CUmodule>(loaded.release());
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuModuleUnload(CUmodule module) {
  REQUIRE_CONTEXT();
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  REQUIRE_CONTEXT();
  auto* const from = reinterpret_cast<Module*>(module);
  auto found = std::make_unique<Function>();
  found->name = name;
  if (from->is_text) {
    if (found->name != "fixture_increment") return CUDA_ERROR_NOT_FOUND;
    found->parameters = {8, 8};
  } else {
    const bowline::emulator::Function* const emulated = bowline::emulator::FindFunction(name);
    if (emulated == nullptr) return CUDA_ERROR_NOT_FOUND;
    found->most_threads = static_cast<int>(emulated->most_threads);
    for (const auto& parameter : emulated->parameters) found->parameters.push_back(parameter.bytes);
  }
  std::unique_ptr<Function>& kept = from->functions[name];
  if (kept == nullptr) kept = std::move(found);
  *function = reinterpret_cast<CUfunction>(kept.get());
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuFuncLoad(CUfunction) {
  REQUIRE_CONTEXT();
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  REQUIRE_CONTEXT();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = Of(function)->most_threads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
STAND_IN CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  REQUIRE_CONTEXT();
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 227 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  Of(function)->most_shared = value;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  REQUIRE_CONTEXT();
  const std::vector<size_t>& parameters = Of(function)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * 8;
  *bytes = parameters[index];
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuLaunchKernel(CUfunction handle, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                                 unsigned tz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  REQUIRE_STREAM(stream);
  Function* const function = Of(handle);
  const uint64_t threads = uint64_t{tx} * ty * tz;
  if (uint64_t{bx} * by * bz == 0 || by > 65535 || bz > 65535 || threads == 0 || extra != nullptr ||
      threads > static_cast<uint64_t>(function->most_threads) ||
      shared > static_cast<unsigned>(function->most_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<uint64_t> values;
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    values.push_back(0);
    std::memcpy(&values.back(), parameters[i], function->parameters[i]);
  }
  bowline::kernels::cuda::DeviceLaunch launch = {function->name, {bx, by, bz}, {tx, ty, tz}, shared};
  Of(stream)->Add([function, launch, values] { return RunFunction(*function, launch, values); });
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  REQUIRE_CONTEXT();
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto* const made = new Stream();
  const std::lock_guard<std::mutex> lock(mutex);
  Streams().insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamDestroy(CUstream stream) {
  REQUIRE_CONTEXT();
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (!Streams().contains(Of(stream))) return CUDA_ERROR_INVALID_HANDLE;
    Of(stream)->Wait(lock);
    Streams().erase(Of(stream));
  }
  delete Of(stream);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamSynchronize(CUstream stream) {
  REQUIRE_STREAM(stream);
  std::unique_lock<std::mutex> lock(mutex);
  Of(stream)->Wait(lock);
  return sticky;
}
STAND_IN CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  REQUIRE_STREAM(stream);
  Of(stream)->Add([=] {
    function(data);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
  REQUIRE_STREAM(stream);
  const std::shared_ptr<Event> event = reinterpret_cast<EventHandle*>(handle)->event;
  uint64_t point = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    point = event->recorded;
  }
  Of(stream)->Add([=] {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return event->reached >= point; });
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuEventCreate(CUevent* event, unsigned flags) {
  REQUIRE_CONTEXT();
  auto* const made = new EventHandle();
  made->event->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventDestroy(CUevent event) {
  REQUIRE_CONTEXT();
  delete reinterpret_cast<EventHandle*>(event);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventRecord(CUevent handle, CUstream stream) {
  REQUIRE_STREAM(stream);
  const std::shared_ptr<Event> event = reinterpret_cast<EventHandle*>(handle)->event;
  uint64_t point = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    point = ++event->recorded;
  }
  Of(stream)->Add([=] {
    const std::lock_guard<std::mutex> lock(mutex);
    if (point > event->reached) {
      event->reached = point;
      event->time = std::chrono::steady_clock::now();
    }
    changed.notify_all();
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventQuery(CUevent event) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  return Of(event).reached == Of(event).recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuEventSynchronize(CUevent handle) {
  REQUIRE_CONTEXT();
  const std::shared_ptr<Event> event = reinterpret_cast<EventHandle*>(handle)->event;
  std::unique_lock<std::mutex> lock(mutex);
  const uint64_t point = event->recorded;
  changed.wait(lock, [&] { return event->reached >= point; });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  const Event &first = Of(begin), &second = Of(end);
  if (!first.timed || !second.timed || first.recorded == 0 || second.recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (first.reached < first.recorded || second.reached < second.recorded) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(second.time - first.time).count();
  return CUDA_SUCCESS;
}
