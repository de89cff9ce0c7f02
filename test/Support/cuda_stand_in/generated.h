#ifndef BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_GENERATED_H_
#define BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_GENERATED_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "test/Support/gpu_blocks/gpu_blocks.h"

namespace bowline::stand_in {

// An image of generated kernels that were compiled for this processor (test/Unit/Codegen/EmulatedCode.h).
class GeneratedImage {
 public:
  struct Function {
    size_t parameters = 0;
    testing::EmulatedGrid grid;  // without its size
  };

  // Whether the bytes begin as such an image does.
  static bool Is(const char* image);
  // Null where it does not load.
  static std::unique_ptr<GeneratedImage> Load(const char* image);
  ~GeneratedImage();

  // Null where there is none.
  const Function* Find(const std::string& name) const;

 private:
  GeneratedImage() = default;

  void* library_ = nullptr;
  int file_ = -1;
  std::map<std::string, Function> functions_;
};

}  // namespace bowline::stand_in

#endif  // BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_GENERATED_H_
