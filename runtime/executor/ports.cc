#include "runtime/executor/ports.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/plan/sequences.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// Index of the first value outside of [0, limit), or -1.
template <typename T>
int64_t FindOutside(const void* data, uint64_t bytes, int64_t limit) {
  const T* values = static_cast<const T*>(data);
  const int64_t count = static_cast<int64_t>(bytes / sizeof(T));
  // Without an early exit, so that the usual case is vectorised.
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = static_cast<int64_t>(values[i]);
    outside |= (value < 0) | (value >= limit);
  }
  if (!outside) return -1;
  for (int64_t i = 0;; ++i) {
    if (values[i] < 0 || static_cast<int64_t>(values[i]) >= limit) return i;
  }
}

// Index of the first number outside of [0, limit], or -1.
int64_t FindOutsideF32(const void* data, uint64_t bytes, int64_t limit) {
  const float* values = static_cast<const float*>(data);
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  // Nor is one inside that is no number.
  for (int64_t i = 0; i < count; ++i) {
    if (!(values[i] >= 0 && values[i] <= static_cast<float>(limit))) return i;
  }
  return -1;
}

int64_t FindOutside(fbs::DType dtype, const void* data, uint64_t bytes, int64_t limit) {
  switch (dtype) {
    case fbs::DType::I64:
      return FindOutside<int64_t>(data, bytes, limit);
    case fbs::DType::I32:
      return FindOutside<int32_t>(data, bytes, limit);
    case fbs::DType::U16:
      return FindOutside<uint16_t>(data, bytes, limit);
    case fbs::DType::I8:
      return FindOutside<int8_t>(data, bytes, limit);
    case fbs::DType::U8:
      return FindOutside<uint8_t>(data, bytes, limit);
    case fbs::DType::F32:
      return FindOutsideF32(data, bytes, limit);
    default:
      return -1;  // VerifyPlan allows limits on integers and F32 alone
  }
}

}  // namespace

Ports::Ports(const fbs::Plan& plan, uint32_t role)
    : plan_(plan), begun_(plan.entries()->size(), 0), ended_(plan.entries()->size(), 0) {
  for (uint32_t e = 0; e < plan.entries()->size(); ++e) {
    const fbs::Entry& entry = *plan.entries()->Get(e);
    if (plan.programs()->Get(entry.program())->role() != role) continue;
    for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
      const fbs::Port& port = *entry.inputs()->Get(i);
      if (Alternates(e)) alternating_[port.buffer()] = {e, port.second(), /*is_input=*/true};
      Input& input = inputs_[port.buffer()];
      input.written.resize(plan.buffers()->Get(port.buffer())->slots(), false);
      const fbs::Sequences* sequences = entry.sequences();
      if (sequences != nullptr && (i == sequences->rows() || i == sequences->lengths() || i == sequences->blocks())) {
        held_[port.buffer()].resize(plan.buffers()->Get(port.buffer())->bytes() / sizeof(int32_t));
      }
      if (port.limit() == 0 || (input.limit != 0 && input.limit <= port.limit())) continue;
      input.limit = port.limit();
      input.entry = e;
      input.port = i;
    }
    for (uint32_t i = 0; i < SizeOf(entry.outputs()) && Alternates(e); ++i) {
      const fbs::Port& port = *entry.outputs()->Get(i);
      alternating_[port.buffer()] = {e, port.second(), /*is_input=*/false};
    }
  }
}

Ports::Place Ports::PlaceOf(uint32_t buffer) const {
  const auto found = alternating_.find(buffer);
  if (found == alternating_.end()) return {buffer, -1, 0};
  const Alternating& port = found->second;
  const uint32_t parity = port.is_input ? NextParity(port.entry) : ended_[port.entry];
  return {parity == 0 ? buffer : port.second, static_cast<int>(port.entry), parity};
}

