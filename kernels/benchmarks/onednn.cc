#include "kernels/benchmarks/onednn.h"

#if defined(BOWLINE_HAVE_ONEDNN)

#include <dnnl.h>

#include <cstdio>
#include <cstdlib>

// A function of the OpenMP library that oneDNN runs on. It sets the number of threads of the parallel regions that the
// calling thread starts from now on.
extern "C" void omp_set_num_threads(int);

namespace bowline::kernels {
namespace {

void Check(dnnl_status_t status) {
  if (status == dnnl_success) return;
  std::fprintf(stderr, "oneDNN refuses with status %d\n", static_cast<int>(status));
  std::exit(1);
}

OneDnnProduct MakeF32(const OneDnnShape& s) {
  return [s](const void* a, const void* b, float* c) {
    Check(dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0f,
                     static_cast<const float*>(a), s.a_transposed ? s.m : s.k, static_cast<const float*>(b),
                     s.b_transposed ? s.k : s.n, 0.0f, c, s.n));
  };
}

// Uses the matmul primitive, since dnnl_sgemm takes f32 alone.
OneDnnProduct MakeBf16(const OneDnnShape& s) {
  const dnnl_dims_t a_dims = {s.m, s.k}, b_dims = {s.k, s.n}, c_dims = {s.m, s.n};
  const dnnl_dims_t a_strides = {s.a_transposed ? 1 : s.k, s.a_transposed ? s.m : 1};
  const dnnl_dims_t b_strides = {s.b_transposed ? 1 : s.n, s.b_transposed ? s.k : 1}, c_strides = {s.n, 1};
  dnnl_memory_desc_t a_desc, b_desc, c_desc;
  Check(dnnl_memory_desc_init_by_strides(&a_desc, 2, a_dims, dnnl_bf16, a_strides));
  Check(dnnl_memory_desc_init_by_strides(&b_desc, 2, b_dims, dnnl_bf16, b_strides));
  Check(dnnl_memory_desc_init_by_strides(&c_desc, 2, c_dims, dnnl_f32, c_strides));
  static dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    Check(dnnl_engine_create(&made, dnnl_cpu, 0));
    return made;
  }();
  static dnnl_stream_t stream = [] {
    dnnl_stream_t made = nullptr;
    Check(dnnl_stream_create(&made, engine, dnnl_stream_default_flags));
    return made;
  }();
  dnnl_matmul_desc_t operation;
  Check(dnnl_matmul_desc_init(&operation, &a_desc, &b_desc, nullptr, &c_desc));
  dnnl_primitive_desc_t descriptor;
  Check(dnnl_primitive_desc_create(&descriptor, &operation, nullptr, engine, nullptr));
  dnnl_primitive_t primitive;
  Check(dnnl_primitive_create(&primitive, descriptor));
  dnnl_memory_t a_memory, b_memory, c_memory;
  Check(dnnl_memory_create(&a_memory, &a_desc, engine, DNNL_MEMORY_NONE));
  Check(dnnl_memory_create(&b_memory, &b_desc, engine, DNNL_MEMORY_NONE));
  Check(dnnl_memory_create(&c_memory, &c_desc, engine, DNNL_MEMORY_NONE));
  return [=](const void* a, const void* b, float* c) {
    Check(dnnl_memory_set_data_handle(a_memory, const_cast<void*>(a)));
    Check(dnnl_memory_set_data_handle(b_memory, const_cast<void*>(b)));
    Check(dnnl_memory_set_data_handle(c_memory, c));
    const dnnl_exec_arg_t pairs[] = {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}};
    Check(dnnl_primitive_execute(primitive, stream, 3, pairs));
    Check(dnnl_stream_wait(stream));
  };
}

}  // namespace

OneDnnProduct MakeOneDnnProduct(const OneDnnShape& shape, int threads) {
  omp_set_num_threads(threads);  // a primitive is made for as many
  return [threads, product = shape.bf16 ? MakeBf16(shape) : MakeF32(shape)](const void* a, const void* b, float* c) {
    omp_set_num_threads(threads);
    product(a, b, c);
  };
}

}  // namespace bowline::kernels

#else

namespace bowline::kernels {

OneDnnProduct MakeOneDnnProduct(const OneDnnShape&, int) { return nullptr; }

}  // namespace bowline::kernels

#endif
