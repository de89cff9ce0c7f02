//===- ImageTest.cpp - The image: deterministic, vectorised, self-contained, refused with a reason
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/LowerToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <gtest/gtest.h>

#include <regex>

using namespace bowline;
using namespace bowline::test;

namespace {

const char *kSource = R"(
func.func @hot(%a: tensor<4096xf32>, %b: tensor<4096xf32>) -> tensor<4096xf32> {
  %m = arith.mulf %a, %b : tensor<4096xf32>
  %s = arith.divf %m, %a : tensor<4096xf32>
  %r = arith.addf %s, %b : tensor<4096xf32>
  return %r : tensor<4096xf32>
}
func.func @norm(%x: tensor<3x70xf32>, %s: tensor<70xf32>) -> tensor<3x70xf32> {
  %n = graph.rms_norm %x, %s eps 1.0e-6 : (tensor<3x70xf32>, tensor<70xf32>) -> tensor<3x70xf32>
  return %n : tensor<3x70xf32>
}
func.func @power(%x: tensor<f64>) -> tensor<f64> {
  %n = math.powf %x, %x : tensor<f64>
  return %n : tensor<f64>
}
)";

TEST(Image, TwoBuildsGiveTheSameBytes) {
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16"})
    EXPECT_EQ(Kernels(kSource, cpu).image(), Kernels(kSource, cpu).image()) << cpu;
}

TEST(Image, WithoutCodeKernelsArePlannedAlike) {
  mlir::DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kSource, &context);
  ASSERT_TRUE(module);
  CpuTarget target{"x86-64-v3"};
  CpuCodegen with(target);
  target.hasCode = false;
  CpuCodegen without(target);
  for (auto kernel : module->getOps<mlir::func::FuncOp>()) {
    auto info = with.add(kernel), planned = without.add(kernel);
    ASSERT_TRUE(succeeded(info) && succeeded(planned));
    EXPECT_EQ(planned->symbol, info->symbol);
    EXPECT_EQ(planned->parallelExtent, info->parallelExtent);
    EXPECT_EQ(planned->inPlace, info->inPlace);
  }
  auto image = with.finish(), none = without.finish();
  ASSERT_TRUE(succeeded(image) && succeeded(none));
  EXPECT_FALSE(image->empty());
  EXPECT_TRUE(none->empty());
}

std::string disassemble(const std::vector<char> &image) {
  auto tool = llvm::sys::findProgramByName("llvm-objdump-22");
  if (!tool)
    tool = llvm::sys::findProgramByName("llvm-objdump", {"/usr/lib/llvm-22/bin"});
  if (!tool)
    return "";
  llvm::SmallString<64> object, listing;
  int fd = -1;
  if (llvm::sys::fs::createTemporaryFile("image", "so", fd, object) ||
      llvm::sys::fs::createTemporaryFile("image", "s", listing))
    return "";
  llvm::raw_fd_ostream(fd, /*shouldClose=*/true) << llvm::StringRef(image.data(), image.size());
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(listing), std::nullopt};
  llvm::sys::ExecuteAndWait(*tool, {*tool, "-d", "--no-show-raw-insn", object}, std::nullopt, redirects);
  auto text = llvm::MemoryBuffer::getFile(listing);
  llvm::sys::fs::remove(object);
  llvm::sys::fs::remove(listing);
  return text ? (*text)->getBuffer().str() : "";
}

TEST(Image, HotLoopsUseWholeVectorRegisters) {
  for (auto [cpu, instruction] : {std::pair("x86-64-v4", "v(mul|div|add|fmadd...)ps\\s.*%zmm"),
                                  std::pair("x86-64-v3", "v(mul|div|add|fmadd...)ps\\s.*%ymm"),
                                  std::pair("x86-64-v2", "(mul|div|add)ps\\s.*%xmm")}) {
    SCOPED_TRACE(cpu);
    // Compiled only: this machine may not run it.
    Kernels kernels(kSource, cpu);
    std::string text = disassemble(kernels.image());
    if (text.empty())
      FAIL() << "llvm-objdump-22 is missing; run scripts/install-packages.sh";
    size_t begin = text.find("<hot>:"), end = text.find("<norm>:");
    ASSERT_LT(begin, end);
    std::string hot = text.substr(begin, end - begin);
    EXPECT_TRUE(std::regex_search(hot, std::regex(instruction))) << hot;
    EXPECT_EQ(hot.find("call"), std::string::npos) << "a hot loop calls something";
  }
}

