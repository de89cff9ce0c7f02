#include "test/Unit/Plan/plan_fixture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/registry/data_check.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/plan/meaning/code_contract.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline::testing {
namespace {

using fbs::Access;
using fbs::BufferKind;
using fbs::DType;

constexpr int64_t kScratchBytes = 1 << 16;  // more than the GEMM needs on any CPU
constexpr int64_t kVocabulary = 32, kColumns = 16, kTokensPerSlot = 5, kOut = 8;

class Maker {
 public:
  explicit Maker(absl::Span<const uint8_t> image);
  fbs::PlanT Take() { return std::move(plan_); }

 private:
  void AddBuffers();
  void AddKernels();
  void AddInit();
  void AddStep();

  uint64_t AddBuffer(const char* name, BufferKind kind, DType dtype, std::vector<int64_t> shape, uint64_t offset,
                     uint32_t slots = 1);
  fbs::KernelT& AddKernel(const char* name, fbs::KernelOrigin origin);
  static void AddArgument(fbs::KernelT& kernel, Access access, DType dtype, std::vector<int64_t> shape);
  static void AddInts(fbs::KernelT& kernel, const char* name, std::vector<int64_t> values);
  static void AddFloat(fbs::KernelT& kernel, const char* name, double value);
  void Launch(fbs::SegmentT& segment, KernelIndex kernel, const std::vector<uint32_t>& buffers);
  fbs::ProgramT& AddProgram(const char* name);
  static fbs::SegmentT& AddSegment(fbs::ProgramT& program, const char* name);
  static std::unique_ptr<fbs::PortT> Port(const char* name, uint32_t buffer, int64_t limit = 0);

