#include "runtime/comm/gloo/mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <ifaddrs.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// The group knows the deadlines, and interrupts.
constexpr auto kForever = std::chrono::hours(24 * 365);

// Gloo's messages begin with "[FILE:LINE] " of its own.
std::string WhatOf(const std::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] "); !text.empty() && text[0] == '[' && end != std::string::npos) {
    text.erase(0, end + 2);
  }
  return text;
}

template <typename Body>
absl::Status Guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return absl::UnavailableError(WhatOf(error));
  }
}

uint64_t SlotOf(Lane lane) { return static_cast<uint64_t>(lane); }

// Gloo looks for the interface of an address among all of them, and this version does not expect one without an
// address (such as some tunnels) before it finds it.
absl::Status CheckInterfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return absl::UnavailableError("the network interfaces cannot be listed");
  std::string without;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) without = i->ifa_name;
  }
  ::freeifaddrs(list);
  if (without.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("network interface ", without,
                                             " has no address, which this version of Gloo cannot bear; take it down "
                                             "or give it one"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<gloo::transport::Device>> CreateGlooDevice(const std::string& address) {
  BOWLINE_RETURN_IF_ERROR(CheckInterfaces());
  std::shared_ptr<gloo::transport::Device> device;
  const absl::Status status = Guarded([&] {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    device = gloo::transport::tcp::CreateDevice(attributes);
    return absl::OkStatus();
  });
  if (!status.ok()) return Annotate(status, absl::StrCat("address ", address, " of this machine"));
  return device;
}

absl::StatusOr<std::unique_ptr<GlooMesh>> GlooMesh::Create(std::shared_ptr<gloo::transport::Device> device, int self,
                                                           int size, std::chrono::nanoseconds timeout) {
  std::unique_ptr<GlooMesh> mesh(new GlooMesh(self));
  mesh->peers_.resize(static_cast<size_t>(size));
  mesh->addresses_.resize(static_cast<size_t>(size));
  if (size == 1) return mesh;
  BOWLINE_RETURN_IF_ERROR(Guarded([&] {
    mesh->context_ = device->createContext(self, size);
    // A connection is given five times as much.
    mesh->context_->setTimeout(
        std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(timeout / 5)));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == self) continue;
      const std::vector<char> bytes = mesh->context_->createPair(peer)->address().bytes();
      mesh->addresses_[static_cast<size_t>(peer)].assign(bytes.begin(), bytes.end());
      // All memory: an address is its offset.
      const auto whole = [&] {
        return mesh->context_->createUnboundBuffer(nullptr, std::numeric_limits<size_t>::max());
      };
      for (Buffers& buffers : mesh->peers_[static_cast<size_t>(peer)].lanes) {
        buffers.out = whole();
        buffers.in = whole();
      }
    }
    return absl::OkStatus();
  }));
  return mesh;
}

GlooMesh::GlooMesh(int self) : self_(self) {}
// Closes connections before the buffers are destroyed, to which Gloo's thread writes.
GlooMesh::~GlooMesh() { Close(); }

absl::Status GlooMesh::Connect(int peer, absl::string_view address) {
  absl::Status status = Guarded([&] {
    context_->getPair(peer)->connect(std::vector<char>(address.begin(), address.end()));
    return absl::OkStatus();
  });
  if (interrupted_) return absl::CancelledError("interrupted");
  return status;
}

absl::Status GlooMesh::Send(Lane lane, int peer, const void* from, size_t bytes) {
  if (interrupted_) return absl::CancelledError("interrupted");
  return Guarded([&] {
    peers_[static_cast<size_t>(peer)].lanes[SlotOf(lane)].out->send(peer, SlotOf(lane),
                                                                    reinterpret_cast<uintptr_t>(from), bytes);
    return absl::OkStatus();
  });
}

absl::Status GlooMesh::Receive(Lane lane, int peer, void* to, size_t bytes) {
  if (interrupted_) return absl::CancelledError("interrupted");
  return Guarded([&] {
    peers_[static_cast<size_t>(peer)].lanes[SlotOf(lane)].in->recv(peer, SlotOf(lane), reinterpret_cast<uintptr_t>(to),
                                                                   bytes);
    return absl::OkStatus();
  });
}

absl::Status GlooMesh::WaitSent(Lane lane, int peer) {
  if (interrupted_) return absl::CancelledError("interrupted");
  return Guarded([&] {
    const bool sent = peers_[static_cast<size_t>(peer)].lanes[SlotOf(lane)].out->waitSend(kForever);
    return sent ? absl::OkStatus() : absl::CancelledError("interrupted");
  });
}

absl::Status GlooMesh::WaitReceived(Lane lane, int peer) {
  if (interrupted_) return absl::CancelledError("interrupted");
  return Guarded([&] {
    const bool received = peers_[static_cast<size_t>(peer)].lanes[SlotOf(lane)].in->waitRecv(kForever);
    return received ? absl::OkStatus() : absl::CancelledError("interrupted");
  });
}

void GlooMesh::Interrupt() {
  interrupted_ = true;
  for (Peer& peer : peers_) {
    for (Buffers& buffers : peer.lanes) {
      if (buffers.in == nullptr) continue;
      buffers.in->abortWaitRecv();
      buffers.out->abortWaitSend();
    }
  }
  // Nothing else ends a wait for a connection.
  if (connecting_) Close();
}

void GlooMesh::Close() {
  if (context_ == nullptr) return;
  Guarded([&] {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != self_) context_->getPair(peer)->close();
    }
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace bowline
