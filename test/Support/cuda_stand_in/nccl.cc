// A stand-in for NCCL (libnccl.so.2), for tests of the cuda driver on machines without a card: the functions that it
// calls, among threads and processes of one machine, on the stand-in for the driver. Sums go around a ring as NCCL's
// do: they begin at another member for each part, and are rounded at each member.
//
// It is as strict as NCCL, or stricter. A communicator never blocks: an operation goes on in the background, and
// another call meanwhile is an error. Members on one card, memory that is not the card's own, and operations that do
// not match are errors. The process ends where a program would use freed objects: calls on a communicator
// that was freed, or by two threads at once, memory that is freed while it is registered, and communicators that are
// freed before they were finalised. As with NCCL, a communicator is not finalised, and not freed either, before all
// graphs are gone that have operations of it.
//
// BOWLINE_STAND_IN_NCCL_FAULT="MEMBER NUMBER RESULT" makes the operation of that number, from 0, fail on that member of
// every communicator, by itself, with the result. BOWLINE_STAND_IN_NCCL_CALL_FAULT="NAME MEMBER RESULT" makes the call
// of that name return the result on that member and do nothing more; ncclInProgress (7) makes it wait for an abort.

#include <cuda.h>
#include <nccl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/Support/cuda_stand_in/nccl_operations.h"
#include "test/Support/cuda_stand_in/stand_in.h"

namespace stand_in = bowline::stand_in;
using stand_in::Header;
using stand_in::kMostRanks;
using stand_in::Launch;
using stand_in::Message;
using stand_in::Misused;
using stand_in::SizeOf;
using stand_in::Task;
using enum stand_in::Kind;

namespace {

std::mutex& mutex = *new std::mutex();
std::set<ncclComm_t>& comms = *new std::set<ncclComm_t>();
thread_local int depth = 0;
thread_local std::vector<Task> tasks;
thread_local std::vector<ncclComm_t> aborted;  // in the group that is open, at whose end they are freed

void CheckIsThere(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!comms.contains(comm)) Misused("a call on a communicator that is not there (any more)");
}

// A call of the program on a communicator. To abort is none: another thread may, whatever is under way.
class Call {
 public:
  Call(ncclComm_t comm, bool may_be_busy) : comm_(comm) {
    CheckIsThere(comm);
    if (comm->in_call.exchange(true)) Misused("two threads call on one communicator at once");
    if (may_be_busy) return;
    if (comm->finalized) result_ = ncclInvalidUsage;
    if (const ncclResult_t state = comm->state.load(); state != ncclSuccess) {
      result_ = state == ncclInProgress ? ncclInvalidArgument : state;
    }
  }
  ~Call() { comm_->in_call.store(false); }
  ncclResult_t result() const { return result_; }

 private:
  ncclComm_t comm_;
  ncclResult_t result_ = ncclSuccess;
};

// The result that was asked for of this call on this member; ncclSuccess where none was.
ncclResult_t FaultOf(const std::string& call, ncclComm_t comm) {
  const char* const asked = std::getenv("BOWLINE_STAND_IN_NCCL_CALL_FAULT");
  std::array<char, 64> name = {};
  int member = -1, result = 0;
  if (asked == nullptr || std::sscanf(asked, "%63s %d %d", name.data(), &member, &result) != 3) return ncclSuccess;
  if (call != name.data() || member != comm->rank) return ncclSuccess;
  // When the other members are in the same call.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  while (result == ncclInProgress && comm->goes_on()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return result == ncclInProgress ? ncclInternalError : static_cast<ncclResult_t>(result);
}

bool IsOfTheCard(const void* memory, size_t bytes) {
  CUdeviceptr begin = 0;
  size_t size = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  return bytes == 0 ||
         (cuMemGetAddressRange(&begin, &size, address) == CUDA_SUCCESS && bytes <= size - (address - begin));
}

