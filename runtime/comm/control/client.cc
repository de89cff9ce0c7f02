#include "runtime/comm/control/client.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// The time that the client waits beyond a deadline that the hub keeps too, so that the hub's error comes first.
constexpr auto kHubsDelay = std::chrono::seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ControlClient::Join(Connection connection, const Hello& hello,
                                                                   const ControlTiming& timing,
                                                                   Clock::time_point deadline) {
  FileDescriptor wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoToStatus(errno, "eventfd");
  std::unique_ptr<ControlClient> client(new ControlClient(std::move(connection), std::move(wake), hello, timing));
  BOWLINE_RETURN_IF_ERROR(client->WaitForWelcome(deadline));
  return client;
}

ControlClient::ControlClient(Connection connection, FileDescriptor wake, const Hello& hello,
                             const ControlTiming& timing)
    : hello_(hello), timing_(timing), wake_(std::move(wake)), connection_(std::move(connection)) {
  address_ = LocalAddressOf(connection_.descriptor());
}

ControlClient::~ControlClient() {
  stop_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

absl::Status ControlClient::WaitForWelcome(Clock::time_point deadline) {
  while (true) {
    const absl::Status filled = connection_.Fill();
    while (true) {
      BOWLINE_ASSIGN_OR_RETURN(const std::optional<Message> message, connection_.Next());
      if (!message.has_value()) break;
      WireReader reader(message->payload);
      if (message->type == MessageType::kBroken) return reader.Status();
      if (message->type != MessageType::kWelcome) continue;
      const std::string hub = reader.Text();
      hub_where_ = reader.Text();
      // A rank of the hub's machine may know itself by an address that others do not reach.
      if (!hub.empty() && IsLoopbackAddress(address_)) address_ = hub;
      return absl::OkStatus();
    }
    if (!filled.ok()) {
      return absl::UnavailableError(
          absl::StrCat("rendezvous: rank 0 was there and is gone (", filled.message(), "); its output says more"));
    }
    if (Clock::now() > deadline + kHubsDelay ||
        !WaitForSocket(connection_.descriptor(), false, deadline + kHubsDelay)) {
      return absl::DeadlineExceededError("rendezvous: rank 0 is there, but does not say whether the others are");
    }
  }
}

void ControlClient::Start(ControlOwner* owner) {
  owner_ = owner;
  heard_ = next_beat_ = Clock::now();
  thread_ = std::thread([this] { Run(); });
}

void ControlClient::Put(const std::string& key, absl::string_view value) {
  Send(MessageType::kPut, WireWriter().Text(key).Text(value).bytes());
}

std::optional<std::string> ControlClient::Take(const std::string& key) {
  Send(MessageType::kGet, WireWriter().Text(key).bytes());
  std::unique_lock<std::mutex> lock(mutex_);
  while (broken_.ok()) {
    if (const auto found = values_.find(key); found != values_.end()) {
      std::string value = std::move(found->second);
      values_.erase(found);
      return value;
    }
    changed_.wait(lock);
  }
  return std::nullopt;
}

absl::Status ControlClient::status() const {
  if (!is_broken_.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

absl::Status ControlClient::Break(const absl::Status& why) {
  Send(MessageType::kBreak, WireWriter().Status(why).bytes());
  return WaitForVerdict(why);
}

absl::Status ControlClient::Fail(Complaint complaint) {
  complaint.rank = hello_.rank;
  WireWriter writer;
  Write(writer, complaint);
  Send(MessageType::kFailed, writer.bytes());
  return WaitForVerdict(ExplainHub(RankState::Health::kSilent));
}

absl::Status ControlClient::WaitForVerdict(const absl::Status& otherwise) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (broken_.ok() && !otherwise_.has_value()) {
    otherwise_ = otherwise;
    verdict_by_ = Clock::now() + 2 * timing_.answer();
    Wake();
  }
  changed_.wait(lock, [&] { return !broken_.ok(); });
  return broken_;
}

absl::Status ControlClient::Leave() {
  Send(MessageType::kLeave, {});
  std::unique_lock<std::mutex> lock(mutex_);
  leaving_ = true;
  leaving_since_ = Now();
  changed_.wait(lock, [&] { return done_ || !broken_.ok(); });
  return done_ ? absl::OkStatus() : broken_;
}

void ControlClient::Send(MessageType type, absl::string_view payload) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!connection_.open()) return;
    connection_.Queue(type, payload);
  }
  Wake();
}

