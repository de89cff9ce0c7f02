#include "runtime/plan/plan_view.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {

size_t ElementSize(fbs::DType dtype) {
  switch (dtype) {
    case fbs::DType::F64:
    case fbs::DType::I64:
      return 8;
    case fbs::DType::F32:
    case fbs::DType::I32:
      return 4;
    case fbs::DType::BF16:
    case fbs::DType::F16:
    case fbs::DType::U16:
      return 2;
    case fbs::DType::I8:
    case fbs::DType::U8:
    case fbs::DType::Bool:
      return 1;
  }
  return 0;
}

absl::optional<uint64_t> DenseBytes(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t bytes = ElementSize(dtype);
  if (bytes == 0) return absl::nullopt;
  bool empty = false;
  for (uint32_t d = 0; d < SizeOf(shape); ++d) {
    const int64_t extent = shape->Get(d);
    if (extent < 0) return absl::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    // The product without the zeros must fit too, so that strides of an empty tensor do.
    if (static_cast<uint64_t>(extent) > kMost / bytes) return absl::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return empty ? 0 : bytes;
}

std::string DescribeType(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape) {
  const char* name = fbs::EnumNameDType(dtype);
  std::string text = *name == '\0' ? absl::StrCat("dtype ", static_cast<int>(dtype)) : absl::AsciiStrToLower(name);
  absl::StrAppend(&text, "[");
  for (uint32_t d = 0; d < SizeOf(shape); ++d) absl::StrAppend(&text, d == 0 ? "" : ", ", shape->Get(d));
  return absl::StrCat(text, "]");
}

std::string Quoted(const flatbuffers::String* text) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(TextOf(text)), "'");
}

ByteRange RangeOf(const fbs::Buffer& buffer, uint32_t slot) {
  const uint64_t begin = buffer.offset() + (buffer.slots() > 1 ? slot * buffer.slot_stride() : 0);
  return {begin, begin + buffer.bytes()};
}

ByteRange ExtentOf(const fbs::Buffer& buffer) { return {buffer.offset(), RangeOf(buffer, buffer.slots() - 1).end}; }

bool IsState(fbs::BufferKind kind) { return kind == fbs::BufferKind::Parameter || kind == fbs::BufferKind::State; }

bool IsPersistent(fbs::BufferKind kind) {
  return IsState(kind) || kind == fbs::BufferKind::Constant || kind == fbs::BufferKind::Input;
}

bool HasScratchOperand(const fbs::Plan& plan, const fbs::Launch& launch) {
  if (plan.kernels()->Get(launch.kernel())->origin() != fbs::KernelOrigin::Registered) return false;
  const uint32_t count = SizeOf(launch.operands());
  return count > 0 &&
         plan.buffers()->Get(launch.operands()->Get(count - 1)->buffer())->kind() == fbs::BufferKind::Scratch;
}

std::string DescribeSource(const fbs::Plan& plan, uint32_t source) {
  const fbs::Source* s = plan.sources()->Get(source);
  return absl::StrCat(absl::Utf8SafeCEscape(TextOf(s->location())), " (by ", absl::Utf8SafeCEscape(TextOf(s->pass())),
                      ")");
}

}  // namespace bowline