ncclResult_t Add(const Task& task) {
  const Call call(task.comm, false);
  if (call.result() != ncclSuccess) return call.result();
  CUdevice card = -1;
  cuCtxGetDevice(&card);
  const size_t bytes = task.count * SizeOf(task.type);
  const auto ranks = static_cast<size_t>(task.comm->ranks);
  const bool sends = task.kind != kReceive, receives = task.kind != kSend;
  if (card != task.comm->card || SizeOf(task.type) == 0 || task.peer < 0 || task.peer >= task.comm->ranks ||
      (sends && !IsOfTheCard(task.send, task.kind == kReduceScatter ? bytes * ranks : bytes)) ||
      (receives && !IsOfTheCard(task.receive, task.kind == kAllGather ? bytes * ranks : bytes))) {
    task.comm->error = "an argument that is not possible";
    return ncclInvalidArgument;
  }
  tasks.push_back(task);
  return ncclSuccess;
}

ncclResult_t LaunchTasks() {
  if (tasks.empty()) return ncclSuccess;
  ncclComm_t const comm = tasks.front().comm;
  for (const Task& task : tasks) {
    if (task.comm != comm || task.stream != tasks.front().stream) Misused("a group of several communicators");
  }
  const Call call(comm, false);
  if (call.result() != ncclSuccess) return call.result();
  const auto launch = std::make_shared<const Launch>(comm, std::exchange(tasks, {}));
  return comm->Begin([launch] {
    const CUstream stream = launch->tasks.front().stream;
    std::vector<CUdeviceptr> used;
    for (const Task& task : launch->tasks) {
      used.push_back(reinterpret_cast<CUdeviceptr>(task.send));
      used.push_back(reinterpret_cast<CUdeviceptr>(task.receive));
    }
    CUresult result = stand_in::CheckStream(stream);
    if (result == CUDA_SUCCESS) {
      result = stand_in::Issue(stream, [launch, held = stand_in::Held(used)] {
        if (!held.IsAlive()) return CUDA_ERROR_ILLEGAL_ADDRESS;
        stand_in::RunLaunch(*launch);
        return CUDA_SUCCESS;
      });
    }
    if (result != CUDA_SUCCESS) launch->comm->Fail(ncclUnhandledCudaError, "the stream takes no operation");
  });
}

// An operation outside of a group is one of its own.
ncclResult_t Enqueue(const Task& task) {
  const ncclResult_t result = Add(task);
  return depth > 0 || result != ncclSuccess ? result : LaunchTasks();
}

