#include "runtime/drivers/cpu/perf_map.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_descriptor.h"

namespace bowline {
namespace {

// Whole pages from the first to the last byte of each executable segment of the object at `base`.
std::vector<std::pair<char*, size_t>> ExecutablePages(ElfW(Addr) base) {
  struct Search {
    ElfW(Addr) base;
    std::vector<std::pair<char*, size_t>> pages;
  } search{base, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        if (object->dlpi_addr != search.base) return 0;
        const auto page = static_cast<ElfW(Addr)>(::sysconf(_SC_PAGESIZE));
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr) & segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || (segment.p_flags & PF_W) != 0) continue;
          const ElfW(Addr) begin = (search.base + segment.p_vaddr) / page * page;
          const ElfW(Addr) end = (search.base + segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
          search.pages.emplace_back(reinterpret_cast<char*>(begin), end - begin);
        }
        return 1;
      },
      &search);
  return search.pages;
}

}  // namespace

bool PerfMapRequested() {
  const char* value = std::getenv("BOWLINE_PERF_MAP");
  return value != nullptr && std::string_view(value) == "1";
}

std::string PerfMapPath() { return absl::StrCat("/tmp/perf-", ::getpid(), ".map"); }

absl::Status DetachFromFile(void* handle) {
  struct link_map* object = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&object)) != 0)
    return absl::InternalError(absl::StrCat("dlinfo: ", ::dlerror()));
  for (const auto& [begin, bytes] : ExecutablePages(object->l_addr)) {
    // A copy takes the place of the pages in one step, so that an error leaves them as they were.
    void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return ErrnoToStatus(errno, "cannot copy the code of generated kernels");
    std::memcpy(copy, begin, bytes);
    // perf notices memory that becomes executable, so this comes after the move.
    if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == MAP_FAILED) {
      const int error = errno;
      ::munmap(copy, bytes);
      return ErrnoToStatus(error, "cannot replace the code of generated kernels");
    }
    if (::mprotect(begin, bytes, PROT_READ | PROT_EXEC) != 0) {
      return ErrnoToStatus(errno, "cannot make the code of generated kernels executable");
    }
  }
  return absl::OkStatus();
}

absl::Status AppendToPerfMap(const void* address, const std::string& name) {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (::dladdr1(address, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr) {
    return absl::InternalError(absl::StrCat("no symbol for generated kernel '", name, "'"));
  }
  // Any user may write in /tmp: do not follow links or write files of other users.
  const std::string path = PerfMapPath();
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  std::string line =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(address)), " ", absl::Hex(symbol->st_size), " ", name, "\n");
  if (!file.valid() || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "', which BOWLINE_PERF_MAP=1 asks for"));
  }
  return absl::OkStatus();
}

}  // namespace bowline
