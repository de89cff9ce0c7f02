//===- NpyFileTest.cpp - Tensors in NumPy's .npy files
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Support/NpyFile.h"
#include "test/Unit/Interp/OpHarness.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace bowline;
using namespace bowline::test;

/// A version 1 file with this dictionary and these bytes of data.
static std::string fileWith(llvm::StringRef dictionary, llvm::StringRef data) {
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(dictionary.size() & 0xff);
  file += static_cast<char>(dictionary.size() >> 8);
  return file + dictionary.str() + data.str();
}

static std::string errorOf(llvm::StringRef bytes) {
  llvm::Expected<NpyArray> array = parseNpyTensor(bytes, "x.npy");
  return array ? "" : llvm::toString(array.takeError());
}

TEST(NpyFile, RoundTrip) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kI32, ElementType::kI64})
    for (int64_t rank : {0, 1, 3}) {
      Shape shape = random.shape(rank);
      HostTensor tensor = isFloat(type) ? random.reals(shape) : random.integers(shape, -1000, 1000);
      if (type == ElementType::kF32)
        for (double &value : tensor.data)
          value = static_cast<float>(value);
      std::string file = formatNpy({type, tensor});
      // The data is aligned for memory maps.
      EXPECT_EQ((file.size() - tensor.data.size() * (type == ElementType::kF32 || type == ElementType::kI32 ? 4 : 8)) %
                    64,
                0u);
      llvm::Expected<NpyArray> array = parseNpyTensor(file, "x.npy");
      ASSERT_TRUE(static_cast<bool>(array)) << llvm::toString(array.takeError());
      EXPECT_EQ(array->type, type);
      EXPECT_EQ(array->tensor.shape, shape);
      EXPECT_EQ(array->tensor.data, tensor.data);
    }
}

TEST(NpyFile, WhatNumpyWrites) {
  // numpy.save of numpy.array([[1, -2]], dtype='<i4').
  auto array = parseNpyTensor(fileWith("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }        \n",
                                       llvm::StringRef("\x01\0\0\0\xfe\xff\xff\xff", 8)),
                              "x.npy");
  ASSERT_TRUE(static_cast<bool>(array));
  EXPECT_EQ(array->tensor.shape, (Shape{1, 2}));
  EXPECT_EQ(array->tensor.data, (std::vector<double>{1, -2}));
}

TEST(NpyFile, BadFilesNameTheProblem) {
  llvm::StringRef good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  llvm::StringRef data("\0\0\0\0", 4);
  EXPECT_EQ(errorOf(fileWith(good, data)), "");
  auto expectError = [](const std::string &file, llvm::StringRef text) {
    std::string message = errorOf(file);
    EXPECT_TRUE(llvm::StringRef(message).starts_with("'x.npy': ")) << message;
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expectError("", "not a .npy file");
  expectError("\x93NUMPY", "ends before its version");
  expectError(std::string("\x93NUMPY\x03\0", 8), "version 3 is not supported");
  expectError(fileWith(good, data).substr(0, 30), "runs beyond the end of the file");
  expectError(fileWith(good, "123"), "promises 1 elements of 4 bytes but 3 bytes follow");
  expectError(fileWith(good, "12345678"), "promises 1 elements of 4 bytes but 8 bytes follow");
  expectError(fileWith("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}", "12"),
              "of type '<u2'; supported are");
  expectError(fileWith("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", data), "Fortran order");
  expectError(fileWith("{'descr': '<f4', 'shape': (1,)}", data), "not a dictionary of");
  expectError(fileWith("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", data),
              "not a dictionary of");
  expectError(fileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", data), "not a dictionary of");
  expectError(fileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (9007199254740991, 9007199254740991)}", data),
              "promises too many elements");
  expectError(fileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (9007199254740991, 1024)}", data),
              "promises");
  expectError(
      fileWith("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", llvm::StringRef("\0\0\0\0\0\0\0\x7f", 8)),
      "beyond 2^53");
  // Every truncation is an error and none crashes.
  std::string whole = fileWith(good, data);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(errorOf(llvm::StringRef(whole).take_front(size)), "") << size;
}
