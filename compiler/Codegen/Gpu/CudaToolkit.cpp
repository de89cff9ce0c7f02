//===- Gpu/CudaToolkit.cpp - Tools and files of a CUDA toolkit that compilation uses
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/CudaToolkit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace llvm;
using namespace bowline;

static std::string inFolder(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

std::optional<std::string> codegen::findCudaToolkit() {
  auto ifToolkit = [](std::string folder) {
    return sys::fs::can_execute(inFolder(folder, "bin/ptxas")) ? std::optional(std::move(folder)) : std::nullopt;
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *folder = std::getenv(variable); folder && *folder)
      return ifToolkit(folder);
  if (auto ptxas = sys::findProgramByName("ptxas"))
    if (auto folder = ifToolkit(sys::path::parent_path(sys::path::parent_path(*ptxas)).str()))
      return folder;
  return ifToolkit("/usr/local/cuda");
}

std::string codegen::libdevicePath(StringRef toolkit) { return inFolder(toolkit, "nvvm/libdevice/libdevice.10.bc"); }

namespace {

constexpr StringLiteral kOtherFolder = "; set TMPDIR to a folder that has room and may be written";

/// A file that is removed in the end.
struct TemporaryFile {
  SmallString<128> path;
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (!path.empty())
      sys::fs::remove(path);
  }

  Error create(StringRef suffix, StringRef content) {
    int file = -1;
    if (std::error_code error = sys::fs::createTemporaryFile("bowline", suffix, file, path)) {
      path.clear();
      SmallString<128> folder;
      sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
      return createStringError("cannot make a temporary file for ptxas in " + folder + ": " + error.message() +
                               kOtherFolder);
    }
    raw_fd_ostream stream(file, /*shouldClose=*/true);
    stream << content;
    stream.close();
    if (!stream.has_error())
      return Error::success();
    std::string message = stream.error().message();
    stream.clear_error();
    return createStringError("cannot write the temporary file " + path + ": " + message + kOtherFolder);
  }
};

std::string contentOf(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

} // namespace

Expected<std::vector<char>> codegen::assemblePtx(StringRef toolkit, StringRef arch, StringRef ptx, std::string *report,
                                                 unsigned seconds) {
  TemporaryFile source, image, output;
  if (Error error = source.create("ptx", ptx))
    return std::move(error);
  if (Error error = image.create("cubin", ""))
    return std::move(error);
  if (Error error = output.create("log", ""))
    return std::move(error);
  std::string ptxas = inFolder(toolkit, "bin/ptxas"), archFlag = ("-arch=" + arch).str();
  std::vector<StringRef> arguments = {ptxas, archFlag, "-O3", "-v", source.path, "-o", image.path};
  std::optional<StringRef> redirects[] = {StringRef(""), output.path.str(), output.path.str()};
  std::string message;
  int exit = sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, seconds, 0, &message);
  std::string said = contentOf(output.path);
  if (report)
    *report = said;
  if (exit != 0) {
    if (message.empty() && exit > 0)
      message = "exit code " + std::to_string(exit);
    if (!said.empty())
      message += (message.empty() ? "" : ": ") + StringRef(said).trim().str();
    return createStringError(ptxas + " could not assemble the generated kernels: " + message);
  }
  auto buffer = MemoryBuffer::getFile(image.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("cannot read the output of " + ptxas + ": " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  if (!bytes.starts_with("\177ELF"))
    return createStringError(ptxas + " ended well, but wrote " +
                             (bytes.empty() ? "nothing" : "something else than machine code") +
                             "; set CUDA_HOME to a toolkit whose ptxas works");
  return std::vector<char>(bytes.begin(), bytes.end());
}
