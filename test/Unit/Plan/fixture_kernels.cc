// The code that the compiler would generate for the fixture's kernels: a shared object with this interface.

#include <cstdint>

extern "C" {

__attribute__((visibility("default"))) void fixture_add(void* const* arguments, int64_t begin, int64_t end) {
  const float* a = static_cast<const float*>(arguments[0]);
  const float* b = static_cast<const float*>(arguments[1]);
  float* out = static_cast<float*>(arguments[2]);
  for (int64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
}

__attribute__((visibility("default"))) void fixture_increment(void* const* arguments, int64_t begin, int64_t end) {
  float* x = static_cast<float*>(arguments[0]);
  for (int64_t i = begin; i < end; ++i) x[i] += 1;
}

}  // extern "C"
