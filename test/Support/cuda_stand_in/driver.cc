// A stand-in for NVIDIA's driver (libcuda.so.1), for tests of the cuda driver on machines without a card: the functions
// that it calls, with memory of the host, a thread for each stream, and waits at random before commands. It is stricter
// than a card: calls without a current context, copies outside of allocations, unknown handles, and commands whose
// memory was freed since they were issued are errors. As on a card, freeing memory waits for all streams, and calls
// that are forbidden while streams are captured end the capture (capture.cc).
//
// BOWLINE_STAND_IN_CARDS is the number of cards, 1 if it is not set. None reaches another one's memory, and errors stay
// with a card.
//
// Device functions run on the emulator of kernels/cuda. Of images it knows the driver's own, which stands for all
// functions of the emulator, text with the functions of test/Unit/Runtime/ptx_fixture.h, and generated kernels that
// were compiled for this processor (generated.h).

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "kernels/cuda/emulator/emulator.h"
#include "test/Support/cuda_stand_in/generated.h"
#include "test/Support/cuda_stand_in/stand_in.h"

using namespace bowline::stand_in;

namespace {
struct Function {
  std::string name;
  std::vector<size_t> parameters;
  int most_threads = 1024, most_shared = 48 << 10;
  const GeneratedImage::Function* generated = nullptr;
};
struct Module {
  bool is_text = false;
  std::unique_ptr<GeneratedImage> generated;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Of the fixture, or the emulator, which has one grid at a time.
CUresult RunFunction(const Function& function, bowline::kernels::cuda::DeviceLaunch launch,
                     const std::vector<uint64_t>& values, int card) {
  if (function.name == "fixture_increment") {
    auto* const x = reinterpret_cast<float*>(values[0]);
    if (!IsInside(values[0], values[1] * sizeof(float), card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < values[1]; ++i) x[i] += 1;
    return CUDA_SUCCESS;
  }
  if (function.name == "fixture_add") {
    for (size_t i = 0; i < 3; ++i) {
      if (!IsInside(values[i], values[3] * sizeof(float), card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    auto *const a = reinterpret_cast<const float*>(values[0]), *const b = reinterpret_cast<const float*>(values[1]);
    auto* const out = reinterpret_cast<float*>(values[2]);
    for (uint64_t i = 0; i < values[3]; ++i) out[i] = a[i] + b[i];
    return CUDA_SUCCESS;
  }
  static std::mutex one_grid;
  static uint64_t seed = 0;
  const std::lock_guard<std::mutex> lock(one_grid);
  if (function.generated != nullptr) {
    bowline::testing::EmulatedGrid grid = function.generated->grid;
    grid.blocks = launch.blocks[0];
    grid.threads = launch.threads[0];
    const std::string wrong = bowline::testing::RunBlocks(grid, reinterpret_cast<void* const*>(values.data()), ++seed);
    if (wrong.empty()) return CUDA_SUCCESS;
    std::fprintf(stderr, "stand-in: %s: %s\n", function.name.c_str(), wrong.c_str());
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  using bowline::kernels::cuda::Parameter;
  const bowline::emulator::Function& emulated = *bowline::emulator::FindFunction(function.name);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool address = emulated.parameters[i].address;
    launch.parameters.push_back({address ? Parameter::Kind::kScratch : Parameter::Kind::kConstant, 0,
                                 static_cast<uint32_t>(emulated.parameters[i].bytes), values[i]});
  }
  const absl::Status status = bowline::emulator::Launch(launch, {}, nullptr, ++seed);
  if (status.ok()) return CUDA_SUCCESS;
  std::fprintf(stderr, "stand-in: %s\n", status.ToString().c_str());
  return CUDA_ERROR_LAUNCH_FAILED;
}

// The parameters that are addresses.
std::vector<CUdeviceptr> AddressesOf(const Function& function, const std::vector<uint64_t>& values) {
  if (function.name == "fixture_increment") return {values[0]};
  if (function.generated != nullptr) return {values.begin(), values.end()};
  if (function.name == "fixture_add") return {values[0], values[1], values[2]};
  std::vector<CUdeviceptr> addresses;
  const bowline::emulator::Function& emulated = *bowline::emulator::FindFunction(function.name);
  for (size_t i = 0; i < values.size(); ++i) {
    if (emulated.parameters[i].address) addresses.push_back(values[i]);
  }
  return addresses;
}

Function* FunctionOf(CUfunction function) { return reinterpret_cast<Function*>(function); }

}  // namespace

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
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
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
  *count = Cards();
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < Cards() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
STAND_IN CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, 0, sizeof(*uuid));
  uuid->bytes[0] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
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
STAND_IN CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = ContextOf(device);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetDevice(CUdevice* device) {
  REQUIRE_CONTEXT();
  *device = Card();
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

STAND_IN CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned options, CUjit_option* names,
                                     void** values) {
  REQUIRE_NO_CAPTURE();
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  auto loaded = std::make_unique<Module>();
  if (GeneratedImage::Is(static_cast<const char*>(image))) {
    loaded->generated = GeneratedImage::Load(static_cast<const char*>(image));
    if (loaded->generated == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  } else if (magic != 0xba55ed50) {
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
  REQUIRE_NO_CAPTURE();
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  REQUIRE_CONTEXT();
  auto* const from = reinterpret_cast<Module*>(module);
  auto found = std::make_unique<Function>();
  found->name = name;
  if (from->generated != nullptr) {
    found->generated = from->generated->Find(name);
    if (found->generated == nullptr) return CUDA_ERROR_NOT_FOUND;
    found->parameters.resize(found->generated->parameters, 8);
  } else if (from->is_text) {
    if (found->name != "fixture_increment" && found->name != "fixture_add") return CUDA_ERROR_NOT_FOUND;
    found->parameters.resize(found->name == "fixture_add" ? 4 : 2, 8);
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
  REQUIRE_NO_CAPTURE();
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  REQUIRE_CONTEXT();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = FunctionOf(function)->most_threads;
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
  FunctionOf(function)->most_shared = value;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  REQUIRE_CONTEXT();
  const std::vector<size_t>& parameters = FunctionOf(function)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * 8;
  *bytes = parameters[index];
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuLaunchKernel(CUfunction handle, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                                 unsigned tz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  REQUIRE_STREAM(stream);
  Function* const function = FunctionOf(handle);
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
  // Lets tests see captures that fail.
  const char* const not_in_graphs = std::getenv("BOWLINE_STAND_IN_NOT_IN_GRAPHS");
  if (not_in_graphs != nullptr && function->name == not_in_graphs) {
    const std::lock_guard<std::mutex> lock(mutex);
    const CapturePoint& point = Of(stream)->point;
    if (point.capture != nullptr) return Invalidate(point, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return Issue(stream, [=, card = Card(), held = Held(AddressesOf(*function, values))] {
    return held.IsAlive() ? RunFunction(*function, launch, values, card) : CUDA_ERROR_ILLEGAL_ADDRESS;
  });
}
