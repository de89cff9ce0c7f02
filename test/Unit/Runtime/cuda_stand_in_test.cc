// The stand-in for NVIDIA's driver refuses the same calls as the driver while streams are captured, and runs graphs in
// any order that their edges allow: a test that passes on it says something of a card.

#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace bowline {
namespace {

constexpr size_t kWord = sizeof(uint32_t);

class StandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory_, 64 * kWord), CUDA_SUCCESS);
    for (CUstream* const stream : {&a_, &b_, &c_}) {
      ASSERT_EQ(cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    }
    for (CUevent* const event : {&fork_, &join_, &other_}) {
      ASSERT_EQ(cuEventCreate(event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    }
  }
  void TearDown() override {
    for (const CUevent event : {fork_, join_, other_}) EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
    for (const CUstream stream : {a_, b_, c_}) EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    if (memory_ != 0) EXPECT_EQ(cuMemFree(memory_), CUDA_SUCCESS);
  }

  CUresult Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    return cuStreamBeginCapture(a_, mode);
  }
  CUresult Copy(CUstream stream, size_t to, size_t from) {
    return cuMemcpyAsync(memory_ + to * kWord, memory_ + from * kWord, kWord, stream);
  }
  CUresult Fork() {
    const CUresult recorded = cuEventRecord(fork_, a_);
    return recorded == CUDA_SUCCESS ? cuStreamWaitEvent(b_, fork_, 0) : recorded;
  }
  CUresult Join() {
    const CUresult recorded = cuEventRecord(join_, b_);
    return recorded == CUDA_SUCCESS ? cuStreamWaitEvent(a_, join_, 0) : recorded;
  }
  CUresult End(CUgraph* graph = nullptr) {
    CUgraph own = nullptr;
    const CUresult ended = cuStreamEndCapture(a_, &own);
    EXPECT_EQ(own == nullptr, ended != CUDA_SUCCESS);
    if (graph != nullptr) {
      *graph = own;
    } else if (own != nullptr) {
      EXPECT_EQ(cuGraphDestroy(own), CUDA_SUCCESS);
    }
    return ended;
  }

  CUdeviceptr memory_ = 0;
  CUstream a_ = nullptr, b_ = nullptr, c_ = nullptr;
  CUevent fork_ = nullptr, join_ = nullptr, other_ = nullptr;
};

