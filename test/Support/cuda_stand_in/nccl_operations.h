#ifndef BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_OPERATIONS_H_
#define BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_OPERATIONS_H_

// Communicators of the stand-in for NCCL, and what their operations do: see nccl.cc.

#include <cuda.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/Support/cuda_stand_in/nccl_transport.h"
#include "test/Support/test_seed.h"

namespace bowline::stand_in {

// Ends the program, which uses NCCL as it must not be used.
[[noreturn]] void Misused(const char* how);

enum Kind : uint32_t { kAllReduce, kAllGather, kReduceScatter, kSend, kReceive, kSplit };

struct Task {
  ncclComm_t comm;
  Kind kind;
  const char* send;
  char* receive;
  size_t count;  // of a part
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int peer;
  CUstream stream;
};

// 0 for a type that there is not.
size_t SizeOf(ncclDataType_t type);

}  // namespace bowline::stand_in

struct ncclComm {
  std::string name, error;  // the error is written before `state`
  std::shared_ptr<bowline::stand_in::Shared> shared;
  int rank = 0, ranks = 0, card = 0;
  CUcontext context = nullptr;
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<bool> abort{false}, in_call{false}, finalized{false};
  std::atomic<int> in_streams{0};  // operations that streams have still to run, or graphs hold
  std::thread background;
  std::map<void*, CUdeviceptr> registered;
  uint64_t operations = 0, splits = 0;
  uint32_t sequences[bowline::stand_in::kMostRanks] = {}, sent[bowline::stand_in::kMostRanks] = {},
           received[bowline::stand_in::kMostRanks] = {};
  int fault_member = -1, fault_result = 0;
  uint64_t fault_operation = 0;

  void Fail(ncclResult_t result, const std::string& why) {
    if (state.load() != ncclSuccess && state.load() != ncclInProgress) return;
    error = why;
    state.store(result);
  }
  bool goes_on() const { return !abort.load(); }
  // Runs `body` in the background; the communicator is in progress until it returns.
  template <typename Body>
  ncclResult_t Begin(Body body) {
    if (background.joinable()) background.join();
    state.store(ncclInProgress);
    background = std::thread([this, body] {
      cuCtxSetCurrent(context);
      static std::atomic<uint32_t> begun{0};
      std::minstd_rand random(bowline::TestSeed() + ++begun);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 150));
      body();
      ncclResult_t busy = ncclInProgress;
      state.compare_exchange_strong(busy, ncclSuccess);
    });
    return ncclInProgress;
  }
};

namespace bowline::stand_in {

// The operations of one group, in a stream or a graph.
struct Launch {
  Launch(ncclComm_t where, std::vector<Task> what) : comm(where), tasks(std::move(what)), number(comm->operations++) {
    comm->in_streams.fetch_add(1);
  }
  ~Launch() { comm->in_streams.fetch_sub(1); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  const ncclComm_t comm;
  const std::vector<Task> tasks;
  const uint64_t number;
};

// Returns when all members are done, or the communicator was aborted; sets its error if there is one.
void RunLaunch(const Launch& launch);

}  // namespace bowline::stand_in

#endif  // BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_OPERATIONS_H_
