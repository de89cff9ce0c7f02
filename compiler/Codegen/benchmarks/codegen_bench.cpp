//===- codegen_bench.cpp - Speed of generated kernels beside a copy and a triad
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each kernel runs in turns with a copy (b = a) and a triad (a = b + s c) that move as many bytes, so that other load
// on the machine slows all three. Bytes are those of the arguments, each counted once. With one thread its processor
// time is measured, with several the wall clock's.
//
//===----------------------------------------------------------------------===//

#include "benchmark/benchmark.h"
#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/benchmarks/kernel_sources.h"
#include "kernels/cpu/parallel/parallel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>

using namespace mlir;
using namespace bowline;

namespace {

constexpr size_t kMemoryBytes = size_t{96} << 20, kCacheBytes = size_t{512} << 10;

double seconds(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Pages that are there before anything is timed, 64-byte aligned.
class Pages {
public:
  explicit Pages(size_t bytes) : bytes((bytes + 4095) / 4096 * 4096) {
    address = mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      std::perror("bowline-codegen-bench: no memory");
      std::exit(3);
    }
    madvise(address, this->bytes, MADV_HUGEPAGE);
    std::memset(address, 0, this->bytes);
  }
  Pages(Pages &&other) noexcept : address(std::exchange(other.address, nullptr)), bytes(other.bytes) {}
  ~Pages() {
    if (address)
      munmap(address, bytes);
  }
  template <typename T> T *as() const { return static_cast<T *>(address); }

private:
  void *address;
  size_t bytes;
};

// The baselines: plain loops, vectorised by the compiler for the registers that the generated code has too.
#define BASELINES(NAME, TARGET)                                                                                        \
  struct NAME {                                                                                                        \
    __attribute__((target(TARGET), no_builtin("memcpy", "memmove"))) static void                                       \
    copy(const float *__restrict from, float *__restrict to, int64_t count) {                                          \
      for (int64_t i = 0; i < count; ++i)                                                                              \
        to[i] = from[i];                                                                                               \
    }                                                                                                                  \
    __attribute__((target(TARGET))) static void triad(const float *__restrict lhs, const float *__restrict rhs,        \
                                                      float *__restrict to, int64_t count) {                           \
      for (int64_t i = 0; i < count; ++i)                                                                              \
        to[i] = lhs[i] + 3.0F * rhs[i];                                                                                \
    }                                                                                                                  \
  }
BASELINES(Avx512, "avx512f,avx512vl");
BASELINES(Avx2, "avx2,fma");
BASELINES(Baseline, "sse2");
#undef BASELINES

bool hasAvx512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"); }
const auto copyLoop = hasAvx512() ? Avx512::copy : __builtin_cpu_supports("avx2") ? Avx2::copy : Baseline::copy;
const auto triadLoop = hasAvx512() ? Avx512::triad : __builtin_cpu_supports("avx2") ? Avx2::triad : Baseline::triad;

/// One of the kernels as machine code, with its arguments in memory.
class LoadedKernel {
public:
  LoadedKernel(const benchmarks::KernelSource &source, int64_t rows, MLIRContext &context) {
    OwningOpRef<ModuleOp> module = parse(source, rows, context);
    auto function = *module->getOps<func::FuncOp>().begin();
    CpuCodegen codegen({});
    auto info = codegen.add(function);
    auto image = codegen.finish();
    if (failed(info) || failed(image))
      std::exit(3);
    extent = info->parallelExtent;
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    bool isWritten = write(fd, image->data(), image->size()) == static_cast<ssize_t>(image->size());
    handle = isWritten ? dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    close(fd);
    if (!handle) {
      std::fprintf(stderr, "bowline-codegen-bench: error: %s does not load: %s\n", source.name, dlerror());
      std::exit(3);
    }
    entry = reinterpret_cast<Entry>(dlsym(handle, info->symbol.c_str()));
    FunctionType type = function.getFunctionType();
    std::mt19937_64 generator(1);
    for (Type each : llvm::concat<const Type>(type.getInputs(), type.getResults())) {
      pages.emplace_back(bytesOf(each));
      fill(cast<RankedTensorType>(each), pages.back(), generator);
      arguments.push_back(pages.back().as<void>());
    }
  }
  ~LoadedKernel() { dlclose(handle); }

  static size_t bytesPerRow(const benchmarks::KernelSource &source, MLIRContext &context) {
    return (bytesOf(source, 32, context) - bytesOf(source, 16, context)) / 16;
  }
  static size_t bytesOf(const benchmarks::KernelSource &source, int64_t rows, MLIRContext &context) {
    OwningOpRef<ModuleOp> module = parse(source, rows, context);
    FunctionType type = (*module->getOps<func::FuncOp>().begin()).getFunctionType();
    size_t sum = 0;
    for (Type each : llvm::concat<const Type>(type.getInputs(), type.getResults()))
      sum += bytesOf(each);
    return sum;
  }

  void run(const kernels::ParallelLoop &loop) const {
    loop.Run(extent, [&](int64_t begin, int64_t end) { entry(arguments.data(), begin, end); });
  }

private:
  using Entry = void (*)(void *const *, int64_t, int64_t);

