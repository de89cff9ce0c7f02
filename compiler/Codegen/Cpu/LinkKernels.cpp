//===- LinkKernels.cpp - Object files as one shared object
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The linker is a program of its own, but no file passes between it and the compiler: both sides are memory. Nothing is
// left behind when the compiler is killed, and no disk can be full.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/ObjectFile.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/Binary.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace bowline;
using codegen::KernelObject;

/// The folder in which the distribution's LLVM packages have their linker, which is looked for there besides PATH.
static constexpr StringLiteral kLlvmTools = "/usr/lib/llvm-22/bin";

static Error errnoError(const Twine &what) {
  return createStringError(std::string(ErrnoToStatus(errno, what.str()).message()));
}

namespace {
/// Bytes that a child process opens as a file.
class MemoryFile {
public:
  static Expected<MemoryFile> create(StringRef name) {
    // The descriptor has no MFD_CLOEXEC, so that the child inherits it.
    int descriptor = memfd_create(name.str().c_str(), 0);
    if (descriptor < 0)
      return errnoError("cannot create the memory file '" + name + "'");
    return MemoryFile(name, descriptor);
  }

  int get() const { return descriptor.get(); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(get()); }

  Error write(StringRef bytes) {
    while (!bytes.empty()) {
      ssize_t written = ::write(get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR)
        return errnoError("cannot write " + Twine(bytes.size()) + " bytes into the memory file '" + name + "'");
      bytes = bytes.drop_front(std::max<ssize_t>(written, 0));
    }
    return Error::success();
  }

  /// Reads the whole contents, with the bytes that the child wrote.
  Expected<std::vector<char>> read() const {
    struct stat status;
    if (fstat(get(), &status) != 0)
      return errnoError("cannot read the memory file '" + name + "'");
    std::vector<char> bytes(status.st_size);
    for (size_t done = 0; done < bytes.size();) {
      ssize_t count = pread(get(), bytes.data() + done, bytes.size() - done, done);
      if (count == 0 || (count < 0 && errno != EINTR))
        return errnoError("cannot read the memory file '" + name + "'");
      done += std::max<ssize_t>(count, 0);
    }
    return bytes;
  }

private:
  MemoryFile(StringRef name, int descriptor) : name(name), descriptor(descriptor) {}

  std::string name;
  FileDescriptor descriptor;
};
} // namespace

static Expected<std::string> findLinker() {
  for (StringRef name : {"ld.lld-22", "ld.lld"})
    if (auto path = sys::findProgramByName(name))
      return *path;
  if (auto path = sys::findProgramByName("ld.lld", {kLlvmTools}))
    return *path;
  return createStringError("ld.lld-22 is not installed or not in PATH; generated kernels are linked with it. Install "
                           "the package lld-22");
}

/// A copy of `object` whose function is called `symbol`.
static Expected<std::unique_ptr<MemoryBuffer>> rename(StringRef object, StringRef symbol) {
  auto binary = object::createBinary(MemoryBufferRef(object, "kernel"));
  if (!binary)
    return binary.takeError();
  objcopy::ConfigManager config;
  config.Common.SymbolsToRename[codegen::kKernelSymbol] = symbol;
  SmallVector<char, 0> renamed;
  raw_svector_ostream os(renamed);
  if (Error error = objcopy::executeObjcopyOnBinary(config, **binary, os))
    return std::move(error);
  return MemoryBuffer::getMemBufferCopy(StringRef(renamed.data(), renamed.size()), symbol);
}

/// An archive of all objects, in order.
static Expected<std::unique_ptr<MemoryBuffer>> archive(ArrayRef<KernelObject> objects) {
  std::vector<std::unique_ptr<MemoryBuffer>> renamed;
  std::vector<NewArchiveMember> members;
  for (const auto &[symbol, object] : objects) {
    auto member = rename(object, symbol);
    if (!member)
      return member.takeError();
    renamed.push_back(std::move(*member));
    members.emplace_back(renamed.back()->getMemBufferRef());
  }
  return writeArchiveToBuffer(members, SymtabWritingMode::NoSymtab, object::Archive::K_GNU, /*Deterministic=*/true,
                              /*Thin=*/false);
}

/// Runs a program to its end. Returns its wait status.
static Expected<int> run(const std::string &program, ArrayRef<const char *> arguments, const MemoryFile &output,
                         const MemoryFile &messages) {
  std::vector<char *> argv{const_cast<char *>(program.c_str())};
  for (const char *argument : arguments)
    argv.push_back(const_cast<char *>(argument));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, messages.get(), STDERR_FILENO);
  // Before it writes to its standard output, the linker removes a file '-' of its working folder; /proc has none.
  posix_spawn_file_actions_addchdir_np(&actions, "/proc");
  pid_t child;
  errno = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  int error = errno, status = 0;
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (errno != 0)
    return errnoError("cannot start " + program);
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return errnoError("cannot wait for " + program);
  return status;
}

/// The text of the linker's messages after "error:", without the lines around them, such as the stack trace of a linker
/// that a signal has killed.
static std::string errorsIn(StringRef messages) {
  std::string errors;
  SmallVector<StringRef> lines;
  messages.split(lines, '\n');
  for (StringRef line : lines)
    if (StringRef reason = line.split("error: ").second; !reason.empty())
      errors += (errors.empty() ? "" : "; ") + reason.str();
  return errors;
}

Expected<std::vector<char>> codegen::linkObjects(ArrayRef<KernelObject> objects) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  auto archived = archive(objects);
  if (!archived)
    return archived.takeError();
  auto input = MemoryFile::create("kernels.a");
  if (!input)
    return input.takeError();
  auto image = MemoryFile::create("kernels.so");
  if (!image)
    return image.takeError();
  auto messages = MemoryFile::create("messages of the linker");
  if (!messages)
    return messages.takeError();
  if (Error error = input->write((*archived)->getBuffer()))
    return std::move(error);
  std::string path = input->path();
  auto status =
      run(*linker,
          {"-shared", "--build-id=none", "--hash-style=gnu", "-Bsymbolic", "-o", "-", "--whole-archive", path.c_str()},
          *image, *messages);
  if (!status)
    return status.takeError();
  if (*status != 0) {
    std::string how = WIFSIGNALED(*status) ? std::string("was ended by signal ") + strsignal(WTERMSIG(*status))
                                           : "ended with exit code " + std::to_string(WEXITSTATUS(*status));
    auto text = messages->read();
    std::string reasons = text ? errorsIn({text->data(), text->size()}) : toString(text.takeError());
    return createStringError(*linker + " could not link the generated kernels in memory; it " + how +
                             (reasons.empty() ? "" : ": " + reasons));
  }
  return image->read();
}
