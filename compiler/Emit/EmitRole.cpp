//===- EmitRole.cpp - From the module of a role to its part of the plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitRole.h"
#include "compiler/Emit/EmitCommands.h"
#include "compiler/Emit/EmitKernel.h"
#include "compiler/Emit/FileAttributes.h"
#include "compiler/Emit/PlanTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/Analysis/ModuleTarget.h"
#include "runtime/base/sha256.h"

#include <algorithm>
#include <map>

using namespace mlir;
using namespace bowline;

// Flags and kinds have the same values in the IR and in the file; their names are compared by a test.
static_assert(static_cast<uint32_t>(~StateFlags::None) == static_cast<uint32_t>(fbs::StateFlag::ANY));
static_assert(getMaxEnumValForEntryKind() == static_cast<uint32_t>(fbs::EntryKind::MAX));

namespace {

class RoleEmitter {
public:
  RoleEmitter(ModuleOp module, uint16_t role, fbs::PlanT &plan, PlanTables &tables)
      : module(module), plan(plan), tables(tables), firstKernel(plan.kernels.size()) {
    names.role = role;
  }

  FailureOr<uint64_t> run() {
    auto bytes = module->getAttrOfType<IntegerAttr>(plan::PlanDialect::kArenaBytesAttr);
    if (!bytes)
      return module.emitError("the module of the role has no '")
             << plan::PlanDialect::kArenaBytesAttr << "'; run pack-arena first";
    arena = bytes.getInt();
    if (failed(emitArenas()))
      return failure();
    for (auto communicator : module.getOps<plan::CommunicatorOp>())
      if (failed(tables.addCommunicator(communicator)))
        return failure();
    for (auto buffer : module.getOps<plan::BufferOp>())
      if (failed(emitBuffer(buffer)))
        return failure();
    emitImage();
    appendFaults();
    for (auto kernel : module.getOps<plan::KernelOp>())
      if (failed(addKernel(kernel)))
        return failure();
    for (auto program : module.getOps<plan::ProgramOp>())
      addProgram(program);
    for (Operation &op : *module.getBody())
      if (failed(emitRest(&op)))
        return failure();
    return arena;
  }

private:
  /// Emits the arenas in other spaces than device, in the order of spaces.
  LogicalResult emitArenas() {
    auto bytes = module->getAttrOfType<DictionaryAttr>(plan::PlanDialect::kOtherArenasAttr);
    if (!bytes)
      return success();
    std::map<plan::MemorySpace, int64_t> arenas;
    for (NamedAttribute arena : bytes) {
      std::optional<plan::MemorySpace> space = plan::symbolizeMemorySpace(arena.getName());
      auto size = dyn_cast<IntegerAttr>(arena.getValue());
      if (!space || *space == plan::MemorySpace::Device || !size)
        return module.emitError("'") << plan::PlanDialect::kOtherArenasAttr
                                     << "' holds bytes of pinned_host and external, not " << arena.getName() << " = "
                                     << arena.getValue();
      arenas[*space] = size.getInt();
    }
    for (auto [space, size] : arenas) {
      auto arena = std::make_unique<fbs::ArenaT>();
      arena->role = names.role;
      arena->space = static_cast<fbs::MemorySpace>(space);
      arena->bytes = size;
      plan.arenas.push_back(std::move(arena));
    }
    return success();
  }

  LogicalResult emitLayout(plan::BufferOp op, fbs::BufferT &buffer) {
    plan::LayoutAttr attribute = op.getLayoutAttr();
    if (!attribute)
      return success();
    buffer.layout = std::make_unique<fbs::LayoutT>();
    buffer.layout->global_shape = attribute.getGlobalShape().asArrayRef().vec();
    buffer.layout->view = attribute.getView().asArrayRef().vec();
    for (auto names : attribute.getDimShardings().getAsRange<ArrayAttr>()) {
      buffer.layout->dim_shardings.push_back(std::make_unique<fbs::DimShardingT>());
      if (failed(tables.findAxes(op, names, buffer.layout->dim_shardings.back()->axes)))
        return failure();
    }
    return tables.findAxes(op, attribute.getFlatAxes(), buffer.layout->flat_axes);
  }