  static OwningOpRef<ModuleOp> parse(const benchmarks::KernelSource &source, int64_t rows, MLIRContext &context) {
    std::string text, r = std::to_string(rows);
    for (const char *at = source.text; *at; ++at) {
      if (*at != '$') {
        text += *at;
        continue;
      }
      ++at;
      text += *at == 'T'   ? "tensor<" + r + "x1024xf32>"
              : *at == 'S' ? "tensor<" + r + "xf32>"
              : *at == 'V' ? "tensor<1024xf32>"
              : *at == 'Q' ? std::to_string(rows / 16)
                           : r;
    }
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      std::fprintf(stderr, "bowline-codegen-bench: error: kernel %s does not parse\n", source.name);
      std::exit(3);
    }
    return module;
  }

  static size_t bytesOf(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return static_cast<size_t>(tensor.getNumElements()) * tensor.getElementTypeBitWidth() / 8;
  }

  static void fill(RankedTensorType type, const Pages &to, std::mt19937_64 &generator) {
    std::normal_distribution<float> normal;
    std::vector<float> some(4099);
    for (float &value : some)
      value = normal(generator);
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      if (type.getElementType().isF32())
        to.as<float>()[i] = some[i % some.size()];
      else if (type.getElementType().isBF16())
        to.as<uint16_t>()[i] = static_cast<uint16_t>(llvm::bit_cast<uint32_t>(some[i % some.size()]) >> 16);
      else
        to.as<int32_t>()[i] = static_cast<int32_t>(i * 131 % 1024);
    }
  }

  void *handle;
  Entry entry;
  int64_t extent;
  std::vector<Pages> pages;
  std::vector<void *> arguments;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void measure(benchmark::State &state, const benchmarks::KernelSource &source, size_t target, int threads) {
  DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  // Whole tiles of sixteen rows, so that no kernel is measured by its tails.
  int64_t rows = std::max<int64_t>(target / LoadedKernel::bytesPerRow(source, context) / 16 * 16, 16);
  LoadedKernel kernel(source, rows, context);
  size_t bytes = LoadedKernel::bytesOf(source, rows, context);

  int64_t copied = bytes / 8, summed = bytes / 12;
  Pages a(copied * 4), b(copied * 4);
  kernels::ParallelLoop copyChunks(threads), triadChunks(threads), kernelChunks(threads);
  auto copy = [&] {
    copyChunks.Run(copied / 16, [&](int64_t begin, int64_t end) {
      copyLoop(a.as<float>() + begin * 16, b.as<float>() + begin * 16, (end - begin) * 16);
    });
  };
  Pages c(summed * 4);
  auto triad = [&] {
    triadChunks.Run(summed / 16, [&](int64_t begin, int64_t end) {
      triadLoop(a.as<float>() + begin * 16, b.as<float>() + begin * 16, c.as<float>() + begin * 16, (end - begin) * 16);
    });
  };
  // Long enough for the clock where the data are small.
  int repeats = static_cast<int>(std::max<size_t>(1, (size_t{16} << 20) / bytes));
  auto time = [&](auto body) {
    body(); // its data take the place of the others' in the caches
    double start = seconds(threads);
    for (int i = 0; i < repeats; ++i)
      body();
    return (seconds(threads) - start) / repeats;
  };
  std::vector<double> times, toCopy, toTriad;
  for (auto _ : state) {
    double own = time([&] { kernel.run(kernelChunks); }), copying = time(copy), summing = time(triad);
    times.push_back(own);
    toCopy.push_back(copying / own);
    toTriad.push_back(summing / own);
    state.SetIterationTime(own * repeats);
  }
  state.counters["GB/s"] = 1e-9 * static_cast<double>(bytes) / median(times);
  state.counters["of_copy"] = median(toCopy);
  state.counters["of_triad"] = median(toTriad);
}

void registerAll(int threads) {
  for (bool inMemory : {true, false})
    for (const benchmarks::KernelSource &source : benchmarks::kKernelSources) {
      std::string name = std::string(source.name) + (inMemory ? "/memory" : "/L2");
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=, &source](benchmark::State &state) {
                                     measure(state, source, inMemory ? kMemoryBytes : kCacheBytes * threads, threads);
                                   })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
}

/// The number after "--threads=", which is removed; without it, as many as there are processors. 0 if it is no number.
int takeThreads(int &argc, char **argv) {
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (!argument.consume_front("--threads="))
      argv[kept++] = argv[i];
    else if (argument.getAsInteger(10, threads) || threads < 1)
      threads = 0;
  }
  argc = kept;
  return threads;
}

} // namespace

int main(int argc, char **argv) {
  int threads = takeThreads(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (threads == 0 || benchmark::ReportUnrecognizedArguments(argc, argv)) {
    std::fprintf(stderr, "usage: bowline-codegen-bench [--threads=N] [options of Google Benchmark]\n");
    return 1;
  }
  benchmark::AddCustomContext("threads", std::to_string(threads));
  registerAll(threads);
  benchmark::RunSpecifiedBenchmarks();
}