absl::Status Ports::CheckInput(const TensorRef& tensor, absl::Span<const uint8_t> bytes) const {
  const Input& input = inputs_.find(tensor.buffer)->second;
  if (bytes.size() != tensor.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("buffer ", Quoted(plan_.buffers()->Get(tensor.buffer)->name()),
                                                   " is an input, which is written as a whole: ", tensor.bytes,
                                                   " bytes, not ", bytes.size()));
  }
  if (input.limit == 0) return absl::OkStatus();
  const int64_t outside = FindOutside(tensor.dtype, bytes.data(), bytes.size(), input.limit);
  if (outside < 0) return absl::OkStatus();
  const fbs::Entry& entry = *plan_.entries()->Get(input.entry);
  return absl::InvalidArgumentError(
      absl::StrCat("entry ", Quoted(entry.name()), ": element ", outside, " of input ",
                   Quoted(entry.inputs()->Get(input.port)->name()), ", slot ", tensor.slot, ", is outside of [0, ",
                   input.limit, tensor.dtype == fbs::DType::F32 ? "]" : "); is the data made for another vocabulary?"));
}

void Ports::MarkWritten(const TensorRef& tensor, absl::Span<const uint8_t> bytes) {
  Input& input = inputs_.find(tensor.buffer)->second;
  input.written[tensor.slot % input.written.size()] = true;
  if (const auto held = held_.find(tensor.buffer); held != held_.end())
    std::memcpy(held->second.data(), bytes.data(), bytes.size());
}

absl::Status Ports::CheckSequencesOf(const fbs::Entry& entry) const {
  const fbs::Sequences& sequences = *entry.sequences();
  const auto values = [&](uint32_t input) -> absl::Span<const int32_t> {
    return held_.find(entry.inputs()->Get(input)->buffer())->second;
  };
  const fbs::Buffer& blocks = *plan_.buffers()->Get(entry.inputs()->Get(sequences.blocks())->buffer());
  const absl::Status kept =
      CheckSequences({.sequences = blocks.shape()->Get(0),
                      .listed = blocks.shape()->Get(1),
                      .tokens = sequences.tokens(),
                      .block_tokens = sequences.block_tokens(),
                      .block_count = sequences.block_count()},
                     values(sequences.rows()), values(sequences.lengths()), values(sequences.blocks()));
  if (kept.ok()) return kept;
  return absl::InvalidArgumentError(absl::StrCat("entry ", Quoted(entry.name()), ": ", kept.message()));
}

bool Ports::IsWritten(uint32_t buffer) const {
  const std::vector<bool>& written = inputs_.find(buffer)->second.written;
  return std::find(written.begin(), written.end(), false) == written.end();
}

absl::Status Ports::CheckInputs(const fbs::Entry& entry, uint32_t index) const {
  for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
    const fbs::Port& port = *entry.inputs()->Get(i);
    if (IsWritten(port.buffer())) continue;
    const std::vector<bool>& written = inputs_.find(port.buffer())->second.written;
    const bool partly = std::find(written.begin(), written.end(), true) != written.end();
    bool fed = false;
    for (uint32_t f = 0; f < SizeOf(entry.feeds()); ++f) fed |= entry.feeds()->Get(f)->input() == i;
    if (fed && !partly && begun_[index] > 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("entry ", Quoted(entry.name()), ": input ", Quoted(port.name()), ", slot ",
                     std::find(written.begin(), written.end(), false) - written.begin(),
                     ", was not written since the last run; write all inputs before each",
                     fed ? ", but those that the run before computed: them as a whole, or not" : ""));
  }
  if (entry.sequences() != nullptr) return CheckSequencesOf(entry);
  return absl::OkStatus();
}

void Ports::Begin(uint32_t index, std::vector<Copy>& copies) {
  const fbs::Entry& entry = *plan_.entries()->Get(index);
  const bool odd = NextParity(index) == 1;
  copies.clear();
  for (uint32_t f = 0; f < SizeOf(entry.feeds()); ++f) {
    const fbs::Port& from = *entry.outputs()->Get(entry.feeds()->Get(f)->output());
    const fbs::Port& to = *entry.inputs()->Get(entry.feeds()->Get(f)->input());
    if (IsWritten(to.buffer())) continue;
    // The run before took the other buffers.
    copies.push_back({Alternates(index) && !odd ? from.second() : from.buffer(), odd ? to.second() : to.buffer()});
  }
  ++begun_[index];
  for (auto& [buffer, input] : inputs_) {
    // An input written for the next run of another entry that takes buffers in turn stays until that run begins.
    const auto alternating = alternating_.find(buffer);
    if (alternating != alternating_.end() && alternating->second.entry != index) continue;
    input.written.assign(input.written.size(), false);
  }
}

}  // namespace bowline
