//===- PlanVerifiers.cpp - Rules that every plan operation must satisfy
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Rules on single operations. The checker proves rules on a whole plan (bounds, races, initialisation) on the plan
// file, whichever compiler wrote it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "dialects/Program/ElementTypes.h"
#include "dialects/Program/ValidRows.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::plan;

int64_t bowline::plan::byteCount(RankedTensorType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

//===----------------------------------------------------------------------===//
// Attributes of modules
//===----------------------------------------------------------------------===//

/// The words for the value that an attribute of a module must have; empty where the value is right or may be any.
static StringRef mustBe(NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == PlanDialect::kTargetAttr)
    return isa<TargetAttr>(value) ? "" : "a #plan.target";
  if (name == PlanDialect::kCompilerAttr)
    return isa<StringAttr>(value) ? "" : "a string";
  if (name == PlanDialect::kSequencesAttr)
    return isa<SequencesAttr>(value) ? "" : "a #plan.sequences";
  bool isBytes = name == PlanDialect::kArenaBytesAttr || name == PlanDialect::kLiveBytesAttr;
  if (name != PlanDialect::kSeedAttr && !isBytes)
    return "";
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number || !number.getType().isInteger(64))
    return "an i64";
  return isBytes && number.getInt() < 0 ? "an i64 from 0 on" : "";
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (StringRef wanted = mustBe(attribute); !wanted.empty())
    return op->emitOpError("has ") << attribute.getName() << " = " << attribute.getValue() << "; it must be " << wanted;
  return success();
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor) {
  if (!tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return emitError() << "a buffer holds a tensor of static shape with integer or floating-point elements, got "
                       << tensor;
  return verifyPlanElements(emitError, tensor.getElementType());
}

int64_t BufferType::getBytes() const { return byteCount(getTensor()); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

static BufferOp definition(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }

static LogicalResult verifyView(BufferOp op) {
  if (!op.getViewed()) {
    if (op.getViewStride() == 0 && !op.getViewAxes())
      return success();
    return op.emitOpError("lies by rank, but is no view");
  }
  BufferOp viewed = definition(op.getViewed());
  if (!viewed || viewed.getViewed() || viewed.getKind() != BufferKind::Temporary ||
      op.getKind() != BufferKind::Temporary)
    return op.emitOpError("is a view, but only a temporary may be one, of a temporary that is no view");
  if (viewed.getSpace() != op.getSpace() || viewed.getSlots() != op.getSlots() ||
      viewed.getStride() != op.getStride() ||
      viewed.getTensorType().getElementType() != op.getTensorType().getElementType())
    return op.emitOpError("must have the element type, memory space, slots and stride of the buffer that it views");
  bool hasAxes = op.getViewAxes() && !op.getViewAxes()->empty();
  auto stride = static_cast<int64_t>(op.getViewStride());
  if (hasAxes ? stride < op.getBytes() : stride != 0)
    return op.emitOpError("lies ") << stride << " bytes further on for each rank; the least is " << op.getBytes()
                                   << " over axes, and 0 without";
  return success();
}

LogicalResult BufferOp::verify() {
  if (getName().empty())
    return emitOpError("needs a name");
  auto alignment = static_cast<int64_t>(getAlignment());
  if (!isAlignment(alignment))
    return emitOpError("alignment ") << alignment << " is no power of two up to " << kMaxAlignment;
  if (std::optional<uint64_t> offset = getOffset())
    if (static_cast<int64_t>(*offset) < 0 || *offset % alignment != 0)
      return emitOpError("offset ") << static_cast<int64_t>(*offset) << " is not a multiple of " << alignment;
  auto slots = static_cast<int64_t>(getSlots()), stride = static_cast<int64_t>(getStride());
  if (slots < 1)
    return emitOpError("needs at least one slot");
  if (slots == 1 && stride != 0)
    return emitOpError("has one slot, so that its stride must be 0, got ") << stride;
  if (slots > 1 && (stride % alignment != 0 || stride < getBytes()))
    return emitOpError("stride ") << stride << " of its slots must be a multiple of " << alignment
                                  << " and at least the size " << getBytes();
  if (getSpace() == MemorySpace::External && (getKind() != BufferKind::Parameter || slots != 1))
    return emitOpError("is external, which only a parameter with one slot may be");
  return verifyView(*this);
}

LogicalResult StateOp::verify() {
  BufferOp buffer = definition(getBuffer());
  BufferKind needed = has(StateFlags::Weight) ? BufferKind::Parameter : BufferKind::State;
  if (!buffer || buffer.getKind() != needed)
    return emitOpError("key ") << getKeyAttr() << " must name a buffer that is a " << stringifyBufferKind(needed)
                               << ", as " << (needed == BufferKind::Parameter ? "weights" : "states other than weights")
                               << " must be";
  return verifyFlags(*this, getFlags());
}

LogicalResult ConstantOp::verify() {
  BufferOp buffer = definition(getBuffer());
  if (!buffer || buffer.getKind() != BufferKind::Constant)
    return emitOpError("must fill a constant buffer");
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError("content must be written out as 'dense<...>'");
  if (getValue().getType() != buffer.getTensorType())
    return emitOpError("content of type ")
           << getValue().getType() << " does not fit the buffer's type " << buffer.getTensorType();
  return success();
}

LogicalResult CoordinateOp::verify() {
  BufferOp buffer = definition(getBuffer());
  if (!buffer || buffer.getKind() != BufferKind::Constant || buffer.getBytes() != 4 ||
      !buffer.getTensorType().getElementType().isSignlessInteger(32))
    return emitOpError("must fill a constant buffer of one i32");
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static bool reads(ArgumentAttr argument) { return argument.getAccess() != Access::Write; }
static bool writes(ArgumentAttr argument) { return argument.getAccess() != Access::Read; }

bool KernelOp::hasScratch() {
  return getRegistered() && getNumArguments() > 0 &&
         getArgument(getNumArguments() - 1).getType().getElementType().isUnsignedInteger(8);
}

LogicalResult ImageOp::verify() {
  if (getContracts().has_value() != getHash().has_value())
    return emitOpError("has only one of 'contracts' and 'hash'; give both or neither");
  if (!getContracts())
    return success();
  if (getContracts()->size() % 2 != 0)
    return emitOpError("must have contracts of two integers each");
  if (getHash()->size() != 64 || !llvm::all_of(*getHash(), llvm::isHexDigit))
    return emitOpError("has the hash '") << *getHash() << "'; it must be 64 hexadecimal digits";
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody() && getSymbol())
    return emitOpError("has both a 'body' and a 'symbol': code generation replaces the one by the other");
  if (!getRegistered() && !getBody() && !getSymbol())
    return emitOpError("must have one of: 'registered', 'body', 'symbol'");
  bool isWhole = getSymbol().has_value() && !getRegistered();
  if (getExtent().has_value() && getGrid().has_value())
    return emitOpError("has both an extent and a grid: one says how it is launched");
  if ((getExtent().has_value() || getGrid().has_value()) != isWhole)
    return emitOpError("has an extent or a grid exactly where its symbol is the whole kernel");
  if (getGrid() && (getGrid()->size() < 2 || (*getGrid())[0] < 1 || (*getGrid())[1] < 1 ||
                    (*getGrid())[0] > INT32_MAX || (*getGrid())[1] > 1024))
    return emitOpError("a grid is [blocks, threads]: 1 to 2^31 - 1 blocks of 1 to 1024 threads; then constants");
  if (failed(verifyValidRows()))
    return failure();
  if (getInPlace().size() % 2 != 0)
    return emitOpError("'in_place' holds pairs (output, input)");
  for (size_t i = 0; i < getInPlace().size(); i += 2) {
    int64_t output = getInPlace()[i], input = getInPlace()[i + 1], count = getNumArguments();
    if (output < 0 || output >= count || input < 0 || input >= count || !writes(getArgument(output)) ||
        !reads(getArgument(input)))
      return emitOpError("in-place pair (") << output << ", " << input << ") must name a written and a read argument";
    if (byteCount(getArgument(output).getType()) != byteCount(getArgument(input).getType()))
      return emitOpError("in-place pair (") << output << ", " << input << ") must have equal sizes";
  }
  return verifyDependences();
}

LogicalResult KernelOp::verifyDependences() {
  if (!getDependencesAttr())
    return success();
  if (!getSymbol())
    return emitOpError("has 'depends', which is for kernels with code");
  llvm::SmallDenseSet<int64_t> outputs;
  auto accesses = [&](int64_t argument, bool (*mode)(ArgumentAttr)) {
    return argument >= 0 && argument < static_cast<int64_t>(getNumArguments()) &&
           mode(getArgument(static_cast<unsigned>(argument)));
  };
  for (auto list : getDependencesAttr().getAsRange<DenseI64ArrayAttr>()) {
    ArrayRef<int64_t> arguments = list.asArrayRef();
    if (arguments.empty() || !accesses(arguments.front(), writes) || !outputs.insert(arguments.front()).second)
      return emitOpError(
          "'depends' has a list that does not begin with a written argument, or one that is there twice");
    for (int64_t input : arguments.drop_front())
      if (!accesses(input, reads))
        return emitOpError("'depends' names argument ") << input << ", which is not read";
  }
  return success();
}

LogicalResult KernelOp::verifyValidRows() {
  if (!getValidRows())
    return success();
  ArrayRef<int64_t> numbers = *getValidRows();
  if (getRegistered())
    return emitOpError("is registered, so that the registry knows which rows it leaves out");
  for (auto [i, number] : llvm::enumerate(numbers))
    if (number < 0 || number >= static_cast<int64_t>(getNumArguments()) ||
        llvm::is_contained(numbers.take_front(i), number))
      return emitOpError("names argument ") << number << " in 'rows', which it does not have or names twice";
  if (numbers.size() < 2)
    return emitOpError("needs a count and an argument in 'rows'");
  ArgumentAttr count = getArgument(numbers.front());
  if (count.getAccess() != Access::Read || count.getType().getRank() != 1 ||
      !count.getType().getElementType().isSignlessInteger(32))
    return emitOpError("takes argument ") << numbers.front() << " for a count of rows, which is not read as i32 with "
                                          << "one dimension";
  RankedTensorType first = getArgument(numbers[1]).getType();
  for (int64_t number : numbers.drop_front()) {
    RankedTensorType type = getArgument(number).getType();
    if (type.getRank() == 0 || type.getDimSize(0) != first.getDimSize(0))
      return emitOpError("has arguments of ") << first << " and of " << type << " in 'rows', which have other rows";
  }
  SmallVector<Type> written;
  for (unsigned index = 0; index < getNumArguments(); ++index) {
    if (!writes(getArgument(index)))
      continue;
    if (!llvm::is_contained(numbers.drop_front(), index))
      return emitOpError("writes argument ") << index << ", which is not among those in 'rows'";
    written.push_back(getArgument(index).getType());
  }
  if (getBody() && !haveRowsToLeaveOut(written))
    return emitOpError(kRowsToLeaveOut);
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("no plan.kernel is named ") << getKernelAttr();
  SmallVector<RankedTensorType> expectedOperands, expectedResults;
  unsigned valueArguments = kernel.getNumArguments() - kernel.hasScratch();
  for (unsigned index = 0; index < valueArguments; ++index) {
    ArgumentAttr argument = kernel.getArgument(index);
    if (reads(argument))
      expectedOperands.push_back(argument.getType());
    if (writes(argument))
      expectedResults.push_back(argument.getType());
  }
  auto fits = [](TypeRange types, ArrayRef<RankedTensorType> expected) {
    return llvm::equal(types, expected, [](Type type, RankedTensorType wanted) {
      auto tensor = cast<RankedTensorType>(type);
      return tensor.getElementType() == wanted.getElementType() && tensor.getNumElements() == wanted.getNumElements();
    });
  };
  if (!fits(getOperandTypes(), expectedOperands))
    return emitOpError("operands do not have the types of the arguments that ") << getKernelAttr() << " reads";
  if (!fits(getResultTypes(), expectedResults))
    return emitOpError("results do not have the types of the arguments that ") << getKernelAttr() << " writes";
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  auto segments = llvm::to_vector(getBody().front().getOps<SegmentOp>());
  if (segments.size() != getBody().front().getOperations().size())
    return emitOpError("may hold segments only");
  if (getTimeline().size() % 2 != 0)
    return emitOpError("the timeline holds pairs (segment, slot)");
  auto streams = static_cast<int64_t>(getStreams().size());
  for (SegmentOp segment : segments)
    for (auto command : segment.getBody().front().getOps<Command>())
      if (command.getStreamIndex() < 0 || command.getStreamIndex() >= streams)
        return command->emitOpError("is on stream ")
               << command.getStreamIndex() << ", but the program has " << streams << " streams";
  for (size_t i = 0; i < getTimeline().size(); i += 2)
    if (getTimeline()[i] < 0 || getTimeline()[i] >= static_cast<int64_t>(segments.size()) || getTimeline()[i + 1] < 0)
      return emitOpError("timeline call ") << i / 2 << " names segment " << getTimeline()[i] << ", slot "
                                           << getTimeline()[i + 1] << ", of " << segments.size() << " segments";
  return success();
}

LogicalResult SegmentOp::verify() {
  for (Operation &op : getBody().front())
    if (!isa<Command>(op))
      return op.emitOpError("is no command; a plan.segment holds commands only, such as plan.launch and plan.copy");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("no plan.kernel is named ") << getKernelAttr();
  if (kernel.getNumArguments() != getOperands().size())
    return emitOpError("gives ") << getOperands().size() << " buffers to " << getKernelAttr() << ", which has "
                                 << kernel.getNumArguments() << " arguments";
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    RankedTensorType wanted = kernel.getArgument(index).getType();
    RankedTensorType given = cast<BufferType>(operand.getType()).getTensor();
    if (given.getElementType() != wanted.getElementType() || byteCount(given) != byteCount(wanted))
      return emitOpError("argument ") << index << " of " << getKernelAttr() << " is " << wanted << ", got " << given;
  }
  return success();
}

LogicalResult CopyOp::verify() {
  if (getSource().getType().getBytes() != getDestination().getType().getBytes())
    return emitOpError("source and destination differ in size");
  auto isPinned = [](BufferOp buffer) { return buffer && buffer.getSpace() == MemorySpace::PinnedHost; };
  if (isPinned(definition(getSource())) && isPinned(definition(getDestination())))
    return emitOpError("copies within memory of the host, which no engine of a device does");
  return success();
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// The communicator's op; null, with a diagnostic, where there is none.
static CommunicatorOp findCommunicator(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  auto communicator = symbols.lookupNearestSymbolFrom<CommunicatorOp>(op, name);
  if (!communicator)
    op->emitOpError("no plan.communicator is named ") << name;
  return communicator;
}

/// An upper bound of the ranks in a group. Their number is in the mesh, which a single operation does not see.
static constexpr uint64_t kMostMembers = uint64_t{1} << 32;

static RankedTensorType tensorOf(Value buffer) { return cast<BufferType>(buffer.getType()).getTensor(); }

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findCommunicator(*this, getCommunicatorAttr(), symbols))
    return failure();
  if (getSources().empty() || getSources().size() != getDestinations().size())
    return emitOpError("has ") << getSources().size() << " sources and " << getDestinations().size()
                               << " destinations; it needs one destination per source";
  const collectives::Definition &definition = getDefinition();
  if (getParameter() < definition.LeastParameter() || getParameter() > definition.MostParameter(kMostMembers))
    return emitOpError("has no ") << collectives::WordsOf(definition.parameter).name << " " << getParameter();
  for (auto [source, destination] : llvm::zip_equal(getSources(), getDestinations())) {
    RankedTensorType from = tensorOf(source), to = tensorOf(destination);
    if (from.getElementType() != to.getElementType() ||
        from.getElementType() != tensorOf(getSources().front()).getElementType())
      return emitOpError("moves elements of one type; got ") << from << " and " << to;
    int64_t more = from.getNumElements(), less = to.getNumElements();
    if (definition.gathers && !definition.scatters)
      std::swap(more, less);
    bool equal = definition.gathers == definition.scatters;
    if (less == 0 || more % less != 0 || (equal && more != less))
      return emitOpError("cannot make ") << to << " of " << from;
    if (source == destination && !definition.in_place)
      return emitOpError("source and destination are the same buffer, which only an all_reduce allows");
  }
  return success();
}

