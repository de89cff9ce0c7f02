// Registry contract: Run allocates nothing. malloc itself is counted, so that allocations inside libraries show.

#include <dlfcn.h>
#include <errno.h>

#include <atomic>

#include "test/Unit/Kernels/kernel_testing.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_memalign(size_t, size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  ++allocations;
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  ++allocations;
  *block = __libc_memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
}

namespace bowline::kernels::testing {
namespace {

// Heap allocations of the third Run: by then the team has its helpers.
int64_t AllocationsPerRun(const Signature& signature) {
  auto kernel = CreateKernel(signature);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return -1;
  std::vector<std::vector<float>> storage;
  std::vector<void*> arguments;
  for (const TensorSpec& spec : signature.arguments) {
    storage.emplace_back(spec.ElementCount(), 0.0f);  // zeros are valid ids too
    arguments.push_back(storage.back().data());
  }
  std::vector<float> scratch((*kernel)->ScratchBytes() / sizeof(float) + 16);
  void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64 / sizeof(float);
  (*kernel)->Run(arguments, aligned);
  (*kernel)->Run(arguments, aligned);
  const int64_t before = allocations;
  (*kernel)->Run(arguments, aligned);
  return allocations - before;
}

Signature Matmul(int64_t batch, int64_t m, int64_t n, int64_t k, int threads) {
  return {"matmul",
          {Int("batch", batch), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {m * k, k, 1}),
           Ints("b_strides", {k * n, 1, k}), Ints("c_strides", {m * n, n, 1})},
          {In({batch, m, k}), In({batch, k, n}), Out({batch, m, n})},
          threads};
}

Signature WithBf16(Signature signature) {
  for (TensorSpec& spec : signature.arguments) spec.dtype = DType::kBF16;
  return signature;
}

Signature WithEpilogue(Signature signature) {
  std::erase_if(signature.attributes, [](const Attribute& attribute) { return attribute.name == "c_strides"; });
  signature.has_epilogue = true;
  signature.epilogue = [](void* const*, const float*, int64_t, int64_t, int64_t, int64_t, int64_t) {};
  return signature;
}

TEST(Allocations, TheCounterWorks) {
  const int64_t before = allocations;
  free(malloc(10));
  EXPECT_EQ(allocations - before, 1);
}

TEST(Allocations, NoKernelAllocatesInRun) {
  const std::vector<int64_t> x = {2, 70, 4, 24}, kv = {2, 70, 2, 24}, lse = {2, 4, 70};
  for (int threads : {1, 2}) {
    const std::vector<Signature> signatures = {
        Matmul(1, 1, 1, 1, threads),
        Matmul(1, 300, 200, 1000, threads),
        Matmul(3, 1, 77, 64, threads),
        WithBf16(Matmul(1, 300, 200, 1000, threads)),
        WithEpilogue(Matmul(1, 300, 200, 1000, threads)),
        {"pack_matrix",
         {Int("k", 70), Int("n", 96), Ints("b_strides", {0, 1, 70})},
         {In({70, 96}), Out({70, 96})},
         threads},
        {"attention_forward",
         {Int("causal", 1), Float("scale", 1)},
         {In(x), In(kv), In(kv), Out(x), Out(lse)},
         threads},
        {"attention_backward",
         {Int("causal", 1), Float("scale", 1)},
         {In(x), In(kv), In(kv), In(x), In(lse), In(x), Out(x), Out(kv), Out(kv)},
         threads},
        {"gather_rows", {}, {In({9, 40}), In({20}, DType::kI32), Out({20, 40})}, threads},
        {"scatter_add_rows", {}, {In({20, 40}), In({20}, DType::kI32), Out({9, 40})}, threads},
        {"grouped_matmul",
         {Int("transposed", 1)},
         {In({70, 24}), In({3, 40, 24}), In({4}, DType::kI32), Out({70, 40})},
         threads},
        {"grouped_outer", {}, {In({70, 24}), In({70, 40}), In({4}, DType::kI32), Out({3, 24, 40})}, threads},
        {"sequence_positions", {}, {In({4}, DType::kI32), In({3}, DType::kI32), Out({20}, DType::kI32)}, threads},
        {"cache_write",
         {},
         {{Access::kReadWrite, DType::kF32, {9, 16, 2, 24}},
          In({20, 2, 24}),
          In({4}, DType::kI32),
          In({3}, DType::kI32),
          In({3, 4}, DType::kI32)},
         threads},
        {"paged_attention",
         {Float("scale", 1)},
         {In({20, 4, 24}), In({9, 16, 2, 24}), In({9, 16, 2, 24}), In({4}, DType::kI32), In({3}, DType::kI32),
          In({3, 4}, DType::kI32), Out({20, 4, 24})},
         threads},
        {"quantized_gather",
         {{"format", {}, {}, "q4_k"}},
         {In({9, 2, 144}, DType::kU8), In({20}, DType::kI32), Out({20, 512})},
         threads},
        {"quantized_matmul",
         {{"format", {}, {}, "q4_1"}},
         {In({3, 96}, DType::kBF16), In({90, 3, 20}, DType::kU8), Out({3, 90})},
         threads},
        {"quantized_matmul",
         {{"format", {}, {}, "q6_k"}},
         {In({70, 256}), In({900, 1, 210}, DType::kU8), Out({70, 900})},
         threads},
        {"sample_tokens",
         {},
         {In({9, 3000}), In({9}), In({9}, DType::kI32), In({9}), In({9, 2}, DType::kI32), In({9}, DType::kI32),
          In({9}, DType::kI32), Out({9}, DType::kI32), Out({9}), Out({9, 5}, DType::kI32), Out({9, 5})},
         threads},
        {"check_ids", {Int("rows", 9)}, {In({20}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}, threads},
        {"check_offsets", {Int("rows", 70)}, {In({4}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}, threads},
        {"rope_angles", {Float("theta", 1e4)}, {In({9}, DType::kI32), Out({9, 8}), Out({9, 8})}, threads},
        {"fill", {Float("value", 1)}, {Out({100})}, threads},
        {"random_normal",
         {Int("seed", 1), Int("key", 1), Float("mean", 0), Float("stddev", 1), Ints("global_shape", {100}),
          Ints("offsets", {0})},
         {Out({100})},
         threads},
        {"random_uniform",
         {Int("seed", 1), Int("key", 1), Float("lo", 0), Float("hi", 1), Ints("global_shape", {100}),
          Ints("offsets", {0})},
         {Out({100})},
         threads},
    };
    std::vector<std::string> covered;
    for (const Signature& signature : signatures) {
      EXPECT_EQ(AllocationsPerRun(signature), 0) << signature.kernel << ", " << threads << " threads";
      covered.push_back(signature.kernel);
    }
    for (const KernelDefinition& kernel : AllKernels()) {
      EXPECT_THAT(covered, ::testing::Contains(std::string(kernel.name))) << "not covered by this test";
    }
  }
}

// Launches with fewer chunks than threads must not make the team shrink and grow.
TEST(Allocations, NoneWhenKernelsUseDifferentlyManyThreads) {
  auto wide = CreateKernel({"fill", {Float("value", 1)}, {Out({100})}, 4});
  auto narrow = CreateKernel({"fill", {Float("value", 1)}, {Out({2})}, 4});
  ASSERT_TRUE(wide.ok() && narrow.ok());
  std::vector<float> out(100);
  void* arguments[] = {out.data()};
  const auto both = [&] {
    (*wide)->Run(arguments, nullptr);
    (*narrow)->Run(arguments, nullptr);
  };
  both();
  both();
  const int64_t before = allocations;
  for (int i = 0; i < 5; ++i) both();
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace bowline::kernels::testing
