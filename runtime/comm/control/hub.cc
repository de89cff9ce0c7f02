#include "runtime/comm/control/hub.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

// The time that a stranger has to identify itself, and the most strangers at once.
constexpr auto kStrangerPatience = std::chrono::seconds(10);
constexpr size_t kMaxStrangers = 256;
// The longest time for which the hub keeps connections open at its end, so that its last messages arrive.
constexpr auto kLinger = std::chrono::milliseconds(300);

}  // namespace

std::string CommunicatorKey(absl::string_view communicator, int rank) {
  return absl::StrCat("communicator/", rank, "/", communicator);
}

std::string Hello::Encode() const {
  return WireWriter().Text(kMagic).I32(rank).I32(ranks).Text(job).Text(token).Text(where).U64(patience).bytes();
}

bool Hello::Decode(absl::string_view bytes, Hello& hello) {
  WireReader reader(bytes);
  if (reader.Text() != kMagic) return false;
  hello.rank = reader.I32();
  hello.ranks = reader.I32();
  hello.job = reader.Text();
  hello.token = reader.Text();
  hello.where = reader.Text();
  hello.patience = reader.U64();
  return reader.complete();
}

absl::StatusOr<std::unique_ptr<Hub>> Hub::Start(FileDescriptor listener, const HubOptions& options) {
  FileDescriptor wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoToStatus(errno, "eventfd");
  std::unique_ptr<Hub> hub(new Hub(std::move(listener), std::move(wake), options));
  hub->thread_ = std::thread([hub = hub.get()] { hub->Run(); });
  return hub;
}

Hub::Hub(FileDescriptor listener, FileDescriptor wake, const HubOptions& options)
    : options_(options),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      ranks_(static_cast<size_t>(options.ranks)),
      give_up_(Clock::now() + options.rendezvous_timeout),
      next_beat_(Clock::now()) {}

Hub::~Hub() {
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void Hub::Run() {
  StallDetector stall(options_.timing.beat());
  while (!stop_) {
    WaitForEvents();
    if (const auto lost = stall.Tick(); lost.count() > 0) {
      for (const auto& peer : peers_) peer->heard += lost;
      conclude_at_ += lost;
    }
    CheckTime();
    for (const auto& peer : peers_) {
      if (peer->connection.open() && !peer->connection.Flush().ok()) Lose(*peer);
    }
    // Lose may have closed connections.
    std::erase_if(peers_, [](const auto& peer) { return !peer->connection.open(); });
  }
  Linger();
}

void Hub::Linger() {
  // Closing a socket with something unread discards the sent data. The others close when they know that all are done,
  // or which error broke the run.
  const Clock::time_point end = Clock::now() + kLinger;
  while (!peers_.empty() && Clock::now() < end && (done_ || broken_)) {
    for (const auto& peer : peers_) {
      const bool gone = !peer->connection.Flush().ok() || !peer->connection.Fill().ok();
      while (!gone && peer->connection.Next().value_or(std::nullopt).has_value()) {
      }
      if (gone) peer->connection.Close();
    }
    std::erase_if(peers_, [](const auto& peer) { return !peer->connection.open(); });
    if (!peers_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Hub::WaitForEvents() {
  std::vector<pollfd> descriptors = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const auto& peer : peers_) {
    const auto events = static_cast<short>(peer->connection.has_output() ? POLLIN | POLLOUT : POLLIN);
    descriptors.push_back({peer->connection.descriptor(), events, 0});
  }
  Clock::time_point until = next_beat_;
  if (inquiring_) until = std::min(until, conclude_at_);
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (::poll(descriptors.data(), descriptors.size(), static_cast<int>(std::clamp<int64_t>(wait, 0, 1000))) <= 0) return;
  const size_t known = peers_.size();
  for (size_t i = 0; i < known; ++i) {
    if ((descriptors[i + 2].revents & ~POLLOUT) != 0) ReadFrom(*peers_[i]);
  }
  if ((descriptors[1].revents & POLLIN) != 0) Accept();
}

void Hub::Accept() {
  while (true) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;
    std::vector<Peer*> strangers;
    for (const auto& peer : peers_) {
      if (peer->rank < 0 && peer->connection.open()) strangers.push_back(peer.get());
    }
    // The one that says nothing for the longest time makes room.
    if (strangers.size() >= kMaxStrangers) strangers[0]->connection.Close();
    auto peer = std::make_unique<Peer>();
    peer->connection = Connection(std::move(socket));
    peer->connected = peer->heard = Clock::now();
    peers_.push_back(std::move(peer));
  }
}

void Hub::ReadFrom(Peer& peer) {
  if (!peer.connection.open()) return;
  const absl::Status filled = peer.connection.Fill();
  while (peer.connection.open()) {
    absl::StatusOr<std::optional<Message>> message = peer.connection.Next();
    if (!message.ok()) return Lose(peer);
    if (!message->has_value()) break;
    Handle(peer, **message);
  }
  if (!filled.ok() && peer.connection.open()) Lose(peer);
}

void Hub::Handle(Peer& peer, const Message& message) {
  if (peer.rank < 0) return HandleHello(peer, message);
  peer.heard = Clock::now();
  Rank& rank = ranks_[static_cast<size_t>(peer.rank)];
  WireReader reader(message.payload);
  switch (message.type) {
    case MessageType::kPut: {
      const std::string key = reader.Text();
      const std::string& value = values_[key] = reader.Text();
      for (int other : std::exchange(waiting_[key], {})) {
        Peer* waits = ranks_[static_cast<size_t>(other)].peer;
        if (waits != nullptr) waits->connection.Queue(MessageType::kValue, WireWriter().Text(key).Text(value).bytes());
      }
      waiting_.erase(key);
      return;
    }
    case MessageType::kGet: {
      const std::string key = reader.Text();
      if (const auto found = values_.find(key); found != values_.end()) {
        peer.connection.Queue(MessageType::kValue, WireWriter().Text(key).Text(found->second).bytes());
      } else {
        waiting_[key].push_back(peer.rank);
      }
      return;
    }
    case MessageType::kLate:
    case MessageType::kFailed: {
      Complaint complaint = ReadComplaint(reader);
      complaint.rank = peer.rank;
      return Inquire(complaint);
    }
    case MessageType::kBreak:
      return Break(reader.Status());
    case MessageType::kAnswer:
      rank.activities = ReadActivities(reader);
      rank.answered = true;
      return;
    case MessageType::kLeave:
      rank.left = true;
      rank.activities.clear();
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.left; })) {
        done_ = true;
        SendToAll(MessageType::kDone);
      }
      return;
    default:
      return;  // kBeat, and messages that no rank sends
  }
}