template <typename OpTy> static LogicalResult verifyTransfer(OpTy op, SymbolTableCollection &symbols) {
  if (!findCommunicator(op, op.getCommunicatorAttr(), symbols))
    return failure();
  if (static_cast<int64_t>(op.getPeer()) < 0)
    return op.emitOpError("peer ") << static_cast<int64_t>(op.getPeer()) << " is negative";
  if (op.getBuffers().empty())
    return op.emitOpError("needs at least one buffer");
  for (Value buffer : op.getBuffers())
    if (tensorOf(buffer).getElementType() != tensorOf(op.getBuffers().front()).getElementType())
      return op.emitOpError("moves elements of one type");
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyTransfer(*this, symbols); }
LogicalResult ReceiveOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyTransfer(*this, symbols); }

static LogicalResult verifyEvent(Operation *op, uint64_t event, uint64_t slots) {
  if (static_cast<int64_t>(slots) < 1)
    return op->emitOpError("needs at least one slot");
  if (static_cast<int64_t>(event) < 0)
    return op->emitOpError("event ") << static_cast<int64_t>(event) << " is negative";
  return success();
}

LogicalResult SignalOp::verify() { return verifyEvent(*this, getEvent(), getSlots()); }
LogicalResult WaitOp::verify() { return verifyEvent(*this, getEvent(), getSlots()); }

LogicalResult EntryOp::verify() {
  if (getInputNames().size() != getInputs().size() || getOutputNames().size() != getOutputs().size())
    return emitOpError("needs one name per input and per output");
  if (getInputLimits().size() != getInputs().size())
    return emitOpError("needs one limit per input");
  for (int64_t number : getOrder().value_or(ArrayRef<int64_t>()))
    if (!llvm::isUInt<32>(number))
      return emitOpError("number ") << number << " in 'order' has more than 32 bits or a sign";
  if (failed(verifyBucket(*this, getKind(), static_cast<int64_t>(getBucket()))))
    return failure();
  const size_t halves = getValues().value_or(ArrayRef<int64_t>()).size();
  if (halves % 2 != 0)
    return emitOpError("has ") << halves << " numbers in 'values'; a digest is two of them";
  return success();
}

LogicalResult EntryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyOnlyOfItsKind(*this)))
    return failure();
  if (!symbols.lookupNearestSymbolFrom<ProgramOp>(*this, getProgramAttr()))
    return emitOpError("no plan.program is named ") << getProgramAttr();
  return success();
}