  fbs::PlanT plan_;
};

Maker::Maker(absl::Span<const uint8_t> image) {
  plan_.compiler = "bowline test";
  plan_.name = "fixture";
  plan_.seed = 7;
  plan_.target = std::make_unique<fbs::TargetT>();
  plan_.target->device = "cpu";
  plan_.target->arch = HostArch();
  plan_.target->cpu = "x86-64";
  plan_.target->threads = 2;
  auto axis = std::make_unique<fbs::AxisT>();
  axis->name = "dp";
  axis->size = 1;
  plan_.mesh.push_back(std::move(axis));
  for (const char* location : {"model.embed", "model.head", "optimizer"}) {
    auto source = std::make_unique<fbs::SourceT>();
    source->location = location;
    source->pass = "emit";
    plan_.sources.push_back(std::move(source));
  }
  auto attachment = std::make_unique<fbs::AttachmentT>();
  attachment->name = "config.json";
  attachment->text = "{}";
  plan_.attachments.push_back(std::move(attachment));
  auto elf = std::make_unique<fbs::CodeT>();
  elf->format = kElfImageFormat;
  elf->data.assign(image.begin(), image.end());
  if (image.empty()) elf->data = {0x7f, 'E', 'L', 'F'};
  plan_.images.push_back(std::make_unique<fbs::ImageT>());
  plan_.images.back()->codes.push_back(std::move(elf));
  AddBuffers();
  AddKernels();
  AddInit();
  AddStep();
}

uint64_t Maker::AddBuffer(const char* name, BufferKind kind, DType dtype, std::vector<int64_t> shape, uint64_t offset,
                          uint32_t slots) {
  auto buffer = std::make_unique<fbs::BufferT>();
  buffer->name = name;
  buffer->kind = kind;
  buffer->dtype = dtype;
  buffer->bytes = ElementSize(dtype);
  for (int64_t extent : shape) buffer->bytes *= static_cast<uint64_t>(extent);
  buffer->shape = std::move(shape);
  buffer->offset = offset;
  buffer->slots = slots;
  const uint64_t stride = (buffer->bytes + 63) / 64 * 64;
  if (slots > 1) buffer->slot_stride = stride;
  buffer->source = static_cast<uint32_t>(plan_.buffers.size() % plan_.sources.size());
  plan_.arena_bytes = std::max(plan_.arena_bytes, offset + (slots - 1) * stride + buffer->bytes);
  plan_.buffers.push_back(std::move(buffer));
  return offset + slots * stride;
}

void Maker::AddBuffers() {
  uint64_t end = AddBuffer("table", BufferKind::Parameter, DType::F32, {kVocabulary, kColumns}, 0);
  end = AddBuffer("steps", BufferKind::State, DType::F32, {1}, end);
  end = AddBuffer("weight", BufferKind::Constant, DType::F32, {kColumns, kOut}, end);
  end = AddBuffer("tokens", BufferKind::Input, DType::I32, {kTokensPerSlot}, end, 2);
  end = AddBuffer("result", BufferKind::Output, DType::F32, {kTokensPerSlot, kOut}, end);
  const uint64_t rows = end;
  end = AddBuffer("rows", BufferKind::Temporary, DType::F32, {kTokensPerSlot, kColumns}, rows);
  end = AddBuffer("product", BufferKind::Temporary, DType::F32, {kTokensPerSlot, kOut}, end);
  AddBuffer("doubled", BufferKind::Temporary, DType::F32, {kTokensPerSlot, kOut}, rows);
  end = AddBuffer("sum", BufferKind::Temporary, DType::F32, {kTokensPerSlot, kOut}, end);
  AddBuffer("workspace", BufferKind::Scratch, DType::U8, {kScratchBytes}, end);

  const std::pair<uint32_t, const char*> states[] = {{kTable, "model.embed.weight"}, {kSteps, "steps"}};
  for (const auto& [buffer, key] : states) {
    auto state = std::make_unique<fbs::StateT>();
    state->buffer = buffer;
    state->key = key;
    state->flags = fbs::StateFlag::Saved;
    if (buffer == kTable) state->flags |= fbs::StateFlag::Weight | fbs::StateFlag::Trained;
    state->init = buffer == kTable ? "normal(0, 1)" : "zeros";
    plan_.states.push_back(std::move(state));
  }
  auto constant = std::make_unique<fbs::ConstantDataT>();
  constant->buffer = kWeight;
  std::vector<float> weight(kColumns * kOut);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  constant->data.resize(weight.size() * sizeof(float));
  std::memcpy(constant->data.data(), weight.data(), constant->data.size());
  plan_.constants.push_back(std::move(constant));
}

fbs::KernelT& Maker::AddKernel(const char* name, fbs::KernelOrigin origin) {
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->name = name;
  kernel->origin = origin;
  kernel->flops = 100;
  kernel->bytes_moved = 200;
  plan_.kernels.push_back(std::move(kernel));
  return *plan_.kernels.back();
}

void Maker::AddArgument(fbs::KernelT& kernel, Access access, DType dtype, std::vector<int64_t> shape) {
  auto argument = std::make_unique<fbs::ArgumentT>();
  argument->access = access;
  argument->dtype = dtype;
  argument->shape = std::move(shape);
  // As the target asks for.
  const bool is_registered = kernel.origin == fbs::KernelOrigin::Registered && !kernels::IsDataCheck(kernel.name);
  if (is_registered && access != Access::Read) argument->alignment = 64;
  kernel.arguments.push_back(std::move(argument));
}

void Maker::AddInts(fbs::KernelT& kernel, const char* name, std::vector<int64_t> values) {
  auto attribute = std::make_unique<fbs::AttributeT>();
  attribute->name = name;
  attribute->ints = std::move(values);
  kernel.attributes.push_back(std::move(attribute));
}

void Maker::AddFloat(fbs::KernelT& kernel, const char* name, double value) {
  auto attribute = std::make_unique<fbs::AttributeT>();
  attribute->name = name;
  attribute->floats = {value};
  kernel.attributes.push_back(std::move(attribute));
}

void Maker::AddKernels() {
  const auto registered = fbs::KernelOrigin::Registered;
  fbs::KernelT& random = AddKernel("random_normal", registered);
  AddArgument(random, Access::Write, DType::F32, {kVocabulary, kColumns});
  AddInts(random, "seed", {7});
  AddInts(random, "key", {1});
  AddInts(random, "global_shape", {kVocabulary, kColumns});
  AddInts(random, "offsets", {0, 0});
  AddFloat(random, "mean", 0);
  AddFloat(random, "stddev", 1);
  fbs::KernelT& zero_steps = AddKernel("fill", registered);
  AddArgument(zero_steps, Access::Write, DType::F32, {1});
  AddFloat(zero_steps, "value", 0);
  fbs::KernelT& zero_sum = AddKernel("fill", registered);
  AddArgument(zero_sum, Access::Write, DType::F32, {kTokensPerSlot, kOut});
  AddFloat(zero_sum, "value", 0);
  fbs::KernelT& gather = AddKernel("gather_rows", registered);
  AddArgument(gather, Access::Read, DType::F32, {kVocabulary, kColumns});
  AddArgument(gather, Access::Read, DType::I32, {kTokensPerSlot});
  AddArgument(gather, Access::Write, DType::F32, {kTokensPerSlot, kColumns});
  fbs::KernelT& matmul = AddKernel("matmul", registered);
  AddArgument(matmul, Access::Read, DType::F32, {kTokensPerSlot, kColumns});
  AddArgument(matmul, Access::Read, DType::F32, {kColumns, kOut});
  AddArgument(matmul, Access::Write, DType::F32, {kTokensPerSlot, kOut});
  AddArgument(matmul, Access::Write, DType::U8, {kScratchBytes});
  AddInts(matmul, "batch", {1});
  AddInts(matmul, "m", {kTokensPerSlot});
  AddInts(matmul, "n", {kOut});
  AddInts(matmul, "k", {kColumns});
  AddInts(matmul, "a_strides", {kTokensPerSlot * kColumns, kColumns, 1});
  AddInts(matmul, "b_strides", {kColumns * kOut, kOut, 1});
  AddInts(matmul, "c_strides", {kTokensPerSlot * kOut, kOut, 1});
  fbs::KernelT& add = AddKernel("fixture_add", fbs::KernelOrigin::Generated);
  SetExtent(add, kTokensPerSlot * kOut);
  for (Access access : {Access::Read, Access::Read, Access::Write}) {
    AddArgument(add, access, DType::F32, {kTokensPerSlot, kOut});
  }
  add.in_place.emplace_back(/*output=*/2, /*input=*/1);
  fbs::KernelT& increment = AddKernel("fixture_increment", fbs::KernelOrigin::Generated);
  SetExtent(increment, 1);
  AddArgument(increment, Access::ReadWrite, DType::F32, {1});
}

void Maker::Launch(fbs::SegmentT& segment, KernelIndex kernel, const std::vector<uint32_t>& buffers) {
  fbs::LaunchT launch;
  launch.kernel = kernel;
  for (uint32_t buffer : buffers) launch.operands.emplace_back(buffer, 0);
  auto command = std::make_unique<fbs::CommandT>();
  command->body.Set(std::move(launch));
  command->source = static_cast<uint32_t>(segment.commands.size() % plan_.sources.size());
  segment.commands.push_back(std::move(command));
}

fbs::ProgramT& Maker::AddProgram(const char* name) {
  auto program = std::make_unique<fbs::ProgramT>();
  program->name = name;
  program->streams = {"compute"};
  plan_.programs.push_back(std::move(program));
  return *plan_.programs.back();
}

fbs::SegmentT& Maker::AddSegment(fbs::ProgramT& program, const char* name) {
  auto segment = std::make_unique<fbs::SegmentT>();
  segment->name = name;
  program.segments.push_back(std::move(segment));
  return *program.segments.back();
}

std::unique_ptr<fbs::PortT> Maker::Port(const char* name, uint32_t buffer, int64_t limit) {
  auto port = std::make_unique<fbs::PortT>();
  port->name = name;
  port->buffer = buffer;
  port->limit = limit;
  return port;
}

void Maker::AddInit() {
  fbs::ProgramT& program = AddProgram("init");
  fbs::SegmentT& segment = AddSegment(program, "init");
  Launch(segment, kRandom, {kTable});
  Launch(segment, kZeroSteps, {kSteps});
  program.timeline.emplace_back(0, 0);
  auto entry = std::make_unique<fbs::EntryT>();
  entry->name = "init";
  entry->kind = fbs::EntryKind::Init;
  plan_.entries.push_back(std::move(entry));
}

void Maker::AddStep() {
  fbs::ProgramT& program = AddProgram("step");
  Launch(AddSegment(program, "zero"), kZeroSum, {kSum});
  fbs::SegmentT& micro = AddSegment(program, "micro");
  Launch(micro, kGather, {kTable, kTokens, kRows});
  Launch(micro, kMatmul, {kRows, kWeight, kProduct, kWorkspace});
  Launch(micro, kAdd, {kProduct, kProduct, kDoubled});
  Launch(micro, kAdd, {kDoubled, kSum, kSum});
  fbs::SegmentT& finish = AddSegment(program, "finish");
  fbs::CopyT copy;
  copy.source = std::make_unique<fbs::Operand>(kSum, 0);
  copy.destination = std::make_unique<fbs::Operand>(kResult, 0);
  copy.bytes = kTokensPerSlot * kOut * sizeof(float);
  auto command = std::make_unique<fbs::CommandT>();
  command->body.Set(std::move(copy));
  finish.commands.push_back(std::move(command));
  Launch(finish, kIncrement, {kSteps});
  program.timeline = {fbs::SegmentCall(0, 0), fbs::SegmentCall(1, 0), fbs::SegmentCall(1, 1), fbs::SegmentCall(2, 0)};
  auto entry = std::make_unique<fbs::EntryT>();
  entry->name = "step";
  entry->program = 1;
  entry->inputs.push_back(Port("tokens", kTokens, kVocabulary));
  entry->outputs.push_back(Port("result", kResult));
  entry->outputs.push_back(Port("steps", kSteps));
  plan_.entries.push_back(std::move(entry));
}

}  // namespace