void Hub::HandleHello(Peer& peer, const Message& message) {
  const bool probe = message.type == MessageType::kProbe;
  Hello hello;
  if ((message.type != MessageType::kHello && !probe) || !Hello::Decode(message.payload, hello)) {
    return peer.connection.Close();
  }
  if (hello.job != options_.job) {
    return Reject(peer, RejectReason::kOtherRun,
                  absl::UnavailableError(
                      absl::StrCat("a run with the job id '", options_.job, "' is there, not '", hello.job, "'")));
  }
  if (hello.token != options_.token) {
    return Reject(peer, RejectReason::kOtherRun, absl::UnavailableError("a run that meets elsewhere is there"));
  }
  if (broken_) return Reject(peer, RejectReason::kBroken, why_broken_);
  if (done_) return Reject(peer, RejectReason::kOtherRun, absl::UnavailableError("a run that is done is there"));
  const auto twice = [&](absl::string_view where) {
    return absl::InvalidArgumentError(absl::StrCat("two processes are rank ", hello.rank, ": ", where, ", and ",
                                                   hello.where, "; give each a rank of its own"));
  };
  if (probe) {
    const std::string& where = ranks_[0].where;
    return Reject(peer, RejectReason::kWrong, twice(where.empty() ? "one that has just started" : where));
  }
  if (hello.ranks != options_.ranks || hello.rank < 0 || hello.rank >= options_.ranks) {
    return Reject(peer, RejectReason::kWrong,
                  absl::InvalidArgumentError(absl::StrCat(
                      "rank ", hello.rank, " (", hello.where, ") was started as one of ", hello.ranks,
                      " ranks, but rank 0 as one of ", options_.ranks, "; start all with the same number of ranks")));
  }
  Rank& rank = ranks_[static_cast<size_t>(hello.rank)];
  if (rank.came) {
    refused_rank_ = hello.rank;
    return Reject(peer, RejectReason::kTwice, twice(rank.where));
  }
  if (refused_rank_ == hello.rank) refused_.clear();
  rank.came = true;
  rank.peer = &peer;
  rank.where = hello.where;
  peer.rank = hello.rank;
  peer.heard = Clock::now();
  peer.connection.set_limit(Connection::kMaxMessage);
  peer.connection.Queue(MessageType::kAccepted);
  if (const std::string local = LocalAddressOf(peer.connection.descriptor());
      address_.empty() && !IsLoopbackAddress(local)) {
    address_ = local;
  }
  const auto patience = std::chrono::nanoseconds(std::min<uint64_t>(hello.patience, uint64_t{1} << 60));
  rank.give_up = Clock::now() + patience;
  if (Missing().empty()) Welcome();
}

void Hub::Reject(Peer& peer, RejectReason reason, const absl::Status& why) {
  if (reason == RejectReason::kWrong || reason == RejectReason::kTwice) refused_ = std::string(why.message());
  peer.connection.Queue(MessageType::kRejected, WireWriter().U8(static_cast<uint8_t>(reason)).Status(why).bytes());
  peer.connection.Flush().IgnoreError();
  peer.connection.Close();
}

