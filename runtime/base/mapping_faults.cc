#include "runtime/base/mapping_faults.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace bowline {
namespace {

constexpr int kExitCode = 3;
// The first address of a free slot, and of one that is being filled; no file is mapped there.
constexpr uintptr_t kFree = 0, kFilling = 1;

// A signal handler may not wait for the thread that it interrupted, so the table has no lock. A file that finds it full
// is reported without its name.
struct Slot {
  std::atomic<uintptr_t> begin{kFree}, end{0};
  std::array<char, 512> path;
  std::atomic<size_t> path_size{0};
  std::atomic<std::atomic<bool>*> lost{nullptr};  // null: a fault ends the process
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free, "a signal handler may not wait");

std::array<Slot, 1024> table;
const char* reporting_tool = "bowline";

uintptr_t AddressOf(absl::Span<const uint8_t> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); }

void Print(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// One write, so that lines of several processes do not mix.
void PrintFault(absl::string_view path) {
  std::array<char, 1024> line;
  size_t size = 0;
  for (const absl::string_view part :
       {absl::string_view(reporting_tool), absl::string_view(": error: '"), path,
        absl::string_view("' cannot be read any more: it was made shorter while this command used it, or its disk "
                          "failed; leave files as they are while a command uses them, and start it again\n")}) {
    const size_t count = std::min(part.size(), line.size() - size);
    std::memcpy(line.data() + size, part.data(), count);
    size += count;
  }
  Print({line.data(), size});
}

// Zeros in place of the page at `address`.
bool ReplacePage(uintptr_t address) {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(address / size * size);
  return ::mmap(page, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
}

void OnBusError(int signal, siginfo_t* info, void*) {
  static std::atomic<bool> reported{false};
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : table) {
    const uintptr_t begin = slot.begin.load();
    if (begin <= kFilling || address < begin || address >= slot.end.load() || info->si_code <= 0) continue;
    if (std::atomic<bool>* lost = slot.lost.load(); lost != nullptr && ReplacePage(address)) {
      lost->store(true);
      return;
    }
    // Another thread that met the same file waits for the end.
    while (reported.exchange(true)) ::pause();
    PrintFault({slot.path.data(), slot.path_size.load()});
    ::_exit(kExitCode);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void AddMapping(absl::Span<const uint8_t> bytes, absl::string_view path) {
  for (Slot& slot : table) {
    uintptr_t expected = kFree;
    if (!slot.begin.compare_exchange_strong(expected, kFilling)) continue;
    // The end of a long path says more than its beginning.
    path = path.substr(path.size() - std::min(path.size(), slot.path.size()));
    std::copy(path.begin(), path.end(), slot.path.begin());
    slot.path_size.store(path.size());
    slot.lost.store(nullptr);
    slot.end.store(AddressOf(bytes) + bytes.size());
    slot.begin.store(AddressOf(bytes));
    return;
  }
}

void RemoveMapping(absl::Span<const uint8_t> bytes) {
  for (Slot& slot : table) {
    uintptr_t expected = AddressOf(bytes);
    if (slot.begin.compare_exchange_strong(expected, kFree)) return;
  }
}

void SurviveFaults(absl::Span<const uint8_t> bytes, std::atomic<bool>* lost) {
  for (Slot& slot : table) {
    if (slot.begin.load() == AddressOf(bytes)) return slot.lost.store(lost);
  }
}

void ReportMappingFaults(const char* tool) {
  reporting_tool = tool;
  struct sigaction action = {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace bowline