  LogicalResult emitBuffer(plan::BufferOp op) {
    if (!op.getOffset())
      return op.emitOpError("has no offset; run pack-arena first");
    std::optional<fbs::DType> dtype = toDType(op.getTensorType().getElementType());
    if (!dtype)
      return op.emitOpError("element type ") << op.getTensorType().getElementType() << " is not one of the plan's";
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = op.getName().str();
    buffer->kind = static_cast<fbs::BufferKind>(op.getKind());
    buffer->dtype = *dtype;
    buffer->shape = op.getTensorType().getShape().vec();
    buffer->space = static_cast<fbs::MemorySpace>(op.getSpace());
    buffer->alignment = op.getAlignment();
    buffer->offset = *op.getOffset();
    buffer->bytes = op.getBytes();
    buffer->slots = op.getSlots();
    buffer->slot_stride = op.getStride();
    buffer->source = tables.source(op, "");
    if (failed(emitLayout(op, *buffer)))
      return failure();
    if (op.getViewed()) {
      buffer->view = std::make_unique<fbs::ViewT>();
      buffer->view->of = names.buffers.lookup(op.getViewed());
      buffer->view->stride = op.getViewStride();
      if (op.getViewAxes() && failed(tables.findAxes(op, *op.getViewAxes(), buffer->view->axes)))
        return failure();
    }
    buffer->role = names.role;
    names.buffers[op.getResult()] = plan.buffers.size();
    plan.buffers.push_back(std::move(buffer));
    return success();
  }

  static void emitContracts(plan::ImageOp op, fbs::CodeT &code) {
    ArrayRef<int64_t> words = op.getContracts().value_or(ArrayRef<int64_t>());
    for (size_t i = 0; i < words.size(); i += 2)
      code.contracts.emplace_back(words[i], words[i + 1]);
    Sha256Digest hash;
    if (!op.getHash() || !DigestFromHex({op.getHash()->data(), op.getHash()->size()}, &hash))
      return;
    code.hash = std::make_unique<fbs::Hash256>(flatbuffers::span<const uint8_t, 32>(hash.data(), 32));
  }

  void emitImage() {
    auto image = std::make_unique<fbs::ImageT>();
    for (plan::ImageOp op : module.getOps<plan::ImageOp>()) {
      auto code = std::make_unique<fbs::CodeT>();
      code->format = op.getFormat().str();
      if (auto target = op->getAttrOfType<StringAttr>(kCodeTargetAttr))
        code->target = target.str();
      code->data = expand(cast<DenseElementsAttr>(op.getData()));
      emitContracts(op, *code);
      image->codes.push_back(std::move(code));
    }
    if (!image->codes.empty())
      imageIndex = tables.addImage(std::move(image));
  }

  LogicalResult addKernel(plan::KernelOp op) {
    FailureOr<std::unique_ptr<fbs::KernelT>> kernel = emitKernel(op);
    if (failed(kernel))
      return failure();
    if (op.getSymbol())
      // Without an image the loader says so.
      (*kernel)->image = imageIndex.value_or(plan.images.size());
    bool isChecked = llvm::any_of(names.faults, [&](const auto &fault) {
      return cast<plan::LaunchOp>(fault.first).getKernel() == op.getSymName();
    });
    if (const kernels::DataCheck *check = dataCheckOf(op); check && isChecked)
      names.checks[op.getSymNameAttr()] = {check, tables.addKernel(emitDataCheck(*check, **kernel), firstKernel)};
    names.kernels[op.getSymNameAttr()] = tables.addKernel(std::move(*kernel), firstKernel);
    return success();
  }

  void addProgram(plan::ProgramOp op) {
    std::unique_ptr<fbs::ProgramT> program = emitProgram(op, plan, tables, names);
    names.programs[op.getSymNameAttr()] = plan.programs.size();
    plan.programs.push_back(std::move(program));
  }

  /// Whether callers of the program write the data that the launch checks, in a port whose limit is low enough.
  bool isCheckedByCallers(plan::LaunchOp launch, const kernels::DataCheck &check, plan::KernelOp kernel) {
    if (!check.is_row)
      return false;
    Value data = launch.getOperands()[check.argument];
    int64_t rows = rowsOfCheck(check, kernel);
    bool isPort = false;
    for (auto entry : module.getOps<plan::EntryOp>())
      for (auto [input, limit] : llvm::zip_equal(entry.getInputs(), entry.getInputLimits())) {
        if (input != data)
          continue;
        if (limit < 1 || limit > rows)
          return false;
        isPort = true;
      }
    return isPort;
  }

