#include "test/Support/cuda_stand_in/generated.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace bowline::stand_in {
namespace {

constexpr char kBegin[] = "BOWLINE EMULATED\n";

// The line at `text`, which moves behind it.
std::string TakeLine(const char*& text) {
  const char* const end = std::strchr(text, '\n');
  if (end == nullptr) return "";
  std::string line(text, end);
  text = end + 1;
  return line;
}

}  // namespace

bool GeneratedImage::Is(const char* image) { return std::strncmp(image, kBegin, sizeof(kBegin) - 1) == 0; }

std::unique_ptr<GeneratedImage> GeneratedImage::Load(const char* image) {
  std::unique_ptr<GeneratedImage> loaded(new GeneratedImage());
  TakeLine(image);
  for (std::string line = TakeLine(image); !line.empty(); line = TakeLine(image)) {
    std::istringstream words(line);
    std::string name;
    Function function;
    words >> name >> function.parameters >> function.grid.has_barriers;
    loaded->functions_[name] = function;
  }
  const size_t bytes = std::strtoull(TakeLine(image).c_str(), nullptr, 10);
  // The loader takes two libraries of one name for the same, so this one keeps its number until it is gone.
  loaded->file_ = memfd_create("generated", MFD_CLOEXEC);
  if (write(loaded->file_, image, bytes) != static_cast<ssize_t>(bytes)) return nullptr;
  loaded->library_ = dlopen(("/proc/self/fd/" + std::to_string(loaded->file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded->library_ == nullptr) {
    std::fprintf(stderr, "stand-in: %s\n", dlerror());
    return nullptr;
  }
  for (auto& [name, function] : loaded->functions_) {
    function.grid.entry = reinterpret_cast<decltype(function.grid.entry)>(dlsym(loaded->library_, name.c_str()));
    if (function.grid.entry == nullptr) return nullptr;
  }
  return loaded;
}

GeneratedImage::~GeneratedImage() {
  if (library_ != nullptr) dlclose(library_);
  if (file_ >= 0) close(file_);
}

const GeneratedImage::Function* GeneratedImage::Find(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace bowline::stand_in
