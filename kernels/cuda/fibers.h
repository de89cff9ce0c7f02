#ifndef BOWLINE_KERNELS_CUDA_FIBERS_H_
#define BOWLINE_KERNELS_CUDA_FIBERS_H_

// The part of the emulator (emulator.h) that a device function sees: its place in the grid, shared memory, barriers,
// and exchanges between the lanes of a warp. A thread of a block is a fiber, which runs until it waits for others.
//
// The emulator ends the process with a message where a GPU would fail: a misaligned access, a write beyond shared
// memory, lanes of a warp that meet in different operations, threads that wait for ever.

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace bowline::emulator {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct Place {
  Dim3 thread, block, threads, blocks;  // threadIdx, blockIdx, blockDim, gridDim
  unsigned char* shared;
};
const Place& Current();
// The lane of the current thread in its warp of 32.
uint32_t Lane();

[[noreturn]] void Fail(const std::string& message);

inline void CheckAligned(const void* address, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) Fail("an access is not aligned");
}

// Returns when all threads of the block that have not ended wait here.
void BlockBarrier();

inline constexpr int kWarp = 32;
inline constexpr int kLargestExchange = 64;  // bytes

// Returns the values of all lanes, each at the multiple of kLargestExchange that its lane is, when all of them are
// there; valid until the lane's next exchange but one. `bytes` is the same in all lanes.
const unsigned char* ExchangeBytes(const void* value, size_t bytes);

template <typename T>
class Lanes {
 public:
  explicit Lanes(const unsigned char* values) : values_(values) {}
  T operator[](int lane) const {
    T value;
    std::memcpy(&value, values_ + (lane & (kWarp - 1)) * kLargestExchange, sizeof(T));
    return value;
  }

 private:
  const unsigned char* values_;
};

template <typename T>
Lanes<T> Exchange(const T& value) {
  static_assert(sizeof(T) <= kLargestExchange);
  return Lanes<T>(ExchangeBytes(&value, sizeof(T)));
}

// Copies to shared memory that a thread starts, closes into groups, and waits for until `pending` groups may be
// unfinished; they happen then, as late as they may. `bytes` that are not `inside` are cleared.
void StartCopy(void* to, const void* from, size_t bytes, bool inside);
void CommitCopies();
void WaitForCopies(size_t pending);

template <typename To, typename From>
To Reinterpret(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// A device function, as its declaration registers it.
struct Function {
  struct ParameterType {
    size_t bytes;
    bool address;
  };
  std::string name;
  uint32_t most_threads;
  std::vector<ParameterType> parameters;
  std::function<void(const uint64_t* values)> call;
};
void Register(Function function);

template <typename... Parameters, size_t... kIndices>
void CallWith(void (*function)(Parameters...), const uint64_t* values, std::index_sequence<kIndices...>) {
  const auto value = [&]<typename T>(size_t index, T* of_type) {
    std::memcpy(of_type, &values[index], sizeof(T));
    return *of_type;
  };
  std::tuple<Parameters...> typed;
  (value(kIndices, &std::get<kIndices>(typed)), ...);
  std::apply(function, typed);
}

template <typename... Parameters>
bool RegisterFunction(const char* name, uint32_t most_threads, void (*function)(Parameters...)) {
  Register(
      {name, most_threads, {{sizeof(Parameters), std::is_pointer_v<Parameters>}...}, [function](const uint64_t* v) {
         CallWith(function, v, std::index_sequence_for<Parameters...>());
       }});
  return true;
}

}  // namespace bowline::emulator

#endif  // BOWLINE_KERNELS_CUDA_FIBERS_H_
