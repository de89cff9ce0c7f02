#ifndef BOWLINE_TEST_UNIT_RUNTIME_PTX_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_PTX_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace bowline::testing {

// An image for cards with one function, fixture_increment(float* x, long long count): adds 1 to each of count numbers,
// over a grid of one dimension of any size.
inline std::vector<uint8_t> PtxFixture() {
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fixture_increment(.param .u64 x, .param .u64 count)
{
  .reg .pred %done;
  .reg .f32 %value;
  .reg .b32 %block, %threads, %thread, %blocks;
  .reg .b64 %base, %count, %index, %step, %wide, %address;
  ld.param.u64 %base, [x];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %base, %base;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %index, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %index, %index, %wide;
  mul.wide.u32 %step, %blocks, %threads;
next:
  setp.ge.s64 %done, %index, %count;
  @%done bra end;
  shl.b64 %address, %index, 2;
  add.u64 %address, %address, %base;
  ld.global.f32 %value, [%address];
  add.f32 %value, %value, 0f3F800000;
  st.global.f32 [%address], %value;
  add.u64 %index, %index, %step;
  bra next;
end:
  ret;
}
)";
  return {text.begin(), text.end()};
}

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_PTX_FIXTURE_H_