  /// Launches of the program whose data are checked.
  SmallVector<plan::LaunchOp> checkedLaunches(plan::ProgramOp program, const SymbolTable &symbols) {
    SmallVector<plan::LaunchOp> launches;
    program.walk([&](plan::LaunchOp launch) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      const kernels::DataCheck *check = dataCheckOf(kernel);
      if (check && !isCheckedByCallers(launch, *check, kernel))
        launches.push_back(launch);
    });
    return launches;
  }

  /// Adds words for each launch whose data are checked, behind all other buffers of the role.
  void appendFaults() {
    SymbolTable symbols(module);
    for (auto program : module.getOps<plan::ProgramOp>())
      for (plan::LaunchOp launch : checkedLaunches(program, symbols))
        names.faults.insert({launch, names.faults.size() * kernels::kFaultWords});
    if (names.faults.empty())
      return;
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = "faults";
    buffer->kind = fbs::BufferKind::Fault;
    buffer->dtype = fbs::DType::I32;
    buffer->shape = {static_cast<int64_t>(names.faults.size()) * kernels::kFaultWords};
    buffer->alignment = deviceAlignment(module);
    buffer->offset = llvm::alignTo(arena, buffer->alignment);
    buffer->bytes = names.faults.size() * kernels::kFaultWords * sizeof(int32_t);
    buffer->source = tables.source("", "emit-plan", "");
    buffer->role = names.role;
    arena = buffer->offset + buffer->bytes;
    names.faultBuffer = plan.buffers.size();
    plan.buffers.push_back(std::move(buffer));
  }

  LogicalResult emitRest(Operation *op) {
    if (auto stateOp = dyn_cast<plan::StateOp>(op)) {
      auto state = std::make_unique<fbs::StateT>();
      state->buffer = names.buffers.lookup(stateOp.getBuffer());
      state->key = stateOp.getKey().str();
      state->flags = static_cast<fbs::StateFlag>(stateOp.getFlags());
      state->init = stateOp.getInit().str();
      state->format = stateOp.getFormat().value_or("").str();
      plan.states.push_back(std::move(state));
    } else if (auto constantOp = dyn_cast<plan::ConstantOp>(op)) {
      auto constant = std::make_unique<fbs::ConstantDataT>();
      constant->buffer = names.buffers.lookup(constantOp.getBuffer());
      constant->data = expand(cast<DenseElementsAttr>(constantOp.getValue()));
      plan.constants.push_back(std::move(constant));
    } else if (auto entryOp = dyn_cast<plan::EntryOp>(op)) {
      emitEntry(entryOp);
    } else if (auto coordinateOp = dyn_cast<plan::CoordinateOp>(op)) {
      auto coordinate = std::make_unique<fbs::CoordinateT>();
      coordinate->buffer = names.buffers.lookup(coordinateOp.getBuffer());
      if (failed(tables.findAxes(op, coordinateOp.getAxes(), coordinate->axes)))
        return failure();
      plan.coordinates.push_back(std::move(coordinate));
    }
    return success();
  }

  /// All elements as bytes; a splat stores one, and truth values are bits.
  static std::vector<uint8_t> expand(DenseElementsAttr elements) {
    if (elements.getElementType().isInteger(1)) {
      auto values = elements.getValues<bool>();
      return std::vector<uint8_t>(values.begin(), values.end());
    }
    ArrayRef<char> raw = elements.getRawData();
    std::vector<uint8_t> bytes;
    for (int64_t i = 0, count = elements.isSplat() ? elements.getNumElements() : 1; i < count; ++i)
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    return bytes;
  }

  /// Bytes of the role's arena in `space`.
  uint64_t &arenaOf(fbs::MemorySpace space) {
    for (const auto &other : plan.arenas)
      if (other->role == names.role && other->space == space)
        return other->bytes;
    return arena;
  }

  /// A second buffer like one that a port has, behind all others of the role.
  uint32_t appendLike(uint32_t first) {
    auto second = std::make_unique<fbs::BufferT>(*plan.buffers[first]);
    uint64_t &end = arenaOf(second->space);
    second->name += ".second";
    second->offset = llvm::alignTo(end, second->alignment);
    end = second->offset + second->bytes + (second->slots - 1) * second->slot_stride;
    plan.buffers.push_back(std::move(second));
    return plan.buffers.size() - 1;
  }

