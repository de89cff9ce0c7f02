// Rules of collectives, sends and receives.

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

// A sum over the 2 ranks of dp, which are of one role, then a tensor that stage 0 sends to stage 1.
P MakeCommunication() {
  RankPlan plan({{"pp", 2}, {"dp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t pp = plan.Communicator("pp", {0}), dp = plan.Communicator("dp", {1});
  plan.Communicator("world", {0, 1});
  for (uint32_t role = 0; role < 2; ++role) {
    const uint32_t x = plan.Buffer(role, "x", fbs::BufferKind::Input, 16);
    const uint32_t y = plan.Buffer(role, "y", fbs::BufferKind::Output, 16);
    plan.Collective(role, 0, fbs::CollectiveKind::AllReduce, dp, x, y, 16);
    role == 0 ? plan.Send(role, 0, pp, 1, y) : plan.Receive(role, 0, pp, 0, y);
  }
  return plan.Finish();
}

enum Communicators : uint32_t { kPp, kDp, kWorld, kNone };

fbs::CollectiveT& Sum(P& p) { return *p.programs[0]->segments[0]->commands[0]->body.AsCollective(); }
fbs::SendT& Send(P& p) { return *p.programs[0]->segments[0]->commands[1]->body.AsSend(); }
fbs::ReceiveT& Receive(P& p) { return *p.programs[1]->segments[0]->commands[1]->body.AsReceive(); }

void SetCount(fbs::CollectiveT& sum, uint64_t count) {
  sum.pieces[0] = fbs::Piece(sum.pieces[0].source(), sum.pieces[0].destination(), count);
}
template <typename Transfer>
void SetCount(Transfer& transfer, uint64_t count) {
  transfer.ranges[0] = fbs::Range(transfer.ranges[0].operand(), count);
}

// All members of a group together may have 2^62 bytes: in a group of 2, 2^59 elements of f32 each.
constexpr uint64_t kMost = uint64_t{1} << 59;

const Rule kCommunicationRules[] = {
    {"UnknownKind", [](P& p) { Sum(p).kind = static_cast<fbs::CollectiveKind>(5); }, "collective: unknown kind 5"},
    {"UnknownType", [](P& p) { Sum(p).dtype = static_cast<fbs::DType>(10); },
     "command 0: collective AllReduce: unknown dtype 10"},
    {"NoCommunicator", [](P& p) { Sum(p).communicator = kNone; },
     "collective AllReduce: communicator 3 does not exist; there are 3"},
    {"UnknownReduction", [](P& p) { Sum(p).reduction = static_cast<fbs::Reduction>(2); },
     "collective AllReduce: unknown reduction 2"},
    {"SumOfBytes", [](P& p) { Sum(p).dtype = fbs::DType::U8; },
     "collective AllReduce: elements of u8 cannot be reduced; those of "},
    {"NoPieces", [](P& p) { Sum(p).pieces.clear(); }, "collective AllReduce: there are no pieces"},
    {"PieceOfNothing", [](P& p) { SetCount(Sum(p), 0); },
     "collective AllReduce: 0 elements; it must be 1 to 576460752303423488"},
    {"PieceTooLarge", [](P& p) { SetCount(Sum(p), kMost + 1); },
     "collective AllReduce: 576460752303423489 elements; it must be 1 to 576460752303423488"},
    {"PieceBeyondItsBuffer", [](P& p) { SetCount(Sum(p), kMost); }, "reach beyond buffer 'x' of 64 bytes"},
    {"SecondPieceOfNothing",
     [](P& p) { Sum(p).pieces.emplace_back(Sum(p).pieces[0].source(), Sum(p).pieces[0].destination(), 0); },
     "collective AllReduce: 0 elements"},
    {"TypeOfOtherElements", [](P& p) { Send(p).dtype = fbs::DType::I32; },
     "command 1: Send: moves elements of i32, but buffer"},
    {"TypeThatIsSent", [](P& p) { Send(p).dtype = static_cast<fbs::DType>(10); }, "command 1: send: unknown dtype 10"},
    {"CommunicatorOfASend", [](P& p) { Send(p).communicator = kNone; }, "send: communicator 3 does not exist"},
    {"NoPeer", [](P& p) { Send(p).peer = 2; }, "send on 'pp': peer 2 does not exist; there are 2"},
    {"SendToTheSender", [](P& p) { Send(p).peer = 0; }, "send: peer 0 is the rank itself"},
    {"ReceiveFromTheReceiver", [](P& p) { Receive(p).peer = 1; }, "receive: peer 1 is the rank itself"},
    {"SendWithinARole", [](P& p) { Send(p).communicator = kDp; },
     "send on 'dp': sends and receives go along the axis that tells roles apart"},
    {"SendInTheWorld", [](P& p) { Send(p).communicator = kWorld; },
     "send on 'world': sends and receives go along the axis that tells roles apart"},
    {"NoRanges", [](P& p) { Send(p).ranges.clear(); }, "send: there are no ranges"},
    {"RangeOfNothing", [](P& p) { SetCount(Send(p), 0); }, "send: 0 elements; it must be 1 to 576460752303423488"},
    {"RangeTooLarge", [](P& p) { SetCount(Receive(p), ~uint64_t{0}); },
     "receive: 18446744073709551615 elements; it must be 1 to 576460752303423488"},
    {"RangeBeyondItsBuffer", [](P& p) { SetCount(Receive(p), kMost); }, "reach beyond buffer 'y' of 64 bytes"},
};

class VerifyCommunication : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyCommunication, Refuses) { ExpectRefused(MakeCommunication(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyCommunication, ::testing::ValuesIn(kCommunicationRules), NameOfRule);

// Both ranks of the only role run the same program: neither can be the other's peer.
const Rule kOneRoleRules[] = {
    {"Send",
     [](P& p) {
       fbs::SendT send;
       send.communicator = 0;
       send.peer = 1;
       send.ranges.emplace_back(fbs::Operand(0, 0), 16);
       p.programs[0]->segments[0]->commands[0]->body.Set(std::move(send));
     },
     "send on 'dp': sends and receives go along the axis that tells roles apart"},
};

P MakeSumOfOneRole() {
  RankPlan plan({{"dp", 2}}, -1);
  plan.Streams({"compute"});
  const uint32_t x = plan.Buffer(0, "x", fbs::BufferKind::Input, 16);
  const uint32_t y = plan.Buffer(0, "y", fbs::BufferKind::Output, 16);
  plan.Collective(0, 0, fbs::CollectiveKind::AllReduce, plan.Communicator("dp", {0}), x, y, 16);
  return plan.Finish();
}

class VerifyCommunicationOfOneRole : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyCommunicationOfOneRole, Refuses) { ExpectRefused(MakeSumOfOneRole(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyCommunicationOfOneRole, ::testing::ValuesIn(kOneRoleRules), NameOfRule);

}  // namespace
}  // namespace bowline
