#ifndef BOWLINE_TEST_UNIT_RUNTIME_PROCESS_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_PROCESS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/gloo/gloo_group.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "test/Unit/Runtime/pointer_communicator.h"

namespace bowline::testing {

// The objects of a rank's process.
struct RankProcess {
  std::unique_ptr<GlooGroup> group;
  std::unique_ptr<hal::Device> device;
  std::unique_ptr<PointerCommunicator> all;
  std::unique_ptr<hal::Stream> stream;

  // Creates all of it.
  absl::Status Start(const GlooOptions& options);
  absl::Status Barrier() { return Finish(all->Barrier(*stream)); }
  // Sums a vector of ones, and checks the sums.
  absl::Status SumOnes(size_t count);
  // Takes part in sums until there is an error.
  absl::Status SumForever(size_t count);
  absl::Status Finish(const absl::Status& issued);

  // Tells the test that it has come here.
  void Tell() const;
  int tell = -1;
};

// How a process ended.
struct Outcome {
  bool ended = false;  // of its own, with a status
  absl::Status status;
};

// Processes that the test forks; none survives it. Only of tests without threads.
class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  ~Processes();

  // Forks a process that calls `body` and reports its status. Its number is 0, 1, ...
  int Fork(const std::function<absl::Status(RankProcess&)>& body);
  // Waits until it calls Tell; false when it ends before.
  bool HasTold(int process);
  void WaitForTell(int process) {
    ASSERT_TRUE(HasTold(process)) << "process " << process << " ended before it told anything";
  }
  // Waits until its main thread sleeps and does not wake: in an operation, where it told something before that.
  void WaitForSleep(int process);
  // Waits until one of the two ends of its own, and returns which.
  int FirstToEnd(int process, int other);
  void Signal(int process, int signal);
  // Returns when it is gone, with all that it had open.
  void Kill(int process);
  // Waits for its end, at most `limit`; a process that does not end by then, or that crashed, is a failure.
  Outcome Wait(int process, std::chrono::seconds limit = std::chrono::minutes(5));
  int pid(int process) const { return children_[static_cast<size_t>(process)].pid; }

 private:
  struct Child {
    int pid = -1, told = -1, report = -1;
  };
  std::vector<Child> children_;
};

// Options for rank `rank` of `ranks` that meet at a file of this test, or at a free port.
GlooOptions OptionsAtFile(int ranks, std::chrono::nanoseconds timeout);
GlooOptions OptionsAtPort(int ranks, std::chrono::nanoseconds timeout);
GlooOptions WithRank(GlooOptions options, int rank);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_PROCESS_FIXTURE_H_
