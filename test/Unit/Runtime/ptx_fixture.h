#ifndef BOWLINE_TEST_UNIT_RUNTIME_PTX_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_PTX_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace bowline::testing {

// An image for cards with two functions, over a grid of one dimension of any size: fixture_increment(float* x, long
// long count) adds 1 to each of count numbers, fixture_add(const float* a, const float* b, float* out, long long count)
// adds two of them, where out may be a or b.
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
.visible .entry fixture_add(.param .u64 a, .param .u64 b, .param .u64 out, .param .u64 count)
{
  .reg .pred %done;
  .reg .f32 %first, %second;
  .reg .b32 %block, %threads, %thread, %blocks;
  .reg .b64 %a, %b, %out, %count, %index, %step, %wide, %offset, %address;
  ld.param.u64 %a, [a];
  ld.param.u64 %b, [b];
  ld.param.u64 %out, [out];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %a, %a;
  cvta.to.global.u64 %b, %b;
  cvta.to.global.u64 %out, %out;
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
  shl.b64 %offset, %index, 2;
  add.u64 %address, %offset, %a;
  ld.global.f32 %first, [%address];
  add.u64 %address, %offset, %b;
  ld.global.f32 %second, [%address];
  add.f32 %first, %first, %second;
  add.u64 %address, %offset, %out;
  st.global.f32 [%address], %first;
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
