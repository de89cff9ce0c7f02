#include "test/Support/cuda_stand_in/nccl_operations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "types/half.h"

namespace bowline::stand_in {

void Misused(const char* how) {
  std::fprintf(stderr, "stand-in: NCCL: %s\n", how);
  std::abort();
}

size_t SizeOf(ncclDataType_t type) {
  static constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type < 10 ? kSizes[type] : 0;
}

namespace {

template <typename T, typename Load, typename Store>
void ReduceAs(const std::vector<const char*>& values, char* to, size_t first, size_t begin, size_t end, bool max,
              Load load, Store store) {
  const size_t ranks = values.size();
  for (size_t i = begin; i < end; ++i) {
    const auto at = [&](size_t rank) { return load(reinterpret_cast<const T*>(values[rank % ranks])[i]); };
    auto sum = at(first);
    for (size_t next = 1; next < ranks; ++next) {
      const auto value = at(first + next);
      if constexpr (std::is_floating_point_v<decltype(sum)>) {
        sum = load(store(max ? std::fmax(sum, value) : sum + value));
      } else {
        sum = max ? std::max(sum, value)
                  : static_cast<decltype(sum)>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
      }
    }
    reinterpret_cast<T*>(to)[i] = store(sum);
  }
}

void Reduce(const std::vector<const char*>& values, char* to, size_t first, size_t begin, size_t end,
            ncclDataType_t type, bool max) {
  const auto same = [](auto value) { return value; };
  switch (type) {
    case ncclFloat32:
      return ReduceAs<float>(values, to, first, begin, end, max, same, same);
    case ncclFloat64:
      return ReduceAs<double>(values, to, first, begin, end, max, same, same);
    case ncclInt32:
      return ReduceAs<int32_t>(values, to, first, begin, end, max, same, same);
    case ncclUint32:
      return ReduceAs<uint32_t>(values, to, first, begin, end, max, same, same);
    case ncclInt64:
      return ReduceAs<int64_t>(values, to, first, begin, end, max, same, same);
    case ncclBfloat16:
      return ReduceAs<uint16_t>(values, to, first, begin, end, max, &bowline::Bf16ToF32, &bowline::F32ToBf16);
    case ncclFloat16:
      return ReduceAs<uint16_t>(values, to, first, begin, end, max, &bowline::F16ToF32, &bowline::F32ToF16);
    default:
      Misused("a reduction of a type that the stand-in does not know");
  }
}

}  // namespace

void RunLaunch(const Launch& launch) {
  ncclComm& comm = *launch.comm;
  if (comm.fault_member == comm.rank && comm.fault_operation == launch.number) {
    comm.Fail(static_cast<ncclResult_t>(comm.fault_result), "a fault of the stand-in, as was asked for");
    while (comm.goes_on()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return;
  }
  std::vector<Message> sends, receives;
  std::vector<std::vector<std::vector<char>>> copies(launch.tasks.size());  // what comes to be reduced, by member
  const auto ranks = static_cast<size_t>(comm.ranks), self = static_cast<size_t>(comm.rank);
  for (size_t t = 0; t < launch.tasks.size(); ++t) {
    const Task& task = launch.tasks[t];
    const size_t bytes = task.count * SizeOf(task.type);
    const auto header = [&](uint32_t kind, uint32_t sequence) {
      return Header{kind, static_cast<uint32_t>(task.type), static_cast<uint32_t>(task.reduction), sequence, bytes};
    };
    const auto peer = static_cast<size_t>(task.peer);
    if (task.kind == kSend) {
      sends.push_back({task.peer, header(kSend, comm.sent[peer]++), const_cast<char*>(task.send)});
      continue;
    }
    if (task.kind == kReceive) {
      receives.push_back({task.peer, header(kSend, comm.received[peer]++), task.receive});
      continue;
    }
    copies[t].resize(ranks);
    for (size_t other = 0; other < ranks; ++other) {
      const Header about = header(task.kind, comm.sequences[other]++);
      const size_t part = task.kind == kReduceScatter ? other : 0;
      char* to = task.receive + other * bytes;
      if (task.kind != kAllGather) {
        copies[t][other].resize(bytes);
        to = copies[t][other].data();
      }
      sends.push_back({static_cast<int>(other), about, const_cast<char*>(task.send) + part * bytes});
      receives.push_back({static_cast<int>(other), about, to});
    }
  }
  const bool done = Exchange(
      *comm.shared, comm.rank, sends, receives, [&] { return comm.goes_on(); },
      [&](const Message& message, const Header& theirs) {
        comm.Fail(ncclInvalidUsage, "member " + std::to_string(message.peer) + " called operation " +
                                        std::to_string(theirs.kind) + " of " + std::to_string(theirs.bytes) +
                                        " bytes, and this one " + std::to_string(message.header.kind) + " of " +
                                        std::to_string(message.header.bytes));
      });
  if (!done) return;
  for (size_t t = 0; t < launch.tasks.size(); ++t) {
    const Task& task = launch.tasks[t];
    if (task.kind != kAllReduce && task.kind != kReduceScatter) continue;
    std::vector<const char*> values;
    for (const std::vector<char>& copy : copies[t]) values.push_back(copy.data());
    const bool max = task.reduction == ncclMax;
    if (task.kind == kReduceScatter) {
      Reduce(values, task.receive, self + 1, 0, task.count, task.type, max);
      continue;
    }
    const size_t part = (task.count + ranks - 1) / ranks;
    for (size_t p = 0; p < ranks; ++p) {
      Reduce(values, task.receive, p + 1, std::min(task.count, p * part), std::min(task.count, (p + 1) * part),
             task.type, max);
    }
  }
}

}  // namespace bowline::stand_in
