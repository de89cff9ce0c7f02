#ifndef BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_STAND_IN_H_
#define BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_STAND_IN_H_

// Types and functions that the files of the stand-in for NVIDIA's driver share: see driver.cc.

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace bowline::stand_in {

using Command = std::function<CUresult()>;

// Of everything below. Streams that nobody destroys outlive the program's end, as those of a driver do.
extern std::mutex& mutex;
extern std::condition_variable& changed;
constexpr int kMostCards = 8;
extern CUresult sticky[kMostCards];  // the first error of a card's commands, which every later call returns
extern __attribute__((visibility("default"))) thread_local CUcontext current;

// How many there are.
int Cards();
CUcontext ContextOf(int card);
// The one whose context is current.
__attribute__((visibility("default"))) int Card();

// --- memory.cc

// Whether all bytes are of one allocation, and the card reaches it. Takes the mutex.
__attribute__((visibility("default"))) bool IsInside(CUdeviceptr begin, size_t bytes, int card);

// For the stand-ins of libraries: memory that one of them uses from now on (1), or uses no more (-1). To free it
// meanwhile ends the program. Takes the mutex.
__attribute__((visibility("default"))) void CountUse(CUdeviceptr address, int change);

// Allocations that a command uses. It is an error to run it when one of them is gone, even if the memory belongs to a
// newer one.
class __attribute__((visibility("default"))) Held {
 public:
  // Those in which the addresses lie; others are left out. Takes the mutex, as IsAlive does.
  explicit Held(const std::vector<CUdeviceptr>& addresses);
  bool IsAlive() const;

 private:
  std::vector<std::pair<CUdeviceptr, uint64_t>> allocations_;  // begin and number
};

// --- capture.cc

// Commands, each with the commands that it has to come after.
struct Graph {
  struct Node {
    Command run;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

class Stream;

struct Capture {
  CUstreamCaptureMode mode;
  std::thread::id thread;
  Stream* origin;
  std::set<Stream*> streams;
  Graph graph;
  bool ended = false, invalid = false;
};

// The place of a stream, or of an event, in a capture: the next command depends on these nodes.
struct CapturePoint {
  std::shared_ptr<Capture> capture;  // null: none
  std::set<size_t> after;
};

// The error of a call that is forbidden while this thread captures, or any with the mode of all threads;
// these captures are invalid then. Holds the mutex, as all below.
CUresult RefuseUnsafe();
// The error of a use of the legacy stream, which waits for all others.
CUresult RefuseLegacy();
CUresult Invalidate(const CapturePoint& point, CUresult error);
// Adds a node behind the point, which becomes the point behind the node.
CUresult AddNode(CapturePoint& point, Command command);

// --- streams.cc

struct Event {
  bool timed = false;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point time;
  CapturePoint point;  // where it was recorded last, if a stream was captured then
};

class Stream {
 public:
  explicit Stream(int card);
  ~Stream();

  // Holds the mutex.
  void Add(Command command);
  void Wait(std::unique_lock<std::mutex>& lock);
  int card() const { return card_; }

  CapturePoint point;

 private:
  void Work();

  const int card_;
  std::minstd_rand random_;
  std::deque<Command> commands_;
  uint64_t added_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

std::set<Stream*>& Streams();
inline Stream* Of(CUstream stream) { return reinterpret_cast<Stream*>(stream); }
// These are also for the stand-ins of libraries. Why nothing can be issued to the stream; takes the mutex.
__attribute__((visibility("default"))) CUresult CheckStream(CUstream stream);
// Puts a command into the stream, or into the graph that it is captured into.
__attribute__((visibility("default"))) CUresult Issue(CUstream stream, Command command);

}  // namespace bowline::stand_in

#define REQUIRE_CONTEXT()                                                         \
  do {                                                                            \
    if (bowline::stand_in::current == nullptr) return CUDA_ERROR_INVALID_CONTEXT; \
  } while (false)

// For calls that CUDA forbids while streams are captured.
#define REQUIRE_NO_CAPTURE()                                          \
  do {                                                                \
    REQUIRE_CONTEXT();                                                \
    const std::lock_guard<std::mutex> lock(bowline::stand_in::mutex); \
    const CUresult refused = bowline::stand_in::RefuseUnsafe();       \
    if (refused != CUDA_SUCCESS) return refused;                      \
  } while (false)

#define REQUIRE_STREAM(stream)                                       \
  do {                                                               \
    const CUresult refused = bowline::stand_in::CheckStream(stream); \
    if (refused != CUDA_SUCCESS) return refused;                     \
  } while (false)

#endif  // BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_STAND_IN_H_