void SetExtent(fbs::KernelT& kernel, uint64_t extent) {
  fbs::ByRangeT range;
  range.extent = extent;
  kernel.geometry.Set(std::move(range));
}

fbs::GridT& GridOf(fbs::PlanT& plan, std::vector<uint32_t> blocks, std::vector<uint32_t> threads) {
  fbs::KernelT& kernel = *plan.kernels[kAdd];
  fbs::GridT grid;
  grid.blocks = std::move(blocks);
  grid.threads = std::move(threads);
  kernel.geometry.Set(std::move(grid));
  return *kernel.geometry.AsGrid();
}

fbs::PlanT MakePlan(absl::Span<const uint8_t> image) {
  fbs::PlanT plan = Maker(image).Take();
  SealCodes(plan);
  return plan;
}

fbs::PlanT MakePlanWithTwoRuns(absl::Span<const uint8_t> image) {
  fbs::PlanT plan = MakePlan(image);
  plan.entries[1]->outputs.pop_back();
  AllowTwoRuns(plan, *plan.entries[1]);
  SealCodes(plan);
  return plan;
}

void AllowTwoRuns(fbs::PlanT& plan, fbs::EntryT& entry) {
  entry.in_flight = 2;
  for (auto* ports : {&entry.inputs, &entry.outputs}) {
    for (const auto& port : *ports) {
      auto second = std::make_unique<fbs::BufferT>(*plan.buffers[port->buffer]);
      uint64_t& arena = plan.roles.empty() ? plan.arena_bytes : plan.roles[second->role]->arena_bytes;
      second->name += ".second";
      second->offset = (arena + 63) / 64 * 64;
      arena = second->offset + (second->slots - 1) * second->slot_stride + second->bytes;
      plan.arena_bytes = std::max(plan.arena_bytes, arena);
      port->second = static_cast<uint32_t>(plan.buffers.size());
      plan.buffers.push_back(std::move(second));
    }
  }
}