  void emitEntry(plan::EntryOp op) {
    auto entry = std::make_unique<fbs::EntryT>();
    entry->name = op.getSymName().str();
    entry->kind = static_cast<fbs::EntryKind>(op.getKind());
    entry->bucket = static_cast<uint32_t>(op.getBucket());
    entry->program = names.programs.lookup(op.getProgramAttr().getAttr());
    auto port = [&](Attribute name, Value buffer, int64_t limit) {
      auto result = std::make_unique<fbs::PortT>();
      result->name = cast<StringAttr>(name).str();
      result->buffer = names.buffers.lookup(buffer);
      result->limit = limit;
      return result;
    };
    for (auto [name, buffer, limit] : llvm::zip_equal(op.getInputNames(), op.getInputs(), op.getInputLimits()))
      entry->inputs.push_back(port(name, buffer, limit));
    for (auto [name, buffer] : llvm::zip_equal(op.getOutputNames(), op.getOutputs()))
      entry->outputs.push_back(port(name, buffer, 0));
    // The loader reports faults of these attributes.
    if (auto runs = op->getAttrOfType<IntegerAttr>(kInFlightAttr))
      entry->in_flight = static_cast<uint8_t>(std::clamp<int64_t>(runs.getInt(), 0, 3));
    if (auto feeds = op->getAttrOfType<DenseI64ArrayAttr>(kFeedsAttr))
      for (int64_t i = 0; i + 1 < feeds.size(); i += 2)
        entry->feeds.emplace_back(feeds[i], feeds[i + 1]);
    emitSequences(op, *entry);
    if (entry->in_flight == 2)
      for (auto *ports : {&entry->inputs, &entry->outputs})
        for (const auto &port : *ports)
          port->second = appendLike(port->buffer);
    if (op.getOrder() || op.getValues())
      emitCertificate(op, entry->name);
    plan.entries.push_back(std::move(entry));
  }

  /// A name that no input has becomes a number that the loader refuses.
  void emitSequences(plan::EntryOp op, fbs::EntryT &entry) {
    auto sequences = op->getAttrOfType<plan::SequencesAttr>(plan::PlanDialect::kSequencesAttr);
    if (!sequences)
      return;
    auto inputNamed = [&](StringRef name) {
      auto found = llvm::find_if(entry.inputs, [&](const auto &port) { return port->name == name; });
      return static_cast<uint32_t>(found - entry.inputs.begin());
    };
    entry.sequences = std::make_unique<fbs::SequencesT>();
    entry.sequences->rows = inputNamed(sequences.getRows());
    entry.sequences->lengths = inputNamed(sequences.getLengths());
    entry.sequences->blocks = inputNamed(sequences.getBlocks());
    entry.sequences->tokens = static_cast<uint32_t>(sequences.getTokens());
    entry.sequences->block_tokens = static_cast<uint32_t>(sequences.getBlockTokens());
    entry.sequences->block_count = static_cast<uint32_t>(sequences.getBlockCount());
  }

  /// The role's part of the entry's certificate. Whether it proves anything is for the loader to say.
  void emitCertificate(plan::EntryOp op, const std::string &entry) {
    auto found = llvm::find_if(plan.certificates, [&](const auto &certificate) { return certificate->entry == entry; });
    if (found == plan.certificates.end()) {
      plan.certificates.push_back(std::make_unique<fbs::CertificateT>());
      found = std::prev(plan.certificates.end());
      (*found)->entry = entry;
    }
    while ((*found)->roles.size() <= names.role)
      (*found)->roles.push_back(std::make_unique<fbs::RoleOrderT>());
    fbs::RoleOrderT &part = *(*found)->roles[names.role];
    const ArrayRef<int64_t> numbers = op.getOrder().value_or(ArrayRef<int64_t>());
    part.numbers.assign(numbers.begin(), numbers.end());
    const ArrayRef<int64_t> halves = op.getValues().value_or(ArrayRef<int64_t>());
    for (size_t i = 0; i + 1 < halves.size(); i += 2)
      part.values.emplace_back(static_cast<uint64_t>(halves[i]), static_cast<uint64_t>(halves[i + 1]));
  }

  ModuleOp module;
  fbs::PlanT &plan;
  PlanTables &tables;
  RoleNames names;
  uint64_t arena = 0;         ///< bytes in space Device, of the module's buffers and of those added behind them
  const uint32_t firstKernel; ///< that is of no earlier role
  std::optional<uint32_t> imageIndex;
};

} // namespace

FailureOr<uint64_t> bowline::emitRole(ModuleOp module, uint16_t role, fbs::PlanT &plan, PlanTables &tables) {
  return RoleEmitter(module, role, plan, tables).run();
}
