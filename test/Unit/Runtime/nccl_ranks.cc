#include "test/Unit/Runtime/nccl_ranks.h"

#include <dlfcn.h>

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/builtin_drivers.h"
#include "types/half.h"

namespace bowline {

using hal::Operation;
using hal::OperationKind;
using hal::ReduceOp;
using kernels::DType;

namespace {

// How many cards there are: a device that no machine has is refused by their number.
int Cards() {
  for (int cards = 0;; ++cards) {
    if (!CreateCuda(0, {{"device", absl::StrCat(cards)}}).ok()) return cards;
  }
}

void Store(DType type, double value, uint8_t* to) {
  const auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  switch (type) {
    case DType::kF32:
      return put(static_cast<float>(value));
    case DType::kF64:
      return put(value);
    case DType::kBF16:
      return put(F32ToBf16(static_cast<float>(value)));
    case DType::kF16:
      return put(F32ToF16(static_cast<float>(value)));
    case DType::kI64:
      return put(static_cast<int64_t>(value));
    case DType::kI32:
      return put(static_cast<int32_t>(value));
    case DType::kU16:
      return put(static_cast<uint16_t>(value));
    default:
      return put(static_cast<uint8_t>(value));
  }
}

absl::Status RunRank(LoopbackGroup& group, int ranks, int number, const Settings& settings,
                     const std::function<absl::Status(Rank&)>& body) {
  Rank rank;
  rank.rank = number;
  rank.group = group.AsRank(number);
  BOWLINE_ASSIGN_OR_RETURN(rank.device, CreateCuda(number, settings));
  BOWLINE_ASSIGN_OR_RETURN(rank.memory, rank.device->Allocate(kMemory));
  std::vector<int> everyone(static_cast<size_t>(ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(rank.all, rank.Create("all", everyone));
  BOWLINE_ASSIGN_OR_RETURN(rank.stream, rank.device->CreateStream(hal::StreamMode::kWorker));
  const absl::Status called = body(rank), synchronized = rank.stream->Synchronize();
  return called.ok() ? synchronized : called;
}

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCuda(int rank, Settings settings) {
  return AllDrivers("").CreateDevice("cuda", {.rank = rank, .settings = std::move(settings)});
}

void Nccl::SetUp() {
  cards_ = Cards();
  if (cards_ == 0 && std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) GTEST_SKIP() << "there is no card";
  ASSERT_GT(cards_, 0);
}

void Nccl::TearDown() {
  void* const library = OnStandIn() ? ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) return;
  if (void* const communicators = ::dlsym(library, "bowlineStandInCommunicators"); communicators != nullptr) {
    EXPECT_EQ(reinterpret_cast<int (*)()>(communicators)(), 0) << "communicators of NCCL are left";
  }
  ::dlclose(library);
}

std::vector<absl::Status> Nccl::Run(int ranks, const std::function<absl::Status(Rank&)>& body,
                                    std::chrono::nanoseconds timeout, const Settings& settings) {
  const std::shared_ptr<LoopbackGroup> group = *LoopbackGroup::Create(ranks, {.timeout = timeout});
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      absl::Status& result = results[static_cast<size_t>(rank)];
      result = RunRank(*group, ranks, rank, settings, body);
      group->Abort(result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::pair<std::vector<absl::Status>, double> Nccl::RunInVain(
    const std::function<absl::Status(Rank&, std::atomic<int>& ready)>& body, const Settings& settings) {
  // To connect cards takes longer.
  for (double seconds = OnStandIn() ? 0.7 : 20;; seconds *= 4) {
    std::atomic<int> ready = 0;
    std::vector<absl::Status> results = Run(
        2, [&](Rank& rank) { return body(rank, ready); },
        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)), settings);
    if (ready == 2 || seconds > 120) return {std::move(results), seconds};
  }
}

double NumberAt(int rank, size_t index) {
  return static_cast<double>((index * 7 + static_cast<size_t>(rank) * 5) % 13);
}

std::vector<uint8_t> Numbers(DType type, size_t count, const std::function<double(size_t)>& value) {
  const size_t size = kernels::SizeOf(type);
  std::vector<uint8_t> bytes((count + 1) * size, 77);
  for (size_t i = 0; i < count; ++i) Store(type, value(i), bytes.data() + i * size);
  return bytes;
}

absl::Status SumOnce(Rank& rank, hal::Communicator& communicator, hal::Stream& stream, size_t at, float value,
                     float expected) {
  constexpr size_t kCount = 1000;
  BOWLINE_RETURN_IF_ERROR(rank.Write(at, Numbers(DType::kF32, kCount, [&](size_t) { return value; })));
  const hal::Piece piece = {rank.at(at), rank.at(at), kCount};
  const Operation sum = Operation::Reduction(OperationKind::kAllReduce, DType::kF32, ReduceOp::kSum);
  BOWLINE_RETURN_IF_ERROR(communicator.Reserve(sum, {&piece, 1}));
  BOWLINE_RETURN_IF_ERROR(communicator.Issue(stream, sum, {&piece, 1}));
  BOWLINE_RETURN_IF_ERROR(stream.Synchronize());
  std::vector<uint8_t> sums = Numbers(DType::kF32, kCount, [&](size_t) { return expected; });
  sums.resize(4 * kCount);
  EXPECT_EQ(rank.Read(at, 4 * kCount), sums) << "on rank " << rank.rank;
  return absl::OkStatus();
}

const Settings& Graphs() {
  static const auto* const settings = new Settings({{"communicators", "nccl"}, {"graphs", "1"}});
  return *settings;
}

absl::StatusOr<std::unique_ptr<hal::Recording>> RecordSums(Rank& rank, const std::vector<size_t>& counts) {
  const Operation sum = Operation::Reduction(OperationKind::kAllReduce, DType::kF32, ReduceOp::kSum);
  std::vector<hal::Piece> pieces;
  size_t at = 0;
  for (const size_t count : counts) {
    pieces.push_back({rank.at(at), rank.at(at), count});
    BOWLINE_RETURN_IF_ERROR(rank.all->Reserve(sum, {&pieces.back(), 1}));
    at += 4 * count;
  }
  hal::Stream* const stream = rank.stream.get();
  return rank.device->Record({&stream, 1}, [&] {
    for (const hal::Piece& piece : pieces) BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*stream, sum, {&piece, 1}));
    return absl::OkStatus();
  });
}

}  // namespace bowline
