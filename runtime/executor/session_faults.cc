// The part of a session that reports the faults which kernels found in their data.

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "runtime/executor/binder.h"
#include "runtime/executor/session.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/plan/view/preparation.h"

namespace bowline {

absl::Status Session::FindFaults() {
  has_faults_.assign(plan().entries()->size(), false);
  for (uint32_t i = 0; i < plan().buffers()->size(); ++i) {
    const fbs::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() != fbs::BufferKind::Fault || buffer.role() != role_ || buffer.bytes() == 0) continue;
    faults_ = i;
    words_.resize(buffer.bytes() / sizeof(int32_t));
  }
  if (!faults_.has_value()) return absl::OkStatus();
  std::vector<OperandUse> uses;
  for (uint32_t e = 0; e < plan().entries()->size(); ++e) {
    const fbs::Program& program = *plan().programs()->Get(plan().entries()->Get(e)->program());
    for (uint32_t s = 0; s < SizeOf(program.segments()); ++s) {
      const auto* commands = program.segments()->Get(s)->commands();
      uses.clear();
      for (uint32_t c = 0; c < SizeOf(commands); ++c) AppendOperands(plan(), *commands->Get(c), uses);
      for (const OperandUse& use : uses) {
        if (use.operand->buffer() == *faults_) has_faults_[e] = true;
      }
    }
  }
  return ClearFaults();
}

absl::Status Session::ReadFaults() {
  const fbs::Buffer& faults = *plan().buffers()->Get(*faults_);
  return ArenaOf(faults).Read(faults.offset(),
                              {reinterpret_cast<uint8_t*>(words_.data()), words_.size() * sizeof(int32_t)});
}

absl::Status Session::WriteFaults() {
  const fbs::Buffer& faults = *plan().buffers()->Get(*faults_);
  return ArenaOf(faults).Write(faults.offset(),
                               {reinterpret_cast<const uint8_t*>(words_.data()), words_.size() * sizeof(int32_t)});
}

absl::Status Session::ClearFaults() {
  std::fill(words_.begin(), words_.end(), 0);
  return WriteFaults();
}

absl::Status Session::MarkEnd(StartedRun& run) {
  for (size_t i = 0; i < run.ends.size(); ++i) BOWLINE_RETURN_IF_ERROR(bound_->streams[i]->Record(*run.ends[i]));
  if (!has_faults_[static_cast<size_t>(run.entry)]) return absl::OkStatus();
  // The next run may find faults of its own before anybody looks.
  hal::Stream& first = *bound_->streams.front();
  for (const std::unique_ptr<hal::Event>& end : run.ends) BOWLINE_RETURN_IF_ERROR(first.Wait(*end));
  BOWLINE_RETURN_IF_ERROR(first.Copy(run.faults->address(), AddressOf(*plan().buffers()->Get(*faults_), 0),
                                     words_.size() * sizeof(int32_t)));
  return first.Record(*run.ends.front());
}

absl::Status Session::CheckFaults(StartedRun& run) {
  if (run.marked) {
    std::memcpy(words_.data(), run.faults->host(), words_.size() * sizeof(int32_t));
  } else {
    BOWLINE_RETURN_IF_ERROR(ReadFaults());
  }
  const auto found = std::find_if(words_.begin(), words_.end(), [](int32_t word) { return word != 0; });
  if (found == words_.end()) return absl::OkStatus();
  const absl::Status fault = DescribeFault(run.entry, static_cast<size_t>(found - words_.begin()));
  Drain();
  for (StartedRun& other : runs_) {
    if (!other.started || other.number <= run.number || !other.status.ok()) continue;
    other.status = FailedBehind(fault, other, run);
  }
  BOWLINE_RETURN_IF_ERROR(ClearFaults());
  return fault;
}

absl::Status Session::CheckPreparation(int entry) {
  if (!has_faults_[static_cast<size_t>(entry)]) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(ReadFaults());
  absl::Status fault;
  for (size_t word = 0; word < words_.size(); ++word) {
    if (words_[word] == 0 || FindFault(entry, word).operand == nullptr) continue;
    if (fault.ok()) fault = DescribeFault(entry, word);
    words_[word] = 0;
  }
  if (!fault.ok()) BOWLINE_RETURN_IF_ERROR(WriteFaults());
  return fault;
}

Session::FaultPlace Session::FindFault(int entry, size_t word) const {
  const uint64_t offset = word * sizeof(int32_t);
  const fbs::Program& program = *plan().programs()->Get(plan().entries()->Get(static_cast<uint32_t>(entry))->program());
  for (uint32_t s = 0; s < SizeOf(program.segments()); ++s) {
    const auto* commands = program.segments()->Get(s)->commands();
    for (uint32_t c = 0; c < SizeOf(commands); ++c) {
      const fbs::Launch* launch = commands->Get(c)->body_as_Launch();
      for (uint32_t i = 0; launch != nullptr && i < SizeOf(launch->operands()); ++i) {
        const fbs::Operand& operand = *launch->operands()->Get(i);
        const fbs::Argument& argument = *plan().kernels()->Get(launch->kernel())->arguments()->Get(i);
        const uint64_t bytes = DenseBytes(argument.dtype(), argument.shape()).value_or(0);
        // In [operand.offset, operand.offset + bytes), without a sum that may be too large.
        if (operand.buffer() != *faults_ || offset < operand.offset() || offset - operand.offset() >= bytes) continue;
        return {s, c, &operand};
      }
    }
  }
  return {};
}

absl::Status Session::DescribeFault(int entry, size_t word) const {
  // The place comes before the value, and is not 0.
  const int32_t place = words_[word], value = word + 1 < words_.size() ? words_[word + 1] : 0;
  const fbs::Entry& e = *plan().entries()->Get(static_cast<uint32_t>(entry));
  const FaultPlace found = FindFault(entry, word);
  if (found.operand == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("entry ", Quoted(e.name()), ": a check of data says ", place));
  }
  const fbs::Segment& segment = *plan().programs()->Get(e.program())->segments()->Get(found.segment);
  const fbs::Command& command = *segment.commands()->Get(found.command);
  const std::string kernel = plan().kernels()->Get(command.body_as_Launch()->kernel())->name()->str();
  return absl::InvalidArgumentError(absl::StrCat("entry ", Quoted(e.name()), ", segment ", Quoted(segment.name()),
                                                 ", command ", found.command, ", ", DescribeCommand(plan(), command),
                                                 ", from ", DescribeSource(plan(), command.source()), ": ",
                                                 kernels::DescribeFault(kernel, place, value)));
}

}  // namespace bowline
