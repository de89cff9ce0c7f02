#ifndef BOWLINE_TEST_UNIT_TRAIN_SHELL_H_
#define BOWLINE_TEST_UNIT_TRAIN_SHELL_H_

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace bowline {

struct Outcome {
  int exit_code;       // negative: the signal that ended it
  std::string output;  // stdout and stderr
};

inline Outcome RunShell(const std::string& command) {
  FILE* pipe = ::popen(("(" + command + ") 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> block;
  size_t count;
  while ((count = std::fread(block.data(), 1, block.size(), pipe)) > 0) output.append(block.data(), count);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), output};
}

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_SHELL_H_
