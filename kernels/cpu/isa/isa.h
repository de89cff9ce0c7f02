#ifndef BOWLINE_KERNELS_CPU_ISA_ISA_H_
#define BOWLINE_KERNELS_CPU_ISA_ISA_H_

// One binary for every x86-64 machine: a hot source file is compiled once per instruction set and the variant is chosen
// when a kernel is created.
//
// How to write one (see matmul/gemm_isa.cc):
//  1. a plain header declares a table of function pointers and BOWLINE_DECLARE_ISA_VARIANTS(Table, kName);
//  2. `name_isa.cc` defines, inside namespace bowline::kernels::BOWLINE_ISA, `extern const Table kName`;
//  3. kernels/CMakeLists.txt lists the file under bowline_add_isa_sources;
//  4. callers write BOWLINE_SELECT_ISA(kName).
// A file that multiplies bf16 may have one more variant, with AVX512-BF16 and AVX512-VNNI: it also declares
// BOWLINE_DECLARE_BF16_VARIANT, is listed under bowline_add_bf16_sources and selected by BOWLINE_SELECT_BF16_ISA.
// Code for AMX is in files of its own, listed under bowline_add_amx_sources and declared by BOWLINE_DECLARE_AMX.
// A hot file may include only simd.h-style headers whose functions live in BOWLINE_ISA and <cstdint>: an inline
// function of the standard library that it emitted would be shared by the linker with code that must run on older
// machines.

#include <cstdint>

namespace bowline::kernels {

enum class Isa : uint8_t { kBaseline = 0, kAvx2 = 1, kAvx512 = 2, kAvx512Bf16 = 3, kAmx = 4 };
inline constexpr Isa kBestIsa = Isa::kAmx;

// The best instruction set that this machine has and this build contains, limited by CpuLimit()
// (kernels/registry/cpu_level.h) and LimitIsaForTesting.
Isa ActiveIsa();

// Kernels created from now on use at most `isa`. Not thread-safe; for tests that cover every variant on one machine.
void LimitIsaForTesting(Isa isa);

}  // namespace bowline::kernels

#if defined(BOWLINE_HAVE_X86_VARIANTS)
#define BOWLINE_DECLARE_ISA_VARIANTS(Table, name) \
  namespace isa_baseline {                        \
  extern const Table name;                        \
  }                                               \
  namespace isa_avx2 {                            \
  extern const Table name;                        \
  }                                               \
  namespace isa_avx512 {                          \
  extern const Table name;                        \
  }
#define BOWLINE_DECLARE_BF16_VARIANT(Table, name) \
  namespace isa_avx512bf16 {                      \
  extern const Table name;                        \
  }
#define BOWLINE_DECLARE_AMX(Table, name) \
  namespace isa_amx {                    \
  extern const Table name;               \
  }
#define BOWLINE_SELECT_ISA(name)                                                          \
  (::bowline::kernels::ActiveIsa() >= ::bowline::kernels::Isa::kAvx512 ? isa_avx512::name \
   : ::bowline::kernels::ActiveIsa() == ::bowline::kernels::Isa::kAvx2 ? isa_avx2::name   \
                                                                       : isa_baseline::name)
#define BOWLINE_SELECT_BF16_ISA(name)                                                             \
  (::bowline::kernels::ActiveIsa() >= ::bowline::kernels::Isa::kAvx512Bf16 ? isa_avx512bf16::name \
                                                                           : BOWLINE_SELECT_ISA(name))
#else
#define BOWLINE_DECLARE_ISA_VARIANTS(Table, name) \
  namespace isa_baseline {                        \
  extern const Table name;                        \
  }
#define BOWLINE_DECLARE_BF16_VARIANT(Table, name)
#define BOWLINE_DECLARE_AMX(Table, name)
#define BOWLINE_SELECT_ISA(name) (isa_baseline::name)
#define BOWLINE_SELECT_BF16_ISA(name) (isa_baseline::name)
#endif

#endif  // BOWLINE_KERNELS_CPU_ISA_ISA_H_
