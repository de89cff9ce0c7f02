//===- PlanProgram.cpp - Programs of commands, seen from outside
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/PlanProgram.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;

static plan::BufferOp definition(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>(); }

bool PlanProgram::matches(ModuleOp module) {
  return llvm::any_of(module.getOps<ModuleOp>(), [](ModuleOp role) { return !role.getOps<plan::ProgramOp>().empty(); });
}

FailureOr<std::unique_ptr<RunnableProgram>>
PlanProgram::create(OwningOpRef<ModuleOp> module, const KernelBodies &bodies, const graph::Arithmetic &arithmetic) {
  std::unique_ptr<PlanProgram> program(new PlanProgram(std::move(module), bodies, arithmetic));
  if (failed(program->interpreter.load()))
    return failure();
  return std::unique_ptr<RunnableProgram>(std::move(program));
}

PlanProgram::PlanProgram(OwningOpRef<ModuleOp> owned, const KernelBodies &bodies, const graph::Arithmetic &arithmetic)
    : RunnableProgram(std::move(owned)), interpreter(*module, bodies, arithmetic) {
  StringAttr axis = stage::axisOf(*module);
  for (auto role : module->getOps<ModuleOp>()) {
    RankGrid grid(dist::MeshOp::of(role), axis ? axis.getValue() : StringRef());
    addStates(role, grid);
    addEntries(role, grid);
    totalWork += workOfEntries(role) * static_cast<double>(grid.count());
  }
}

/// Whether commands of the entry of kind init use the buffer, which they do to set it.
static bool isInitialised(ModuleOp role, Value buffer) {
  for (auto entry : role.getOps<plan::EntryOp>())
    if (entry.getKind() == EntryKind::Init)
      return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
        auto program = user->getParentOfType<plan::ProgramOp>();
        return program && program.getSymName() == entry.getProgram();
      });
  return false;
}

void PlanProgram::addStates(ModuleOp role, const RankGrid &grid) {
  for (auto state : role.getOps<plan::StateOp>()) {
    plan::BufferOp buffer = definition(state.getBuffer());
    if (findVariable(buffer.getName()))
      continue;
    Variable variable;
    variable.name = buffer.getName().str();
    variable.flags = state.getFlags();
    variable.isInitialised = isInitialised(role, state.getBuffer());
    dist::Layout layout = PlanInterpreter::layoutOf(buffer, grid);
    variable.shape.assign(layout.global.begin(), layout.global.end());
    variable.element = buffer.getTensorType().getElementType();
    variable.data = checkedDataOf(role, state.getBuffer());
    restrictBytes(variable);
    if (state.has(StateFlags::Mirror))
      for (auto other : module->getOps<ModuleOp>())
        for (auto owner : other.getOps<plan::StateOp>())
          if (!owner.has(StateFlags::Mirror) && owner.getKey() == state.getKey())
            variable.mirrorOf = definition(owner.getBuffer()).getName().str();
    allVariables.push_back(std::move(variable));
  }
}

void PlanProgram::addEntries(ModuleOp role, const RankGrid &grid) {
  for (auto entry : role.getOps<plan::EntryOp>()) {
    if (entry.getKind() == EntryKind::Init) {
      initialises = true;
      initEntry = entry.getName().str();
      continue;
    }
    if (entry.getKind() == EntryKind::Prepare)
      continue; // the interpreter runs it before others
    // Each role has the inputs that its ranks use, and the same outputs as all.
    Callable &callable = callableOf(entry.getName());
    for (auto [name, limit, value] :
         llvm::zip_equal(entry.getInputNames().getAsRange<StringAttr>(), entry.getInputLimits(), entry.getInputs())) {
      CheckedData data = checkedDataOf(role, value);
      if (limit > 0)
        data.restrict({limit, std::nullopt});
      auto known = llvm::find_if(callable.inputs, [&](const Input &input) { return input.name == name.getValue(); });
      if (known != callable.inputs.end()) {
        known->data.restrict(data);
        continue;
      }
      plan::BufferOp buffer = definition(value);
      dist::Layout layout = PlanInterpreter::layoutOf(buffer, grid);
      Input input;
      input.name = name.getValue().str();
      input.shape.assign(layout.global.begin(), layout.global.end());
      input.data = data;
      input.microbatches = static_cast<int64_t>(buffer.getSlots());
      if (buffer.getSlots() > 1)
        input.shape.insert(input.shape.begin(), static_cast<int64_t>(buffer.getSlots()));
      input.element = buffer.getTensorType().getElementType();
      input.sequences = sequenceInputOf(entry, input.name, [&](StringRef wanted) -> RankedTensorType {
        for (auto [other, value] : llvm::zip_equal(entry.getInputNames().getAsRange<StringAttr>(), entry.getInputs()))
          if (other.getValue() == wanted)
            return definition(value).getTensorType();
        return {};
      });
      callable.inputs.push_back(std::move(input));
    }
    callable.results.clear();
    for (auto name : entry.getOutputNames().getAsRange<StringAttr>())
      callable.results.push_back(name.getValue().str());
  }
}

RunnableProgram::Callable &PlanProgram::callableOf(StringRef entry) {
  auto known = llvm::find_if(allCallables, [&](const Callable &callable) { return callable.name == entry; });
  return known == allCallables.end() ? allCallables.emplace_back(Callable{entry.str(), true, false, {}, {}, {}})
                                     : *known;
}

double PlanProgram::workOfEntries(ModuleOp role) {
  SymbolTable symbols(role);
  double work = 0;
  for (auto entry : role.getOps<plan::EntryOp>()) {
    auto program = symbols.lookup<plan::ProgramOp>(entry.getProgram());
    std::vector<double> segments;
    for (auto segment : program.getBody().front().getOps<plan::SegmentOp>()) {
      double &own = segments.emplace_back(0);
      for (Operation &command : segment.getBody().front()) {
        if (auto launch = dyn_cast<plan::LaunchOp>(command))
          own += symbols.lookup<plan::KernelOp>(launch.getKernel()).getFlops().convertToDouble();
        for (Value buffer : command.getOperands())
          own += static_cast<double>(definition(buffer).getTensorType().getNumElements());
      }
    }
    ArrayRef<int64_t> timeline = program.getTimeline();
    for (size_t call = 0; call + 1 < timeline.size(); call += 2)
      work += segments[timeline[call]];
  }
  return work;
}

LogicalResult PlanProgram::runInit() { return failure(failed(interpreter.run(initEntry, {}))); }