void ControlClient::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void ControlClient::Run() {
  StallDetector stall(timing_.beat());
  while (!stop_) {
    CheckTime();
    pollfd descriptors[2] = {{wake_.get(), POLLIN, 0}, {-1, POLLIN, 0}};
    Clock::time_point until;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (connection_.open()) {
        if (!connection_.Flush().ok()) connection_.Fill().IgnoreError();  // its last messages
        descriptors[1].fd = connection_.descriptor();
        if (connection_.has_output()) descriptors[1].events |= POLLOUT;
      }
      until = next_beat_;
      if (otherwise_.has_value()) until = std::min(until, verdict_by_);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(descriptors, 2, static_cast<int>(std::clamp<int64_t>(wait, 0, 1000)));
    uint64_t drained = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &drained, sizeof(drained));
    if (const auto lost = stall.Tick(); lost.count() > 0) {
      lost_ += lost.count();
      const std::lock_guard<std::mutex> lock(mutex_);
      heard_ += lost;
    }
    if (descriptors[1].fd < 0 || descriptors[1].revents == 0) continue;

    absl::Status filled;
    std::vector<Message> messages;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      filled = connection_.Fill();
      while (true) {
        absl::StatusOr<std::optional<Message>> message = connection_.Next();
        if (!message.ok()) filled = message.status();
        if (!message.ok() || !message->has_value()) break;
        messages.push_back(std::move(**message));
      }
      heard_ = Clock::now();
    }
    for (const Message& message : messages) Handle(message);
    if (!filled.ok()) {
      bool done = false;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        connection_.Close();
        done = done_;
      }
      if (!done) SetBroken(ExplainHub(RankState::Health::kDead));
    }
  }
}

void ControlClient::Handle(const Message& message) {
  WireReader reader(message.payload);
  switch (message.type) {
    case MessageType::kValue: {
      const std::string key = reader.Text();
      const std::lock_guard<std::mutex> lock(mutex_);
      values_[key] = reader.Text();
      changed_.notify_all();
      return;
    }
    case MessageType::kAsk: {
      WireWriter writer;
      Write(writer, owner_->Activities());
      return Send(MessageType::kAnswer, writer.bytes());
    }
    case MessageType::kBroken:
      return SetBroken(reader.Status());
    case MessageType::kDone: {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      connection_.Close();
      changed_.notify_all();
      return;
    }
    default:
      return;  // kBeat, and messages that no hub sends
  }
}

void ControlClient::CheckTime() {
  const Clock::time_point now = Clock::now();
  if (is_broken_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_) return;
  }
  std::optional<Complaint> late = owner_->Overdue(Now());
  bool silent = false;
  std::optional<absl::Status> verdict;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (otherwise_.has_value()) {
      if (now >= verdict_by_) verdict = otherwise_;
      late.reset();
    } else if (!late.has_value() && leaving_ && Now() - leaving_since_ > timing_.timeout) {
      late.emplace();
      late->activity.leaving = true;
      late->waited_seconds = std::chrono::duration<double>(timing_.timeout).count();
    }
    if (now >= next_beat_) {
      next_beat_ = now + timing_.beat();
      if (!connection_.has_output()) connection_.Queue(MessageType::kBeat);
    }
    silent = now - heard_ > timing_.silence();
  }
  if (verdict.has_value()) return SetBroken(*verdict);
  if (silent) return SetBroken(ExplainHub(RankState::Health::kSilent));
  if (!late.has_value()) return;
  late->rank = hello_.rank;
  WireWriter writer;
  Write(writer, *late);
  Send(MessageType::kLate, writer.bytes());
  const absl::Status otherwise = ExplainHub(RankState::Health::kSilent);
  const std::lock_guard<std::mutex> lock(mutex_);
  otherwise_ = otherwise;
  verdict_by_ = now + 2 * timing_.answer();
}

absl::Status ControlClient::ExplainHub(RankState::Health health) const {
  std::vector<RankState> states(static_cast<size_t>(hello_.ranks));
  states[0].health = health;
  states[0].where = hub_where_;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    states[0].silent_seconds = std::chrono::duration<double>(Clock::now() - heard_).count();
  }
  RankState& own = states[static_cast<size_t>(hello_.rank)];
  if (hello_.rank != 0) own.activities = owner_->Activities();
  // Nobody says how far the others are.
  for (Activity& activity : own.activities) activity.collectives = 0;
  return Explain({}, states);
}

void ControlClient::SetBroken(const absl::Status& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!broken_.ok()) return;
    broken_ = why;
    is_broken_.store(true, std::memory_order_release);
    connection_.Flush().IgnoreError();
    connection_.Close();
    changed_.notify_all();
  }
  owner_->BreakOff();
}

}  // namespace bowline
