#include <algorithm>
#include <cstring>
#include <dnnl.hpp>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/matmul/matmul_signature.h"
#include "kernels/cpu/parallel.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

// oneDNN refuses or mistakes the stride of an extent-1 dimension, which means nothing; any value that a dense layout of
// the other two dimensions would have is right.
dnnl::memory::desc Describe(dnnl::memory::dims extents, std::array<int64_t, 3> strides) {
  if (extents[0] > 1 && strides[0] == 0) extents[0] = 1;  // oneDNN's way to say broadcast
  if (extents[2] == 1) strides[2] = 1;
  if (extents[1] == 1) strides[1] = std::max<int64_t>(1, strides[2] == 1 ? extents[2] : 1);
  if (extents[2] == 1 && strides[1] == 1) strides[2] = extents[1];
  if (extents[0] == 1) strides[0] = std::max(strides[1] * extents[1], strides[2] * extents[2]);
  return {extents, dnnl::memory::data_type::f32, {strides[0], strides[1], strides[2]}};
}

class OneDnnMatmul : public Kernel {
 public:
  OneDnnMatmul(const dnnl::engine& engine, const dnnl::matmul::primitive_desc& descriptor, int threads)
      : engine_(engine),
        stream_(engine),
        descriptor_(descriptor),
        primitive_(descriptor),
        scratch_bytes_(descriptor.scratchpad_desc().get_size()),
        threads_(threads) {}

  size_t ScratchBytes() const override { return scratch_bytes_; }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    SetThreads(threads_);  // the primitive was created, and its scratch sized, for this many
    // Memory objects are made here and not once, because a shared one would make concurrent calls of Run race; the C
    // interface, because the C++ one throws. Its calls fail only when memory is exhausted, and then C is left as it
    // was.
    const dnnl::memory::desc descriptions[] = {descriptor_.src_desc(), descriptor_.weights_desc(),
                                               descriptor_.dst_desc(), descriptor_.scratchpad_desc()};
    constexpr int kNames[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    dnnl_exec_arg_t pairs[4] = {};
    bool ok = true;
    for (int i = 0; i < 4; ++i) {
      pairs[i].arg = kNames[i];
      ok &= dnnl_memory_create(&pairs[i].memory, &descriptions[i].data, engine_.get(),
                               i < 3 ? arguments[i] : scratch) == dnnl_success;
    }
    if (ok) dnnl_primitive_execute(primitive_.get(), stream_.get(), 4, pairs);
    for (dnnl_exec_arg_t& pair : pairs) dnnl_memory_destroy(pair.memory);
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul::primitive_desc descriptor_;
  dnnl::matmul primitive_;
  size_t scratch_bytes_;
  int threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> CreateOneDnnMatmul(const Signature& signature, const MatmulShape& s) {
  try {
    SetThreads(signature.threads);
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::desc operation(Describe({s.batch, s.m, s.k}, s.a), Describe({s.batch, s.k, s.n}, s.b),
                                       Describe({s.batch, s.m, s.n}, s.c));
    dnnl::matmul::primitive_desc descriptor(operation, attributes, engine);
    // Its last resort is a scalar loop, a thousand times slower than refusing and letting the compiler copy.
    if (std::strncmp(descriptor.impl_info_str(), "ref", 3) == 0) {
      return Refuse(signature, "oneDNN has no fast implementation for these strides; use library 'bowline'");
    }
    return std::make_unique<OneDnnMatmul>(engine, descriptor, signature.threads);
  } catch (const dnnl::error& error) {
    return Refuse(signature, absl::StrCat("oneDNN refuses these extents and strides: ", error.what()));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat("kernel 'matmul': ", error.what()));
  }
}

}  // namespace bowline::kernels
