#include <map>
#include <vector>

#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/matching.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline {
namespace verifier {
namespace {

// The operations of the entries of one name, by their numbers.
class CertificateVerifier {
 public:
  CertificateVerifier(const fbs::Plan& plan, const fbs::Certificate& certificate)
      : plan_(plan), certificate_(certificate) {}

  absl::Status Verify() {
    const uint32_t roles = RoleCount(plan_);
    if (SizeOf(certificate_.roles()) != roles) {
      return Broken("it is for ", SizeOf(certificate_.roles()), " roles; the plan has ", roles);
    }
    uint64_t given = 0;
    for (const fbs::RoleOrder* order : *certificate_.roles()) given += SizeOf(order->numbers());
    operations_.resize(given);
    for (uint32_t i = 0; i < plan_.entries()->size(); ++i) {
      const fbs::Entry& entry = *plan_.entries()->Get(i);
      if (TextOf(entry.name()) != TextOf(certificate_.entry())) continue;
      BOWLINE_RETURN_IF_ERROR(VerifyProgram(*plan_.programs()->Get(entry.program())));
    }
    for (size_t number = 0; number < operations_.size(); ++number) {
      const Operation& operation = operations_[number];
      if (operation.members == 0 || operation.members == Members(*operation.first)) continue;
      return Broken("operation ", number, ", ", DescribeCommand(plan_, *operation.first), " in role ", operation.role,
                    ", has ", operation.members, " of its ", Members(*operation.first), " members");
    }
    return absl::OkStatus();
  }

 private:
  struct Operation {
    const fbs::Command* first = nullptr;
    uint32_t role = 0;  // the role of the first
    uint32_t members = 0;
  };

  uint32_t Members(const fbs::Command& command) const {
    return command.body_type() == fbs::CommandBody::Collective ? RoleCount(plan_) : 2;
  }

  absl::Status VerifyProgram(const fbs::Program& program) {
    const auto* numbers = certificate_.roles()->Get(program.role())->numbers();
    // The commands of each segment that communicate between roles.
    std::vector<std::vector<const fbs::Command*>> commands(SizeOf(program.segments()));
    for (uint32_t s = 0; s < commands.size(); ++s) {
      const fbs::Segment& segment = *program.segments()->Get(s);
      for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
        const fbs::Command* command = segment.commands()->Get(c);
        if (CommunicatesBetweenRoles(plan_, *command)) commands[s].push_back(command);
      }
    }
    uint32_t next = 0;
    int64_t last = -1;
    for (uint32_t call = 0; call < SizeOf(program.timeline()); ++call) {
      for (const fbs::Command* command : commands[program.timeline()->Get(call)->segment()]) {
        const std::string place =
            absl::StrCat("role ", program.role(), ": call ", call, ": ", DescribeCommand(plan_, *command));
        if (next == SizeOf(numbers)) return Broken(place, " has no number");
        const uint32_t number = numbers->Get(next++);
        if (number <= last) return Broken(place, " has number ", number, " after ", last, "; numbers must increase");
        if (number >= operations_.size()) {
          return Broken(place, " has number ", number, "; there are at most ", operations_.size(), " operations");
        }
        last = number;
        BOWLINE_RETURN_IF_ERROR(Annotate(Join(operations_[number], program.role(), *command), place));
      }
    }
    if (next == SizeOf(numbers)) return absl::OkStatus();
    return Broken("role ", program.role(), " has ", SizeOf(numbers), " numbers for ", next, " operations");
  }

  absl::Status Join(Operation& operation, uint32_t role, const fbs::Command& command) {
    if (operation.members++ == 0) {
      operation.first = &command;
      operation.role = role;
      return absl::OkStatus();
    }
    const auto other = [&] {
      return absl::StrCat(DescribeCommand(plan_, *operation.first), " in role ", operation.role,
                          ", which has the same number");
    };
    if (CommunicatorOf(*operation.first) != CommunicatorOf(command)) {
      return Broken("is on another communicator than ", other());
    }
    // Numbers increase, so no member joins twice, and a third member finds no peer.
    const std::string why = WhyDifferent(operation.role, *operation.first, role, command);
    return why.empty() ? absl::OkStatus() : Broken("does not match ", other(), ": ", why);
  }

