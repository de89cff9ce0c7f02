#include "test/Support/cuda_stand_in/nccl_transport.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace bowline::stand_in {

size_t Channel::Write(const char* from, size_t size) {
  const uint64_t begin = written.load(std::memory_order_relaxed);
  size = std::min<size_t>(size, kBytes - (begin - taken.load(std::memory_order_acquire)));
  const size_t place = begin % kBytes, first = std::min(size, kBytes - place);
  std::memcpy(bytes + place, from, first);
  std::memcpy(bytes, from + first, size - first);
  written.store(begin + size, std::memory_order_release);
  return size;
}

size_t Channel::Take(char* to, size_t size) {
  const uint64_t begin = taken.load(std::memory_order_relaxed);
  size = std::min<size_t>(size, written.load(std::memory_order_acquire) - begin);
  const size_t place = begin % kBytes, first = std::min(size, kBytes - place);
  std::memcpy(to, bytes + place, first);
  std::memcpy(to + first, bytes, size - first);
  taken.store(begin + size, std::memory_order_release);
  return size;
}

std::shared_ptr<Shared> Open(const std::string& name) {
  const int file = ::shm_open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::ftruncate(file, sizeof(Shared)) == 0) {
    memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<Shared*>(memory), [](Shared* shared) { ::munmap(shared, sizeof(Shared)); }};
}

void Unlink(const std::string& name) { ::shm_unlink(name.c_str()); }

namespace {

// How far the messages with one peer are.
struct Progress {
  std::deque<const Message*> messages;
  size_t done = 0;  // bytes of the first, with its header
  Header header;    // the received header
};

constexpr size_t kHeader = sizeof(Header);

// Move some of the first message; return whether anything moved.
bool Send(Channel& channel, Progress& progress) {
  const Message& message = *progress.messages.front();
  const bool header = progress.done < kHeader;
  const size_t moved =
      header ? channel.Write(reinterpret_cast<const char*>(&message.header) + progress.done, kHeader - progress.done)
             : channel.Write(message.bytes + progress.done - kHeader, kHeader + message.header.bytes - progress.done);
  progress.done += moved;
  return moved > 0;
}

bool Receive(Channel& channel, Progress& progress, const std::function<void(const Message&, const Header&)>& mismatch) {
  const Message& message = *progress.messages.front();
  if (progress.done >= kHeader && progress.header != message.header) return false;
  size_t moved = 0;
  if (progress.done < kHeader) {
    moved = channel.Take(reinterpret_cast<char*>(&progress.header) + progress.done, kHeader - progress.done);
    if (progress.done + moved == kHeader && progress.header != message.header) mismatch(message, progress.header);
  } else {
    moved = channel.Take(message.bytes + progress.done - kHeader, kHeader + message.header.bytes - progress.done);
  }
  progress.done += moved;
  return moved > 0;
}

bool Finished(Progress& progress) {
  if (progress.done < kHeader + progress.messages.front()->header.bytes) return false;
  progress.messages.pop_front();
  progress.done = 0;
  return true;
}

}  // namespace

bool Exchange(Shared& shared, int self, const std::vector<Message>& sends, const std::vector<Message>& receives,
              const std::function<bool()>& goes_on,
              const std::function<void(const Message&, const Header&)>& mismatch) {
  std::array<Progress, kMostRanks> out, in;
  for (const Message& message : sends) out[static_cast<size_t>(message.peer)].messages.push_back(&message);
  for (const Message& message : receives) in[static_cast<size_t>(message.peer)].messages.push_back(&message);
  size_t left = sends.size() + receives.size();
  for (int idle = 0; left > 0;) {
    if (!goes_on()) return false;
    bool moved = false;
    for (int peer = 0; peer < kMostRanks; ++peer) {
      Progress &to = out[static_cast<size_t>(peer)], &from = in[static_cast<size_t>(peer)];
      if (!to.messages.empty()) {
        moved |= Send(shared.channels[self][peer], to);
        left -= Finished(to) ? 1 : 0;
      }
      if (!from.messages.empty()) {
        moved |= Receive(shared.channels[peer][self], from, mismatch);
        left -= from.header == from.messages.front()->header && Finished(from) ? 1 : 0;
      }
    }
    idle = moved ? 0 : idle + 1;
    if (idle > 50) {
      std::this_thread::sleep_for(std::chrono::microseconds(idle > 1000 ? 500 : 20));
    } else if (!moved) {
      std::this_thread::yield();
    }
  }
  return true;
}

}  // namespace bowline::stand_in
