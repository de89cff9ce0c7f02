#ifndef BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_TRANSPORT_H_
#define BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_TRANSPORT_H_

// Memory of the system that the members of a communicator of the stand-in share, so that they may be threads or
// processes, without a lock that a process could take with it when it dies.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bowline::stand_in {

constexpr int kMostRanks = 8;

// Bytes from one member to another, in order.
struct Channel {
  static constexpr size_t kBytes = size_t{1} << 16;
  std::atomic<uint64_t> written, taken;
  char bytes[kBytes];

  // Move as much as there is room for, or as there is; return how much.
  size_t Write(const char* from, size_t size);
  size_t Take(char* to, size_t size);
};

struct Shared {
  std::atomic<int> card[kMostRanks];  // of the members that came, and 1 more
  std::atomic<int> done[kMostRanks];  // members that want no more operations
  Channel channels[kMostRanks][kMostRanks];
};

// Maps the memory of that name, which is zeros at first. Null where the system has none.
std::shared_ptr<Shared> Open(const std::string& name);
// No more members open it.
void Unlink(const std::string& name);

// The description that an operation sends to each member that it concerns.
struct Header {
  uint32_t kind = 0, type = 0, reduction = 0, sequence = 0;
  uint64_t bytes = 0;
  bool operator==(const Header&) const = default;
};

// One message to a member, or from it.
struct Message {
  int peer = 0;
  Header header;
  char* bytes = nullptr;  // header.bytes of them
};

// Sends and receives all messages, those of each pair of members in their order, while `goes_on` says so. Returns false
// if it does not; sets `mismatch` where a member sent something else than this one expects, and then waits as well.
bool Exchange(Shared& shared, int self, const std::vector<Message>& sends, const std::vector<Message>& receives,
              const std::function<bool()>& goes_on, const std::function<void(const Message&, const Header&)>& mismatch);

}  // namespace bowline::stand_in

#endif  // BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_NCCL_TRANSPORT_H_