void Hub::Welcome() {
  welcomed_ = true;
  for (const auto& peer : peers_) peer->heard = Clock::now();
  SendToAll(MessageType::kWelcome, WireWriter().Text(address_).Text(ranks_[0].where).bytes());
}

std::vector<int> Hub::Missing() const {
  std::vector<int> missing;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].came) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

void Hub::CheckTime() {
  const Clock::time_point now = Clock::now();
  for (const auto& peer : peers_) {
    if (peer->rank < 0 && now - peer->connected > kStrangerPatience) peer->connection.Close();
  }
  Clock::time_point give_up = give_up_;
  for (const Rank& rank : ranks_) {
    if (rank.came) give_up = std::min(give_up, rank.give_up);
  }
  if (!welcomed_ && !broken_ && now >= give_up) {
    const std::vector<int> missing = Missing();
    const double seconds = std::chrono::duration<double>(options_.rendezvous_timeout).count();
    Break(absl::DeadlineExceededError(
        absl::StrCat("rendezvous: ", missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "), " of ",
                     options_.ranks, " did not come within ", seconds, " s; ",
                     refused_.empty() ? "see why they did not start, or raise the timeout of the rendezvous"
                                      : absl::StrCat("one that came was refused: ", refused_))));
  }
  if (now >= next_beat_) {
    next_beat_ = now + options_.timing.beat();
    for (const auto& peer : peers_) {
      // A peer that does not read needs no more of them.
      if (peer->rank >= 0 && !peer->connection.has_output()) peer->connection.Queue(MessageType::kBeat);
      if (peer->rank >= 0 && welcomed_ && !inquiring_ && !ranks_[static_cast<size_t>(peer->rank)].left &&
          now - peer->heard > options_.timing.silence()) {
        Inquire({});
      }
    }
  }
  if (!inquiring_ || broken_) return;
  const bool all = std::all_of(ranks_.begin(), ranks_.end(),
                               [](const Rank& rank) { return rank.answered || rank.dead || rank.left; });
  if (all || now >= conclude_at_) Conclude();
}

void Hub::Lose(Peer& peer) {
  peer.connection.Close();
  if (peer.rank < 0) return;
  Rank& rank = ranks_[static_cast<size_t>(peer.rank)];
  rank.peer = nullptr;
  if (!welcomed_) {
    // It may come again.
    rank.came = false;
    return;
  }
  if (rank.left) return;
  rank.dead = true;
  Inquire({});
}

void Hub::Inquire(const Complaint& complaint) {
  if (inquiring_ && complaint_.rank < 0) complaint_ = complaint;
  if (broken_ || inquiring_) return;
  inquiring_ = true;
  complaint_ = complaint;
  conclude_at_ = Clock::now() + options_.timing.answer();
  for (Rank& rank : ranks_) rank.answered = false;
  SendToAll(MessageType::kAsk);
}

void Hub::Conclude() {
  const Clock::time_point now = Clock::now();
  std::vector<RankState> states;
  CompleteWaits(complaint_.activity);
  bool evident = complaint_.rank >= 0;
  for (Rank& rank : ranks_) {
    RankState state;
    state.where = rank.where;
    for (Activity& activity : rank.activities) CompleteWaits(activity);
    state.activities = rank.activities;
    if (rank.dead) {
      state.health = RankState::Health::kDead;
    } else if (rank.left) {
      state.health = RankState::Health::kLeft;
    } else if (!rank.answered) {
      state.health = RankState::Health::kSilent;
      state.silent_seconds = rank.peer == nullptr ? 0 : std::chrono::duration<double>(now - rank.peer->heard).count();
    }
    evident |= state.health == RankState::Health::kDead || state.health == RankState::Health::kSilent;
    states.push_back(std::move(state));
  }
  inquiring_ = false;
  // Silent a moment ago, and now all answer.
  if (evident) Break(Explain(complaint_, states));
}

void Hub::CompleteWaits(Activity& activity) const {
  if (!activity.creating && !activity.leaving) return;
  activity.waits_for.clear();
  if (activity.leaving) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].left) activity.waits_for.push_back(static_cast<int>(rank));
    }
    return;
  }
  for (int rank : activity.ranks) {
    if (!values_.contains(CommunicatorKey(activity.communicator, rank))) activity.waits_for.push_back(rank);
  }
}

void Hub::Break(const absl::Status& why) {
  if (broken_ || done_) return;
  broken_ = true;
  why_broken_ = why;
  SendToAll(MessageType::kBroken, WireWriter().Status(why).bytes());
}

void Hub::SendToAll(MessageType type, absl::string_view payload) {
  for (const auto& peer : peers_) {
    if (peer->rank >= 0 && peer->connection.open()) peer->connection.Queue(type, payload);
  }
}

}  // namespace bowline