fbs::PlanT MakePlanWithSequences(absl::Span<const uint8_t> image) {
  fbs::PlanT plan = MakePlan(image);
  fbs::EntryT& entry = *plan.entries[1];
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->name = "sequence_positions";
  kernel->origin = fbs::KernelOrigin::Registered;
  fbs::LaunchT launch;
  launch.kernel = static_cast<uint32_t>(plan.kernels.size());
  const auto add = [&](const char* name, BufferKind kind, std::vector<int64_t> shape, bool is_argument) {
    auto buffer = std::make_unique<fbs::BufferT>(*plan.buffers[kTokens]);
    buffer->name = name;
    buffer->kind = kind;
    buffer->bytes = sizeof(int32_t);
    for (const int64_t extent : shape) buffer->bytes *= static_cast<uint64_t>(extent);
    buffer->shape = shape;
    buffer->slots = 1;
    buffer->slot_stride = 0;
    buffer->offset = (plan.arena_bytes + 63) / 64 * 64;
    plan.arena_bytes = buffer->offset + buffer->bytes;
    const auto index = static_cast<uint32_t>(plan.buffers.size());
    plan.buffers.push_back(std::move(buffer));
    if (kind == BufferKind::Input) {
      auto port = std::make_unique<fbs::PortT>();
      port->name = name;
      port->buffer = index;
      entry.inputs.push_back(std::move(port));
    }
    if (!is_argument) return;
    auto argument = std::make_unique<fbs::ArgumentT>();
    argument->access = kind == BufferKind::Input ? Access::Read : Access::Write;
    argument->dtype = DType::I32;
    argument->shape = std::move(shape);
    if (argument->access != Access::Read) argument->alignment = 64;
    kernel->arguments.push_back(std::move(argument));
    launch.operands.emplace_back(index, 0);
  };
  add("begins", BufferKind::Input, {4}, true);
  add("lengths", BufferKind::Input, {3}, true);
  add("blocks", BufferKind::Input, {3, 2}, false);
  add("positions", BufferKind::Temporary, {kTokensPerSlot}, true);
  plan.kernels.push_back(std::move(kernel));
  auto command = std::make_unique<fbs::CommandT>();
  command->body.Set(std::move(launch));
  auto& commands = plan.programs[entry.program]->segments[0]->commands;
  commands.insert(commands.begin(), std::move(command));
  entry.sequences = std::make_unique<fbs::SequencesT>();
  entry.sequences->rows = 1;
  entry.sequences->lengths = 2;
  entry.sequences->blocks = 3;
  entry.sequences->tokens = kTokensPerSlot;
  entry.sequences->block_tokens = 16;
  entry.sequences->block_count = 7;
  SealCodes(plan);
  return plan;
}