  const fbs::Plan& plan_;
  const fbs::Certificate& certificate_;
  std::vector<Operation> operations_;
};

// Whether certificates state the computed values: all do, or none.
absl::StatusOr<bool> HaveValues(const fbs::Plan& plan) {
  bool some = false, all = true;
  for (const fbs::Certificate* certificate : *plan.certificates()) {
    for (uint32_t role = 0; role < SizeOf(certificate->roles()); ++role) {
      const std::string place = absl::StrCat("certificate for entry ", Quoted(certificate->entry()), ": role ", role);
      const auto* values = certificate->roles()->Get(role)->values();
      BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "values", values));
      some |= SizeOf(values) > 0;
      all &= SizeOf(values) > 0;
    }
  }
  if (some && !all) {
    return Broken("some roles have values in the certificates, others have none; all roles have them, or none has");
  }
  return some;
}

// Names a value that `role` computes in another way than certified, if there is one.
std::string FindDifference(const RoleMeaning& role, const flatbuffers::Vector<const fbs::ValueDigest*>& certified) {
  for (size_t i = 0; i < role.values.size(); ++i) {
    const ValueMeaning& value = role.values[i];
    if (i < certified.size()) {
      const fbs::ValueDigest& expected = *certified.Get(static_cast<uint32_t>(i));
      if (value.digest == Digest{expected.low(), expected.high()}) continue;
    }
    return role.values.size() == certified.size() ? value.what
                                                  : absl::StrCat(value.what, ", the first of ", role.values.size(),
                                                                 " results where there were ", certified.size());
  }
  return role.values.size() == certified.size()
             ? ""
             : absl::StrCat("a state, of which it leaves ", certified.size() - role.values.size(), " as they were");
}

absl::Status VerifyValues(const fbs::Plan& plan) {
  BOWLINE_ASSIGN_OR_RETURN(const bool have_values, HaveValues(plan));
  if (!have_values) return absl::OkStatus();
  const absl::StatusOr<PlanMeaning> meaning = ComputeMeaning(plan);
  if (!meaning.ok()) return Broken(meaning.status().message());
  std::map<absl::string_view, const EntryMeaning*> entries;
  for (const EntryMeaning& entry : meaning->entries) entries[entry.entry] = &entry;
  for (uint32_t i = 0; i < plan.certificates()->size(); ++i) {
    const fbs::Certificate& certificate = *plan.certificates()->Get(i);
    const EntryMeaning& entry = *entries.at(TextOf(certificate.entry()));
    for (uint32_t role = 0; role < entry.roles.size(); ++role) {
      const std::string difference = FindDifference(entry.roles[role], *certificate.roles()->Get(role)->values());
      if (difference.empty()) continue;
      std::string who = "the plan";
      if (role < SizeOf(plan.roles())) {
        who = absl::StrCat("role ", role, " ", Quoted(plan.roles()->Get(role)->name()));
      }
      return Broken("certificate ", i, " for entry ", Quoted(certificate.entry()), ": ", who,
                    " computes something else than the compiler certified: ", difference,
                    "; the plan was changed after it was compiled; compile the model again");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyCertificates(const fbs::Plan& plan) {
  if (SizeOf(plan.certificates()) == 0) return absl::OkStatus();
  NameSet names("entry");
  std::map<absl::string_view, bool> proven;
  for (const fbs::Entry* entry : *plan.entries()) proven[TextOf(entry->name())] = false;
  for (uint32_t i = 0; i < SizeOf(plan.certificates()); ++i) {
    const fbs::Certificate& certificate = *plan.certificates()->Get(i);
    const std::string place = absl::StrCat("certificate ", i, " for entry ", Quoted(certificate.entry()));
    BOWLINE_RETURN_IF_ERROR(names.Insert(place, certificate.entry()));
    const auto found = proven.find(TextOf(certificate.entry()));
    if (found == proven.end()) return Broken(place, ": there is no such entry");
    found->second = true;
    BOWLINE_RETURN_IF_ERROR(Annotate(CertificateVerifier(plan, certificate).Verify(), place));
  }
  for (const auto& [name, has] : proven) {
    if (!has) return Broken("entry '", name, "' has no certificate, but others have");
  }
  return VerifyValues(plan);
}

}  // namespace verifier

absl::Status RequireCertificates(const fbs::Plan& plan) {
  if (RankCount(plan) == 1) return absl::OkStatus();
  const bool has_order = SizeOf(plan.certificates()) > 0;
  // VerifyPlan has checked that the certificates of all roles have values, or none has.
  if (has_order && SizeOf(plan.certificates()->Get(0)->roles()->Get(0)->values()) > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan is for ", RankCount(plan), " ranks (", DescribeMesh(plan), ") and carries no proof ",
      has_order ? "that ranks compute the right values" : "that ranks do not wait for each other for ever",
      "; compile the model again with bowline-compile, which proves it and writes the proof into the plan"));
}

}  // namespace bowline
