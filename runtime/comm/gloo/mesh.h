#ifndef BOWLINE_RUNTIME_COMM_GLOO_MESH_H_
#define BOWLINE_RUNTIME_COMM_GLOO_MESH_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace gloo::transport {
class Context;
class Device;
class UnboundBuffer;
}  // namespace gloo::transport

namespace bowline {

// Independent sequences of messages between two members.
enum class Lane { kHeader, kData };

// A TCP connection between any two members of a communicator, by Gloo. Messages of a lane arrive in order; a message
// leaves when its receiver has named a place for it. Exceptions of Gloo become kUnavailable. A wait that Interrupt
// ended returns kCancelled.
//
// Gloo allocates for every message: an entry in a map and a queue. Sizes and buffers have no part in it.
class GlooMesh {
 public:
  // Connecting to a member takes at most `timeout`.
  static absl::StatusOr<std::unique_ptr<GlooMesh>> Create(std::shared_ptr<gloo::transport::Device> device, int self,
                                                          int size, std::chrono::nanoseconds timeout);
  ~GlooMesh();

  int self() const { return self_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // The addresses to which the other members connect, one for each of them. Connect takes the address that member
  // `peer` has for this one; members are connected one at a time, in order.
  const std::vector<std::string>& addresses() const { return addresses_; }
  absl::Status Connect(int peer, absl::string_view address);
  // Says that all members are connected.
  void Connected() { connecting_ = false; }

  // Start a transfer, of `bytes` > 0, and wait for the oldest of its kind that was not waited for. At most one thread
  // at a time. Memory stays in use until the wait returned, or Close.
  absl::Status Send(Lane lane, int peer, const void* from, size_t bytes);
  absl::Status Receive(Lane lane, int peer, void* to, size_t bytes);
  absl::Status WaitSent(Lane lane, int peer);
  absl::Status WaitReceived(Lane lane, int peer);

  // Ends the waits of now and later; may be called from any thread.
  void Interrupt();
  // Closes all connections. No memory is touched after it.
  void Close();

 private:
  struct Buffers {
    std::unique_ptr<gloo::transport::UnboundBuffer> out, in;
  };
  struct Peer {
    Buffers lanes[2];
  };

  explicit GlooMesh(int self);

  const int self_;
  std::atomic<bool> interrupted_{false}, connecting_{true};
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<std::string> addresses_;
  std::vector<Peer> peers_;
};

// The transport of all meshes of a process, with a thread of its own. `address` is one of this machine's, numeric.
absl::StatusOr<std::shared_ptr<gloo::transport::Device>> CreateGlooDevice(const std::string& address);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_MESH_H_
