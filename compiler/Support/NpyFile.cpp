//===- NpyFile.cpp - Tensors in NumPy's .npy files
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Support/NpyFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <optional>

using namespace llvm;
using namespace bowline;
using graph::HostTensor;
namespace endian = llvm::support::endian;

static constexpr StringLiteral kMagic("\x93NUMPY");
/// Magic, major and minor version.
static constexpr size_t kVersionEnd = 8;

static size_t sizeOf(NpyType type) { return type == NpyType::F32 || type == NpyType::I32 ? 4 : 8; }

static StringRef descrOf(NpyType type) {
  static constexpr StringLiteral kNames[] = {"<f4", "<f8", "<i4", "<i8"};
  return kNames[static_cast<size_t>(type)];
}

static std::optional<NpyType> typeOf(StringRef descr) {
  return StringSwitch<std::optional<NpyType>>(descr)
      .Case("<f4", NpyType::F32)
      .Case("<f8", NpyType::F64)
      .Case("<i4", NpyType::I32)
      .Case("<i8", NpyType::I64)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
struct Header {
  StringRef descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Parses the Python dictionary `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. Every method returns
/// false where the text is something else.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  bool parse(Header &header) {
    if (!consume("{"))
      return false;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    while (!consume("}")) {
      StringRef key;
      if (!parseString(key) || !consume(":"))
        return false;
      bool *seen = StringSwitch<bool *>(key)
                       .Case("descr", &hasDescr)
                       .Case("fortran_order", &hasOrder)
                       .Case("shape", &hasShape)
                       .Default(nullptr);
      if (!seen || *seen)
        return false;
      *seen = key == "descr"           ? parseString(header.descr)
              : key == "fortran_order" ? parseBool(header.fortranOrder)
                                       : parseShape(header.shape);
      if (!*seen)
        return false;
      if (consume(","))
        continue;
      if (!consume("}"))
        return false;
      break;
    }
    return hasDescr && hasOrder && hasShape && rest.trim().empty();
  }

private:
  bool consume(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }

  bool parseString(StringRef &value) {
    rest = rest.ltrim();
    if (rest.empty() || (rest.front() != '\'' && rest.front() != '"'))
      return false;
    size_t end = rest.find(rest.front(), 1);
    if (end == StringRef::npos)
      return false;
    value = rest.slice(1, end);
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool parseBool(bool &value) {
    value = consume("True");
    return value || consume("False");
  }

  bool parseShape(std::vector<int64_t> &shape) {
    if (!consume("("))
      return false;
    while (!consume(")")) {
      rest = rest.ltrim();
      uint64_t size;
      if (rest.consumeInteger(10, size) || !isUInt<53>(size))
        return false;
      shape.push_back(static_cast<int64_t>(size));
      if (!consume(","))
        return consume(")");
    }
    return true;
  }

  StringRef rest;
};
} // namespace

static double loadElement(NpyType type, const char *bytes) {
  switch (type) {
  case NpyType::F32:
    return bit_cast<float>(endian::read32le(bytes));
  case NpyType::F64:
    return bit_cast<double>(endian::read64le(bytes));
  case NpyType::I32:
    return static_cast<int32_t>(endian::read32le(bytes));
  case NpyType::I64:
    return static_cast<double>(static_cast<int64_t>(endian::read64le(bytes)));
  }
  llvm_unreachable("unknown type");
}

Expected<NpyArray> bowline::parseNpy(StringRef bytes, StringRef name) {
  auto error = [&](const Twine &what) { return createStringError("'" + name + "': " + what); };
  if (!bytes.starts_with(kMagic))
    return error("not a .npy file; save the array with numpy.save");
  if (bytes.size() < kVersionEnd)
    return error("the .npy file ends before its version; make it again");
  unsigned major = static_cast<uint8_t>(bytes[6]);
  if (major != 1 && major != 2)
    return error(".npy format version " + Twine(major) + " is not supported; save it in version 1 or 2");
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (bytes.size() < kVersionEnd + lengthBytes)
    return error("the .npy file ends before its header; make it again");
  const char *lengthAt = bytes.data() + kVersionEnd;
  uint64_t headerBytes = major == 1 ? endian::read16le(lengthAt) : endian::read32le(lengthAt);
  StringRef rest = bytes.drop_front(kVersionEnd + lengthBytes);
  if (rest.size() < headerBytes)
    return error("the .npy header of " + Twine(headerBytes) + " bytes runs beyond the end of the file; make it again");

  Header header;
  if (!HeaderParser(rest.take_front(headerBytes)).parse(header))
    return error("the .npy header is not a dictionary of descr, fortran_order and shape");
  std::optional<NpyType> type = typeOf(header.descr);
  if (!type)
    return error(".npy array of type '" + header.descr.take_front(32) +
                 "'; supported are '<f4', '<f8', '<i4' and '<i8', convert it with astype");
  if (header.fortranOrder)
    return error(".npy array in Fortran order; save it in C order (numpy.ascontiguousarray)");

  StringRef data = rest.drop_front(headerBytes);
  uint64_t count = 1;
  bool overflowed = false;
  for (int64_t size : header.shape) {
    bool overflowedHere;
    count = SaturatingMultiply<uint64_t>(count, static_cast<uint64_t>(size), &overflowedHere);
    overflowed |= overflowedHere;
  }
  if (overflowed || count != data.size() / sizeOf(*type) || data.size() % sizeOf(*type) != 0)
    return error("the .npy header promises " + (overflowed ? Twine("too many") : Twine(count)) + " elements of " +
                 Twine(sizeOf(*type)) + " bytes but " + Twine(data.size()) + " bytes follow it; make it again");

  NpyArray array{*type, HostTensor(std::move(header.shape))};
  for (auto [i, element] : enumerate(array.tensor.data)) {
    element = loadElement(*type, data.data() + i * sizeOf(*type));
    if (*type == NpyType::I64 && !(std::fabs(element) <= 0x1p53))
      return error("element " + Twine(i) + " is beyond 2^53 and cannot be held exactly");
  }
  return array;
}

Expected<NpyArray> bowline::readNpyFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("'" + path + "': cannot be read: " + buffer.getError().message());
  return parseNpy((*buffer)->getBuffer(), path);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static void storeElement(NpyType type, double value, raw_ostream &os) {
  char bytes[8];
  switch (type) {
  case NpyType::F32:
    endian::write32le(bytes, bit_cast<uint32_t>(static_cast<float>(value)));
    break;
  case NpyType::F64:
    endian::write64le(bytes, bit_cast<uint64_t>(value));
    break;
  case NpyType::I32:
    endian::write32le(bytes, static_cast<uint32_t>(static_cast<int32_t>(value)));
    break;
  case NpyType::I64:
    endian::write64le(bytes, static_cast<uint64_t>(static_cast<int64_t>(value)));
    break;
  }
  os << StringRef(bytes, sizeOf(type));
}

std::string bowline::formatNpy(const NpyArray &array) {
  std::string header;
  raw_string_ostream headerStream(header);
  headerStream << "{'descr': '" << descrOf(array.type) << "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.tensor.shape)
    headerStream << size << ",";
  headerStream << "), }";
  // The data begins at a multiple of 64 bytes and the header ends with a newline.
  size_t version1Prefix = kVersionEnd + 2;
  bool isVersion2 = version1Prefix + header.size() + 64 > UINT16_MAX;
  size_t prefix = isVersion2 ? kVersionEnd + 4 : version1Prefix;
  header.resize(alignTo(prefix + header.size() + 1, 64) - prefix - 1, ' ');
  header += '\n';

  std::string file;
  raw_string_ostream os(file);
  os << kMagic << static_cast<char>(isVersion2 ? 2 : 1) << '\0';
  char length[4];
  endian::write32le(length, static_cast<uint32_t>(header.size()));
  os << StringRef(length, prefix - kVersionEnd) << header;
  for (double value : array.tensor.data)
    storeElement(array.type, value, os);
  return file;
}

Error bowline::writeNpyFile(StringRef path, const NpyArray &array) {
  return writeToOutput(path, [&](raw_ostream &os) -> Error {
    os << formatNpy(array);
    return Error::success();
  });
}
