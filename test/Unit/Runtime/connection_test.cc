// The messages between a rank and the hub.

#include "runtime/comm/control/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

#include "runtime/comm/control/client.h"

namespace bowline {
namespace {

struct Pair {
  Connection connection;
  FileDescriptor other;
};

Pair MakePair() {
  std::array<int, 2> sockets = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets.data()), 0);
  return {Connection(FileDescriptor(sockets[0])), FileDescriptor(sockets[1])};
}

TEST(ConnectionTest, MessagesComeAsTheyWereSent) {
  Pair pair = MakePair();
  Connection sender(std::move(pair.other));
  const std::string large(300'000, 'q');
  for (int i = 0; i < 5; ++i) {
    sender.Queue(MessageType::kBeat);
    sender.Queue(MessageType::kValue, large + std::to_string(i));
  }
  pair.connection.set_limit(Connection::kMaxMessage);
  int found = 0;
  while (found < 10) {
    ASSERT_TRUE(sender.Flush().ok());
    ASSERT_TRUE(pair.connection.Fill().ok());
    while (true) {
      const auto message = pair.connection.Next();
      ASSERT_TRUE(message.ok()) << message.status();
      if (!message->has_value()) break;
      EXPECT_EQ((**message).type, found % 2 == 0 ? MessageType::kBeat : MessageType::kValue);
      EXPECT_EQ((**message).payload, found % 2 == 0 ? "" : large + std::to_string(found / 2));
      ++found;
    }
  }
}

// A flood of messages without an end must not delay the deadline.
TEST(ConnectionTest, AFloodOfMessagesDoesNotOutlastTheDeadline) {
  Pair pair = MakePair();
  std::string beats;
  for (int i = 0; i < 4096; ++i) beats.append("\1\0\0\0\5", 5);
  ASSERT_EQ(static_cast<int>(beats[4]), static_cast<int>(MessageType::kBeat));
  std::atomic<bool> ended{false};
  std::thread flood([&] {
    for (size_t at = 0; !ended;) {
      const ssize_t sent = ::send(pair.other.get(), beats.data() + at, beats.size() - at, MSG_NOSIGNAL);
      if (sent > 0) at = (at + static_cast<size_t>(sent)) % beats.size();
    }
  });
  pair.connection.set_limit(Connection::kMaxMessage);
  const auto client = ControlClient::Join(std::move(pair.connection), Hello(), ControlTiming(),
                                          std::chrono::steady_clock::now() - std::chrono::seconds(2));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kDeadlineExceeded) << client.status();
  ended = true;
  flood.join();
}

}  // namespace
}  // namespace bowline
