//===- NpyFile.cpp - Tensors in NumPy's .npy files
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Support/NpyFile.h"
#include "runtime/base/npy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;
using namespace bowline;
using graph::HostTensor;
namespace endian = llvm::support::endian;

/// Element types that HostTensor holds exactly.
static constexpr ElementType kSupported[] = {ElementType::kF32, ElementType::kF64, ElementType::kI32,
                                             ElementType::kI64};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static double loadElement(ElementType type, const uint8_t *bytes) {
  switch (type) {
  case ElementType::kF32:
    return bit_cast<float>(endian::read32le(bytes));
  case ElementType::kF64:
    return bit_cast<double>(endian::read64le(bytes));
  case ElementType::kI32:
    return static_cast<int32_t>(endian::read32le(bytes));
  case ElementType::kI64:
    return static_cast<double>(static_cast<int64_t>(endian::read64le(bytes)));
  default:
    llvm_unreachable("not supported");
  }
}

Expected<NpyArray> bowline::parseNpyTensor(StringRef bytes, StringRef name) {
  absl::StatusOr<NpyView> view = ParseNpy({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
                                          absl::string_view(name.data(), name.size()), kSupported);
  if (!view.ok())
    return createStringError(std::string(view.status().message()));
  NpyArray array{view->type, HostTensor(std::move(view->shape))};
  for (auto [i, element] : enumerate(array.tensor.data)) {
    element = loadElement(view->type, view->data.data() + i * SizeOf(view->type));
    if (view->type == ElementType::kI64 && !(std::fabs(element) <= 0x1p53))
      return createStringError("'" + name + "': element " + Twine(i) + " is beyond 2^53 and cannot be held exactly");
  }
  return array;
}

Expected<NpyArray> bowline::readNpyFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("'" + path + "': cannot be read: " + buffer.getError().message());
  return parseNpyTensor((*buffer)->getBuffer(), path);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static void storeElement(ElementType type, double value, raw_ostream &os) {
  char bytes[8];
  switch (type) {
  case ElementType::kF32:
    endian::write32le(bytes, bit_cast<uint32_t>(static_cast<float>(value)));
    break;
  case ElementType::kF64:
    endian::write64le(bytes, bit_cast<uint64_t>(value));
    break;
  case ElementType::kI32:
    endian::write32le(bytes, static_cast<uint32_t>(static_cast<int32_t>(value)));
    break;
  case ElementType::kI64:
    endian::write64le(bytes, static_cast<uint64_t>(static_cast<int64_t>(value)));
    break;
  default:
    llvm_unreachable("not supported");
  }
  os << StringRef(bytes, SizeOf(type));
}

std::string bowline::formatNpy(const NpyArray &array) {
  std::string_view descr = InfoOf(array.type).npy;
  std::string header;
  raw_string_ostream headerStream(header);
  headerStream << "{'descr': '" << StringRef(descr) << "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.tensor.shape)
    headerStream << size << ",";
  headerStream << "), }";
  // The data begins at a multiple of 64 bytes and the header ends with a newline. In front of it: magic, version,
  // length.
  constexpr StringLiteral kMagic("\x93NUMPY");
  constexpr size_t kVersionEnd = kMagic.size() + 2;
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