fbs::PlanT MakePlanWithPrepare(absl::Span<const uint8_t> image) {
  fbs::PlanT plan = MakePlan(image);
  auto copied = std::make_unique<fbs::BufferT>(*plan.buffers[kTable]);
  copied->name = "copied";
  copied->kind = BufferKind::State;
  copied->offset = (plan.arena_bytes + 63) / 64 * 64;
  plan.arena_bytes = copied->offset + copied->bytes;
  fbs::CopyT copy;
  copy.source = std::make_unique<fbs::Operand>(kTable, 0);
  copy.destination = std::make_unique<fbs::Operand>(kCopied, 0);
  copy.bytes = copied->bytes;
  plan.buffers.push_back(std::move(copied));
  auto command = std::make_unique<fbs::CommandT>();
  command->body.Set(std::move(copy));
  auto segment = std::make_unique<fbs::SegmentT>();
  segment->name = "prepare";
  segment->commands.push_back(std::move(command));
  auto program = std::make_unique<fbs::ProgramT>();
  program->name = "prepare";
  program->streams = {"compute"};
  program->segments.push_back(std::move(segment));
  program->timeline.emplace_back(0, 0);
  plan.programs.push_back(std::move(program));
  auto entry = std::make_unique<fbs::EntryT>();
  entry->name = "pack";
  entry->kind = fbs::EntryKind::Prepare;
  entry->program = 2;
  plan.entries.push_back(std::move(entry));
  LaunchAt(plan, 1, 1, 0).operands[0] = fbs::Operand(kCopied, 0);
  SealCodes(plan);
  return plan;
}

fbs::LaunchT& LaunchAt(fbs::PlanT& plan, size_t program, size_t segment, size_t command) {
  return *plan.programs[program]->segments[segment]->commands[command]->body.AsLaunch();
}

fbs::CopyT& CopyAt(fbs::PlanT& plan, size_t program, size_t segment, size_t command) {
  return *plan.programs[program]->segments[segment]->commands[command]->body.AsCopy();
}

void SealCodes(fbs::PlanT& plan) {
  for (uint32_t i = 0; i < plan.images.size(); ++i) {
    for (const auto& code : plan.images[i]->codes) {
      code->contracts.clear();
      code->hash = nullptr;
      if (code->data.empty()) continue;
      for (const auto& kernel : plan.kernels) {
        if (kernel->image != i || (kernel->origin == fbs::KernelOrigin::Registered && kernel->epilogue.empty()))
          continue;
        const Digest contract = ContractOf(*kernel);
        code->contracts.emplace_back(contract.low, contract.high);
      }
      const Sha256Digest hash = CodeHash(code->data, code->contracts);
      code->hash = std::make_unique<fbs::Hash256>(flatbuffers::span<const uint8_t, 32>(hash.data(), 32));
    }
  }
}

std::vector<uint8_t> BytesOf(fbs::PlanT& plan) {
  SealCodes(plan);
  return BytesAsTheyAre(plan);
}

std::vector<uint8_t> BytesAsTheyAre(fbs::PlanT& plan) {
  const auto bytes = WritePlan(plan);
  if (!bytes.ok()) {
    std::fprintf(stderr, "WritePlan: %s\n", bytes.status().ToString().c_str());
    std::abort();
  }
  return {bytes->data(), bytes->data() + bytes->size()};
}

const fbs::Plan& PlanIn(const std::vector<uint8_t>& bytes) { return *fbs::GetPlan(bytes.data()); }

void FixContentHash(std::vector<uint8_t>& bytes) {
  auto* hash = const_cast<uint8_t*>(PlanIn(bytes).content_hash()->bytes()->data());
  const Sha256Digest digest = PlanContentHash(bytes, hash);
  std::copy(digest.begin(), digest.end(), hash);
}

}  // namespace bowline::testing