ncclComm_t NewComm(const std::string& name, int rank, int ranks) {
  auto comm = std::make_unique<ncclComm>();
  comm->name = name;
  comm->rank = rank;
  comm->ranks = ranks;
  if (cuCtxGetCurrent(&comm->context) != CUDA_SUCCESS || cuCtxGetDevice(&comm->card) != CUDA_SUCCESS) return nullptr;
  if (const char* fault = std::getenv("BOWLINE_STAND_IN_NCCL_FAULT"); fault != nullptr) {
    unsigned long long operation = 0;
    std::sscanf(fault, "%d %llu %d", &comm->fault_member, &operation, &comm->fault_result);
    comm->fault_operation = operation;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  comms.insert(comm.get());
  return comm.release();
}

// Until all members are there. `caller` is the communicator that is in progress meanwhile.
void Meet(ncclComm& comm, const ncclComm& caller) {
  comm.shared = stand_in::Open(comm.name);
  if (comm.shared == nullptr) return comm.Fail(ncclSystemError, "no shared memory");
  std::atomic<int>* const cards = comm.shared->card;
  if (cards[comm.rank].exchange(comm.card + 1) != 0) return comm.Fail(ncclInvalidUsage, "two members are one rank");
  for (int other = 0; other < comm.ranks; ++other) {
    while (cards[other].load() == 0 && caller.goes_on()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (other != comm.rank && cards[other].load() == comm.card + 1) {
      comm.Fail(ncclInvalidUsage, "Duplicate GPU detected");
    }
  }
  if (comm.rank == 0) stand_in::Unlink(comm.name);
}

bool IsSupported(const ncclConfig_t* config) {
  return config != nullptr && config->magic == 0xcafebeef && config->blocking == 0;
}

void Free(ncclComm_t comm) {
  while (comm->in_call.load()) std::this_thread::yield();
  if (comm->background.joinable()) comm->background.join();
  while (comm->in_streams.load() > 0) std::this_thread::yield();
  const std::lock_guard<std::mutex> lock(mutex);
  comms.erase(comm);
  delete comm;
}

// Colour and place of a member of a communicator that is divided.
struct Choice {
  int color = 0, key = 0;
};

// NCCL stores what it made on its own thread, also what it could not connect, and late.
void StoreUnconnected(ncclComm_t child, ncclComm_t* made) {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  child->state.store(ncclRemoteError);
  *made = child;
}

void Split(ncclComm& parent, Choice own, ncclComm_t* made) {
  std::vector<Choice> all(static_cast<size_t>(parent.ranks));
  std::vector<Message> sends, receives;
  for (int other = 0; other < parent.ranks; ++other) {
    const Header header = {kSplit, 0, 0, parent.sequences[other]++, sizeof(Choice)};
    sends.push_back({other, header, reinterpret_cast<char*>(&own)});
    receives.push_back({other, header, reinterpret_cast<char*>(&all[static_cast<size_t>(other)])});
  }
  if (!stand_in::Exchange(
          *parent.shared, parent.rank, sends, receives, [&] { return parent.goes_on(); },
          [&](const Message&, const Header&) { parent.Fail(ncclInvalidUsage, "a member does not split"); })) {
    return StoreUnconnected(NewComm(parent.name, parent.rank, parent.ranks), made);
  }
  int ranks = 0, rank = 0;
  for (int other = 0; other < parent.ranks; ++other) {
    const Choice& theirs = all[static_cast<size_t>(other)];
    if (theirs.color != own.color) continue;
    ++ranks;
    rank += theirs.key < own.key || (theirs.key == own.key && other < parent.rank);
  }
  if (own.color == NCCL_SPLIT_NOCOLOR) return;
  ncclComm_t const child =
      NewComm(parent.name + "-" + std::to_string(parent.splits) + "-" + std::to_string(own.color), rank, ranks);
  Meet(*child, parent);
  if (!parent.goes_on()) return StoreUnconnected(child, made);
  child->state.store(ncclSuccess);
  *made = child;
}

}  // namespace

// For tests: how many communicators of this process are not freed.
STAND_IN int bowlineStandInCommunicators() {
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(comms.size());
}
STAND_IN ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
STAND_IN const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error of the stand-in";
}
STAND_IN const char* ncclGetLastError(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  return comms.contains(comm) ? comm->error.c_str() : "";
}
STAND_IN ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  // No other process has it, nor had one that left its memory behind.
  static std::atomic<unsigned> made{0};
  std::snprintf(id->internal, sizeof(id->internal), "/bowline-stand-in-%x-%x-%llx", static_cast<unsigned>(::getpid()),
                ++made, static_cast<unsigned long long>(std::chrono::system_clock::now().time_since_epoch().count()));
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t* config) {
  if (id.internal[0] == '\0') Misused("an id that no member made");
  if (!IsSupported(config) || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  ncclComm_t const comm = NewComm(id.internal, rank, ranks);
  if (comm == nullptr) return ncclUnhandledCudaError;
  *made = comm;
  if (const ncclResult_t fault = FaultOf("ncclCommInitRankConfig", comm); fault != ncclSuccess) return fault;
  return comm->Begin([comm] { Meet(*comm, *comm); });
}
STAND_IN ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  const Call call(parent, false);
  if (call.result() != ncclSuccess) return call.result();
  if (!IsSupported(config)) return ncclInvalidArgument;
  *made = nullptr;
  if (const ncclResult_t fault = FaultOf("ncclCommSplit", parent); fault != ncclSuccess) return fault;
  ++parent->splits;
  return parent->Begin([=] { Split(*parent, {color, key}, made); });
}
STAND_IN ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Call call(comm, true);
  *state = comm->state.load();
  // NCCL ends the thread of finished work here: this is no mere look. It takes a moment, for another to come by.
  if (*state != ncclInProgress && comm->background.joinable()) comm->background.join();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call(comm, false);
  if (call.result() != ncclSuccess) return call.result();
  comm->finalized.store(true);
  return comm->Begin([comm] {
    while (comm->in_streams.load() > 0 && comm->goes_on()) std::this_thread::yield();
    comm->shared->done[comm->rank].store(1);
    for (int other = 0; other < comm->ranks; ++other) {
      while (comm->shared->done[other].load() == 0 && comm->goes_on()) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  });
}
STAND_IN ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  CheckIsThere(comm);
  if (comm->in_call.load()) Misused("freed while a thread calls");
  if (!comm->finalized.load() || comm->state.load() == ncclInProgress) Misused("freed before it was finalised");
  if (!comm->registered.empty()) Misused("freed before memory was taken back that is registered with it");
  Free(comm);
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclCommAbort(ncclComm_t comm) {
  CheckIsThere(comm);
  comm->abort.store(true);
  for (const auto& [handle, address] : comm->registered) stand_in::CountUse(address, -1);
  if (depth > 0) {
    aborted.push_back(comm);
  } else {
    Free(comm);
  }
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, size_t bytes, void** handle) {
  const Call call(comm, false);
  if (call.result() != ncclSuccess) return call.result();
  if (bytes == 0 || !IsOfTheCard(memory, bytes)) return ncclInvalidArgument;
  if (const ncclResult_t fault = FaultOf("ncclCommRegister", comm); fault != ncclSuccess) return fault;
  *handle = new char;
  comm->registered[*handle] = reinterpret_cast<CUdeviceptr>(memory);
  stand_in::CountUse(reinterpret_cast<CUdeviceptr>(memory), 1);
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  const Call call(comm, false);
  if (call.result() != ncclSuccess) return call.result();
  const auto found = comm->registered.find(handle);
  if (found == comm->registered.end()) return ncclInvalidArgument;
  stand_in::CountUse(found->second, -1);
  comm->registered.erase(found);
  delete static_cast<char*>(handle);
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  for (ncclComm_t const comm : std::exchange(aborted, {})) Free(comm);
  return LaunchTasks();
}
STAND_IN ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                                    ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return Enqueue({comm, kAllReduce, static_cast<const char*>(send), static_cast<char*>(receive), count, type, reduction,
                  0, reinterpret_cast<CUstream>(stream)});
}
STAND_IN ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                                    cudaStream_t stream) {
  return Enqueue({comm, kAllGather, static_cast<const char*>(send), static_cast<char*>(receive), count, type, ncclSum,
                  0, reinterpret_cast<CUstream>(stream)});
}
STAND_IN ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                        ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return Enqueue({comm, kReduceScatter, static_cast<const char*>(send), static_cast<char*>(receive), count, type,
                  reduction, 0, reinterpret_cast<CUstream>(stream)});
}
STAND_IN ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                               cudaStream_t stream) {
  return Enqueue({comm, kSend, static_cast<const char*>(send), nullptr, count, type, ncclSum, peer,
                  reinterpret_cast<CUstream>(stream)});
}
STAND_IN ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                               cudaStream_t stream) {
  return Enqueue({comm, kReceive, nullptr, static_cast<char*>(receive), count, type, ncclSum, peer,
                  reinterpret_cast<CUstream>(stream)});
}