/// Conversions to bf16 and back are instructions of vectors on every target, in tails too, and no functions.
TEST(Image, Bf16IsVectorised) {
  const char *source = R"(func.func @cast(%x: tensor<3x77xbf16>, %y: tensor<3x77xf32>) -> tensor<3x77xbf16> {
    %w = arith.extf %x : tensor<3x77xbf16> to tensor<3x77xf32>
    %s = arith.addf %w, %y : tensor<3x77xf32>
    %r = arith.truncf %s : tensor<3x77xf32> to tensor<3x77xbf16>
    return %r : tensor<3x77xbf16> })";
  for (auto [cpu, widen, narrow] : {std::tuple("x86-64-v4+avx512bf16", "vpslld\\s.*%zmm", "vcvtneps2bf16\\s+%zmm"),
                                    std::tuple("x86-64-v4", "vpslld\\s.*%zmm", "vpmovdw\\s+%zmm"),
                                    std::tuple("x86-64-v3", "vpslld\\s.*%ymm", "vpackusdw\\s"),
                                    std::tuple("x86-64-v2", "(pslld|punpck.wd)\\s.*%xmm", "packusdw\\s")}) {
    SCOPED_TRACE(cpu);
    Kernels kernels(source, cpu);
    std::string text = disassemble(kernels.image());
    text = text.substr(text.find("<cast>:"));
    EXPECT_TRUE(std::regex_search(text, std::regex(widen))) << text;
    EXPECT_TRUE(std::regex_search(text, std::regex(narrow))) << text;
    EXPECT_EQ(text.find("call"), std::string::npos) << text;
  }
}

TEST(Image, NeedsNothingButTheMathLibrary) {
  Kernels kernels(kSource, "x86-64-v3");
  llvm::MemoryBufferRef buffer(llvm::StringRef(kernels.image().data(), kernels.image().size()), "image");
  auto file = llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile(buffer));
  std::vector<std::string> undefined;
  for (auto symbol : llvm::cast<llvm::object::ELFObjectFileBase>(*file).getDynamicSymbolIterators())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      undefined.push_back(llvm::cantFail(symbol.getName()).str());
  llvm::erase(undefined, "");
  EXPECT_EQ(undefined, std::vector<std::string>{"pow"});
  for (auto section : file->sections())
    for (const char *writable : {".data", ".bss", ".tdata", ".tbss"})
      EXPECT_NE(llvm::cantFail(section.getName()), writable) << "the image has variables";
}

/// The diagnostic for a module that has no code.
std::string refusal(const std::string &source, const std::string &cpu = "x86-64-v3") {
  mlir::DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return "does not parse";
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) { message += diagnostic.str(); });
  CpuCodegen codegen({.cpu = cpu});
  for (auto function : module->getOps<mlir::func::FuncOp>())
    if (mlir::failed(codegen.add(function)))
      return message;
  return "accepted";
}

TEST(Image, RefusesWithAReason) {
  EXPECT_NE(refusal(kSource, "pentium").find("unknown target 'pentium'"), std::string::npos);
  EXPECT_NE(refusal("func.func private @f(tensor<3xf32>) -> tensor<3xf32>").find("must have a body"),
            std::string::npos);
  EXPECT_NE(refusal("func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }")
                .find("tensors of static shape"),
            std::string::npos);
  EXPECT_NE(refusal("func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xi32>) -> tensor<2x3xf32> {\n"
                    "%r = graph.gather %a[%b] : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>\n"
                    "return %r : tensor<2x3xf32> }")
                .find("has no code generation"),
            std::string::npos);
  EXPECT_NE(refusal("func.func @f(%a: tensor<3xf32>) -> tensor<3xf32> {\n"
                    "%r = math.atan %a : tensor<3xf32>\nreturn %r : tensor<3xf32> }")
                .find("has no code generation"),
            std::string::npos);
  EXPECT_NE(refusal("func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                    "%c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\nreturn %c : tensor<2xf32> }")
                .find("one value for all elements"),
            std::string::npos);
}

} // namespace
