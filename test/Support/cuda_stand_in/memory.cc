// Memory of the stand-in for NVIDIA's driver.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "test/Support/cuda_stand_in/stand_in.h"

namespace bowline::stand_in {
namespace {

constexpr size_t kMemory = size_t{1} << 36;

constexpr int kOfTheHost = -1;  // instead of a card

struct Allocation {
  size_t bytes;
  uint64_t number;
  int card;
  int uses = 0;  // of libraries that must end before it is freed
};
std::map<CUdeviceptr, Allocation>& allocations = *new std::map<CUdeviceptr, Allocation>();
size_t allocated = 0;
uint64_t last_number = 0;

// The allocation in which [begin, begin + bytes) lies, or the end.
std::map<CUdeviceptr, Allocation>::iterator Find(CUdeviceptr begin, size_t bytes) {
  const auto after = allocations.upper_bound(begin);
  if (after == allocations.begin()) return allocations.end();
  const auto found = std::prev(after);
  const size_t offset = begin - found->first, size = found->second.bytes;
  return offset <= size && bytes <= size - offset ? found : allocations.end();
}

CUresult Allocate(CUdeviceptr* address, size_t bytes, int card) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(mutex);
  if (bytes > kMemory || allocated + bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  // A multiple of 256 and of no more.
  auto* const memory = static_cast<char*>(std::aligned_alloc(512, (bytes + 256 + 511) / 512 * 512));
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory + 256);
  std::memset(memory + 256, 0xa5, std::min<size_t>(bytes, 1 << 20));
  allocations[*address] = {bytes, ++last_number, card};
  allocated += bytes;
  return CUDA_SUCCESS;
}

CUresult Free(CUdeviceptr address) {
  std::unique_lock<std::mutex> lock(mutex);
  const std::set<Stream*> streams = Streams();
  for (Stream* const stream : streams) {
    if (stream->card() == Card()) stream->Wait(lock);
  }
  const auto found = allocations.find(address);
  if (found == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.uses > 0) {
    std::fprintf(stderr, "stand-in: memory is freed that is registered with a library\n");
    std::abort();
  }
  allocated -= found->second.bytes;
  allocations.erase(found);
  std::free(reinterpret_cast<char*>(address) - 256);
  return CUDA_SUCCESS;
}

CUresult CopyNow(void* to, const void* from, size_t bytes, bool to_device, bool from_device, int card) {
  if (to_device && !IsInside(reinterpret_cast<CUdeviceptr>(to), bytes, card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (from_device && !IsInside(reinterpret_cast<CUdeviceptr>(from), bytes, card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

template <typename Value>
CUresult WriteValue(CUstream stream, CUdeviceptr to, Value value, unsigned flags) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || to % sizeof(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  return Issue(stream, [=, card = Card()] {
    if (!IsInside(to, sizeof(value), card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    __atomic_store_n(reinterpret_cast<Value*>(to), value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
  });
}

}  // namespace

bool IsInside(CUdeviceptr begin, size_t bytes, int card) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = Find(begin, bytes);
  return found != allocations.end() && (found->second.card == kOfTheHost || found->second.card == card);
}

void CountUse(CUdeviceptr address, int change) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = Find(address, 0); found != allocations.end()) found->second.uses += change;
}

Held::Held(const std::vector<CUdeviceptr>& addresses) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const CUdeviceptr address : addresses) {
    if (const auto found = Find(address, 0); found != allocations.end()) {
      allocations_.emplace_back(found->first, found->second.number);
    }
  }
}

bool Held::IsAlive() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::all_of(allocations_.begin(), allocations_.end(), [](const auto& held) {
    const auto found = allocations.find(held.first);
    return found != allocations.end() && found->second.number == held.second;
  });
}

}  // namespace bowline::stand_in

using namespace bowline::stand_in;

STAND_IN CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  REQUIRE_NO_CAPTURE();
  return Allocate(address, bytes, Card());
}
STAND_IN CUresult cuMemGetAddressRange(CUdeviceptr* begin, size_t* bytes, CUdeviceptr address) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = Find(address, 0);
  if (found == allocations.end() || found->second.card != Card()) return CUDA_ERROR_NOT_FOUND;
  *begin = found->first;
  *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuMemFree(CUdeviceptr address) {
  REQUIRE_NO_CAPTURE();
  return Free(address);
}
STAND_IN CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  REQUIRE_NO_CAPTURE();
  if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) == 0) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result = Allocate(&address, bytes, kOfTheHost);
  *memory = reinterpret_cast<void*>(address);
  return result;
}
STAND_IN CUresult cuMemFreeHost(void* memory) {
  REQUIRE_NO_CAPTURE();
  return Free(reinterpret_cast<CUdeviceptr>(memory));
}
STAND_IN CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  REQUIRE_CONTEXT();
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return IsInside(*address, 1, Card()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
  return Issue(stream, [=, card = Card(), held = Held({to, from})] {
    if (!held.IsAlive()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    return CopyNow(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true, card);
  });
}
STAND_IN CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  return Issue(stream,
               [=, card = Card()] { return CopyNow(reinterpret_cast<void*>(to), from, bytes, true, false, card); });
}
STAND_IN CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  return Issue(stream, [=, card = Card()] {
    return CopyNow(to, reinterpret_cast<const void*>(from), bytes, false, true, card);
  });
}
STAND_IN CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  REQUIRE_STREAM(stream);
  return Issue(stream, [=, card = Card()] {
    if (!IsInside(to, bytes, card)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return CUDA_SUCCESS;
  });
}
STAND_IN CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  REQUIRE_STREAM(stream);
  return WriteValue(stream, to, value, flags);
}
STAND_IN CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned flags) {
  REQUIRE_STREAM(stream);
  return WriteValue(stream, to, value, flags);
}
