#ifndef BOWLINE_KERNELS_REGISTRY_COLLECTIVES_H_
#define BOWLINE_KERNELS_REGISTRY_COLLECTIVES_H_

// The definition of the collectives. Dialects, passes, interpreters, the loader, the checker, cost models and
// communicators read the table of this header; they name a kind only where the kind has an algorithm of its own. The
// header depends on no other part of Bowline.
//
// For each tensor every member of a group has a source and a destination, both divided into parts of `count` elements:
// one part, or as many as there are members. A kind of collective defines which part each member sends to which member,
// and whether the parts that arrive at one place are combined.

#include <cstddef>
#include <cstdint>
#include <string>

namespace bowline::collectives {

// Values are those of runtime/plan/plan.fbs.
enum class Kind : uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute };

// The meaning of the number that some kinds have in addition, which all members give alike. Other kinds have 0.
enum class Parameter : uint8_t {
  kNone,
  kReduction,  // how parts are combined: 0 by their sum, 1 by their maximum
  kShift,      // how many places further on a ring of the members a part goes: 1 to one less than there are
};

// Words for messages: the name of the parameter, and the verb for its effect: "reduction", "reduces by".
struct ParameterWords {
  const char* name;
  const char* verb;
};
constexpr ParameterWords WordsOf(Parameter parameter) {
  switch (parameter) {
    case Parameter::kReduction:
      return {"reduction", "reduces by"};
    case Parameter::kShift:
      return {"shift", "shifts by"};
    case Parameter::kNone:
      break;
  }
  return {"parameter", "has"};
}

// "max"
inline std::string DescribeParameter(Parameter parameter, uint64_t value) {
  if (parameter == Parameter::kReduction && value < 2) return value == 0 ? "sum" : "max";
  return std::to_string(value);
}

// The part of the source of one member that goes to a part of the destination of another.
struct Move {
  bool any = false;  // else nothing goes from that member to this one
  uint32_t source = 0, destination = 0;
};

struct Definition {
  const char* name;
  bool scatters = false;  // the source has a part for each member, else one
  bool gathers = false;   // the destination has a part for each member, else one
  Parameter parameter = Parameter::kNone;
  bool alike = false;     // all members' destinations become equal
  bool in_place = false;  // source and destination may be the same bytes
  // The number of times that the larger of source and destination goes around a ring of the members, but for each
  // member's own part. 0: it goes once, to one member.
  int rounds = 1;
  // The move from the member at place `from` to the one at place `to`, which may be the same.
  Move (*move)(uint32_t from, uint32_t to, uint32_t members, uint32_t parameter) = nullptr;

  constexpr bool reduces() const { return parameter == Parameter::kReduction; }
  // Returns whether something of every member goes to every other one, so that none has ended before all have begun.
  constexpr bool meetsAll() const { return rounds > 0; }
  // The elements of a source, or destination, for each element that a piece counts.
  template <typename Number>
  constexpr Number SourceParts(Number members) const {
    return scatters ? members : Number{1};
  }
  template <typename Number>
  constexpr Number DestinationParts(Number members) const {
    return gathers ? members : Number{1};
  }
  // The same for the larger one of source and destination.
  template <typename Number>
  constexpr Number WholeParts(Number members) const {
    return scatters || gathers ? members : Number{1};
  }

  // The least and the largest parameter that is possible.
  constexpr uint32_t LeastParameter() const { return parameter == Parameter::kShift ? 1 : 0; }
  constexpr uint32_t MostParameter(uint64_t members) const {
    return parameter == Parameter::kShift ? static_cast<uint32_t>(members - 1) : reduces() ? 1 : 0;
  }

  // Messages that each member sends one after another, and the bytes of each and of all where the larger of source and
  // destination has `whole`.
  template <typename Number>
  constexpr Number Steps(Number members) const {
    return rounds == 0 ? Number{1} : static_cast<Number>(rounds) * (members - 1);
  }
  template <typename Number>
  constexpr Number BytesOfStep(Number whole, Number members) const {
    return rounds == 0 ? whole : whole / members;
  }
  template <typename Number>
  constexpr Number BytesSent(Number whole, Number members) const {
    return rounds == 0 ? whole : static_cast<Number>(rounds) * whole * (members - 1) / members;
  }
};

inline constexpr Definition kDefinitions[] = {
    {.name = "all_reduce",
     .parameter = Parameter::kReduction,
     .alike = true,
     .in_place = true,
     .rounds = 2,
     .move = [](uint32_t, uint32_t, uint32_t, uint32_t) -> Move { return {true, 0, 0}; }},
    {.name = "all_gather",
     .gathers = true,
     .alike = true,
     .move = [](uint32_t from, uint32_t, uint32_t, uint32_t) -> Move { return {true, 0, from}; }},
    {.name = "reduce_scatter",
     .scatters = true,
     .parameter = Parameter::kReduction,
     .move = [](uint32_t, uint32_t to, uint32_t, uint32_t) -> Move { return {true, to, 0}; }},
    {.name = "all_to_all",
     .scatters = true,
     .gathers = true,
     .move = [](uint32_t from, uint32_t to, uint32_t, uint32_t) -> Move { return {true, to, from}; }},
    {.name = "permute",
     .parameter = Parameter::kShift,
     .rounds = 0,
     .move = [](uint32_t from, uint32_t to, uint32_t members, uint32_t shift) -> Move {
       return {(uint64_t{from} + shift) % members == to, 0, 0};
     }},
};

inline constexpr size_t kCount = sizeof(kDefinitions) / sizeof(kDefinitions[0]);

constexpr const Definition& Of(Kind kind) { return kDefinitions[static_cast<size_t>(kind)]; }

}  // namespace bowline::collectives

#endif  // BOWLINE_KERNELS_REGISTRY_COLLECTIVES_H_
