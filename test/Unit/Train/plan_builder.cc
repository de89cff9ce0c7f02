#include "test/Unit/Train/plan_builder.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

constexpr uint64_t kAlignment = 64;

kernels::DType KernelType(fbs::DType dtype) { return static_cast<kernels::DType>(dtype); }

}  // namespace

PlanBuilder::PlanBuilder(const std::string& name, uint64_t seed, uint32_t threads) {
  plan_.compiler = "by hand";
  plan_.name = name;
  plan_.seed = seed;
  plan_.target = std::make_unique<fbs::TargetT>();
  plan_.target->device = "cpu";
  plan_.target->arch = "x86_64";
  plan_.target->cpu = "x86-64";
  plan_.target->threads = threads;
  auto source = std::make_unique<fbs::SourceT>();
  source->location = name;
  source->pass = "by hand";
  plan_.sources.push_back(std::move(source));
}

uint32_t PlanBuilder::Buffer(const std::string& name, fbs::BufferKind kind, fbs::DType dtype,
                             const std::vector<int64_t>& shape, int64_t slots) {
  auto buffer = std::make_unique<fbs::BufferT>();
  kernels::TensorSpec spec{kernels::Access::kRead, KernelType(dtype), shape};
  buffer->name = name;
  buffer->kind = kind;
  buffer->dtype = dtype;
  buffer->shape = shape;
  buffer->offset = plan_.arena_bytes;
  buffer->bytes = spec.ByteCount();
  const uint64_t stride = (buffer->bytes + kAlignment - 1) / kAlignment * kAlignment;
  buffer->slots = static_cast<uint32_t>(slots);
  buffer->slot_stride = slots > 1 ? stride : 0;
  plan_.arena_bytes += stride * static_cast<uint64_t>(slots);
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

uint32_t PlanBuilder::State(const std::string& name, fbs::StateFlag flags, fbs::DType dtype,
                            const std::vector<int64_t>& shape) {
  const auto kind = Has(flags, fbs::StateFlag::Weight) ? fbs::BufferKind::Parameter : fbs::BufferKind::State;
  auto state = std::make_unique<fbs::StateT>();
  state->buffer = Buffer(name, kind, dtype, shape);
  state->key = name;
  state->flags = flags;
  state->init = "by hand";
  plan_.states.push_back(std::move(state));
  return plan_.states.back()->buffer;
}

uint32_t PlanBuilder::ConstantBytes(const std::string& name, fbs::DType dtype, absl::Span<const uint8_t> bytes,
                                    const std::vector<int64_t>& shape) {
  auto constant = std::make_unique<fbs::ConstantDataT>();
  constant->buffer = Buffer(name, fbs::BufferKind::Constant, dtype, shape);
  constant->data.assign(bytes.begin(), bytes.end());
  plan_.constants.push_back(std::move(constant));
  return plan_.constants.back()->buffer;
}

void PlanBuilder::BeginProgram(const std::string& name) {
  auto program = std::make_unique<fbs::ProgramT>();
  program->name = name;
  program->streams = {"compute"};
  plan_.programs.push_back(std::move(program));
}

void PlanBuilder::BeginSegment(const std::string& name) {
  auto segment = std::make_unique<fbs::SegmentT>();
  segment->name = name;
  plan_.programs.back()->segments.push_back(std::move(segment));
}

void PlanBuilder::Call(uint32_t slot) {
  fbs::ProgramT& program = *plan_.programs.back();
  program.timeline.emplace_back(static_cast<uint32_t>(program.segments.size() - 1), slot);
}

fbs::CommandT& PlanBuilder::AddCommand() {
  auto& commands = plan_.programs.back()->segments.back()->commands;
  commands.push_back(std::make_unique<fbs::CommandT>());
  return *commands.back();
}

void PlanBuilder::Launch(const std::string& name, std::vector<kernels::Attribute> attributes,
                         const std::vector<Operand>& operands) {
  auto kernel = std::make_unique<fbs::KernelT>();
  fbs::LaunchT launch;
  kernels::Signature signature{name, attributes, {}, static_cast<int>(plan_.target->threads)};
  const auto add = [&](uint32_t buffer, fbs::Access access, fbs::DType dtype, const std::vector<int64_t>& shape,
                       uint64_t offset = 0) {
    auto argument = std::make_unique<fbs::ArgumentT>();
    argument->access = access;
    argument->dtype = dtype;
    argument->shape = shape;
    // As the target asks for.
    if (access != fbs::Access::Read && !kernels::IsDataCheck(name)) argument->alignment = 64;
    kernel->arguments.push_back(std::move(argument));
    launch.operands.emplace_back(buffer, offset);
  };
  kernel->name = name;
  for (const kernels::Attribute& given : attributes) {
    auto attribute = std::make_unique<fbs::AttributeT>();
    attribute->name = given.name;
    attribute->ints = given.ints;
    attribute->floats = given.floats;
    attribute->text = given.text;
    kernel->attributes.push_back(std::move(attribute));
  }
  for (const Operand& operand : operands) {
    const fbs::DType dtype = plan_.buffers[operand.buffer]->dtype;
    signature.arguments.push_back({operand.access, KernelType(dtype), operand.shape});
    add(operand.buffer, static_cast<fbs::Access>(operand.access), dtype, operand.shape, operand.offset);
  }
  const auto bound = kernels::CreateKernel(signature);
  ASSERT_TRUE(bound.ok()) << bound.status();
  if (const auto scratch = static_cast<int64_t>((*bound)->ScratchBytes()); scratch > 0) {
    const uint32_t buffer = Buffer("scratch", fbs::BufferKind::Scratch, fbs::DType::U8, {scratch});
    add(buffer, fbs::Access::Write, fbs::DType::U8, {scratch});
  }
  launch.kernel = static_cast<uint32_t>(plan_.kernels.size());
  plan_.kernels.push_back(std::move(kernel));
  AddCommand().body.Set(std::move(launch));
}

void PlanBuilder::Copy(uint32_t from, uint64_t from_offset, uint32_t to, uint64_t to_offset, uint64_t bytes) {
  fbs::CopyT copy;
  copy.source = std::make_unique<fbs::Operand>(from, from_offset);
  copy.destination = std::make_unique<fbs::Operand>(to, to_offset);
  copy.bytes = bytes;
  AddCommand().body.Set(std::move(copy));
}

void PlanBuilder::Entry(fbs::EntryKind kind, const std::vector<Port>& inputs, const std::vector<Port>& outputs) {
  const auto convert = [](const std::vector<Port>& ports) {
    std::vector<std::unique_ptr<fbs::PortT>> result;
    for (const Port& port : ports) {
      result.push_back(std::make_unique<fbs::PortT>());
      result.back()->name = port.name;
      result.back()->buffer = port.buffer;
      result.back()->limit = port.limit;
    }
    return result;
  };
  auto entry = std::make_unique<fbs::EntryT>();
  entry->name = absl::StrCat("run.", fbs::EnumNameEntryKind(kind));
  entry->kind = kind;
  entry->program = static_cast<uint32_t>(plan_.programs.size() - 1);
  entry->inputs = convert(inputs);
  entry->outputs = convert(outputs);
  plan_.entries.push_back(std::move(entry));
}

}  // namespace bowline