TEST_F(StandIn, EndsACaptureAtWhatIsNotAllowed) {
  ASSERT_EQ(cuEventRecord(other_, c_), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  void* host = nullptr;
  CUmodule module = nullptr;
  const std::pair<CUresult, std::function<CUresult()>> cases[] = {
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamSynchronize(a_); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuMemAlloc(&address, 16); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuMemFree(memory_); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuMemHostAlloc(&host, 16, CU_MEMHOSTALLOC_DEVICEMAP); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuModuleLoadDataEx(&module, "", 0, nullptr, nullptr); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuFuncLoad(nullptr); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuEventQuery(other_); }},
      {CUDA_ERROR_CAPTURED_EVENT,
       [&] {
         EXPECT_EQ(cuEventRecord(fork_, a_), CUDA_SUCCESS);
         return cuEventSynchronize(fork_);
       }},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&] { return Copy(nullptr, 1, 0); }},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&] { return Copy(CU_STREAM_LEGACY, 1, 0); }},
      // An event of before the capture.
      {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [&] { return cuStreamWaitEvent(a_, other_, 0); }},
      {CUDA_ERROR_ILLEGAL_STATE, [&] { return Begin(); }},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamDestroy(a_); }},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    ASSERT_EQ(Begin(), CUDA_SUCCESS);
    EXPECT_EQ(Copy(a_, 1, 0), CUDA_SUCCESS);
    EXPECT_EQ(cases[i].second(), cases[i].first) << "case " << i;
    EXPECT_EQ(Copy(a_, 2, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << "case " << i;
    EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << "case " << i;
    // The stream is one again.
    EXPECT_EQ(Copy(a_, 1, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(a_), CUDA_SUCCESS);
  }
}

TEST_F(StandIn, KnowsWhoseCallsAreHeldAgainstACapture) {
  const auto allocate_elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      CUcontext context = nullptr;
      cuDevicePrimaryCtxRetain(&context, 0);
      cuCtxSetCurrent(context);
      CUdeviceptr address = 0;
      result = cuMemAlloc(&address, 16);
      if (result == CUDA_SUCCESS) result = cuMemFree(address);
    }).join();
    return result;
  };
  ASSERT_EQ(Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  EXPECT_EQ(allocate_elsewhere(), CUDA_SUCCESS);
  EXPECT_EQ(End(), CUDA_SUCCESS);
  ASSERT_EQ(Begin(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(allocate_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // A thread that did not begin the capture cannot end it.
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  CUresult ended = CUDA_SUCCESS;
  std::thread([&] {
    CUcontext context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    CUgraph graph = nullptr;
    ended = cuStreamEndCapture(a_, &graph);
  }).join();
  EXPECT_EQ(ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(StandIn, WantsStreamsThatJoinWhereTheyForked) {
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(Fork(), CUDA_SUCCESS);
  ASSERT_EQ(Copy(b_, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // Joined, and then with more.
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(Fork(), CUDA_SUCCESS);
  ASSERT_EQ(Copy(b_, 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(Join(), CUDA_SUCCESS);
  ASSERT_EQ(Copy(b_, 2, 1), CUDA_SUCCESS);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(Fork(), CUDA_SUCCESS);
  ASSERT_EQ(Copy(b_, 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(Join(), CUDA_SUCCESS);
  EXPECT_EQ(End(), CUDA_SUCCESS);
  // A fork ends where it began.
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(Fork(), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(b_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // Two captures do not become one, and nobody can wait for a captured event after the capture.
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(fork_, a_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(c_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(c_, fork_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(c_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamWaitEvent(b_, fork_, 0), CUDA_ERROR_CAPTURED_EVENT);
}

TEST_F(StandIn, RunsGraphsInTheOrderOfTheirEdgesAlone) {
  for (const bool ordered : {true, false}) {
    ASSERT_EQ(Begin(), CUDA_SUCCESS);
    ASSERT_EQ(ordered ? CUDA_SUCCESS : Fork(), CUDA_SUCCESS);
    ASSERT_EQ(Copy(a_, 1, 0), CUDA_SUCCESS);
    ASSERT_EQ(ordered ? Fork() : CUDA_SUCCESS, CUDA_SUCCESS);
    ASSERT_EQ(Copy(b_, 2, 1), CUDA_SUCCESS);
    ASSERT_EQ(Join(), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    ASSERT_EQ(End(&graph), CUDA_SUCCESS);
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    std::set<bool> right;
    for (uint32_t replay = 1; replay < 100; ++replay) {
      uint32_t words[3] = {replay, 0, 0};
      ASSERT_EQ(cuMemcpyHtoDAsync(memory_, words, sizeof(words), a_), CUDA_SUCCESS);
      ASSERT_EQ(cuGraphLaunch(executable, a_), CUDA_SUCCESS);
      ASSERT_EQ(cuMemcpyDtoHAsync(words, memory_, sizeof(words), a_), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamSynchronize(a_), CUDA_SUCCESS);
      EXPECT_EQ(words[1], replay);
      right.insert(words[2] == replay);
    }
    EXPECT_EQ(right, ordered ? std::set<bool>{true} : (std::set<bool>{false, true}));
    ASSERT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphLaunch(executable, a_), CUDA_ERROR_INVALID_VALUE);
  }
}

// In a process of its own: the error stays.
TEST_F(StandIn, KnowsMemoryThatIsGone) {
  ASSERT_EQ(Begin(), CUDA_SUCCESS);
  ASSERT_EQ(Copy(a_, 1, 0), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(End(&graph), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  const auto replay_without_memory = [&] {
    cuMemFree(memory_);
    // Often the same place.
    for (int i = 0; i < 8; ++i) {
      CUdeviceptr another = 0;
      cuMemAlloc(&another, 64 * kWord);
    }
    cuGraphLaunch(executable, a_);
    _exit(cuStreamSynchronize(a_) == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(replay_without_memory(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

}  // namespace
}  // namespace bowline
