#ifndef BOWLINE_KERNELS_CPU_ISA_AMX_REGISTERS_H_
#define BOWLINE_KERNELS_CPU_ISA_AMX_REGISTERS_H_

// The configuration of AMX's tile registers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
// chapter 18. A register has up to 16 rows of up to 64 bytes. Only for files compiled for AMX.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

// The memory operand of LDTILECFG, for 8 full registers.
struct AmxConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};

  void Load() const { __builtin_ia32_tile_loadconfig(this); }
};

// Configures full registers, and releases them in the destructor. After the release, the system saves and restores less
// when it switches threads, and other users of tiles find none in use.
class AmxRegisters {
 public:
  AmxRegisters() { AmxConfiguration().Load(); }
  AmxRegisters(const AmxRegisters&) = delete;
  AmxRegisters& operator=(const AmxRegisters&) = delete;
  ~AmxRegisters() { __builtin_ia32_tilerelease(); }
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ISA_AMX_REGISTERS_H_
