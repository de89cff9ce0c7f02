#include <map>
#include <vector>

#include "runtime/plan/matching.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/verifier_parts.h"

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
    uint32_t role = 0;  // of the first
    uint32_t members = 0;
  };

  uint32_t Members(const fbs::Command& command) const {
    return command.body_type() == fbs::CommandBody::Collective ? RoleCount(plan_) : 2;
  }

  absl::Status VerifyProgram(const fbs::Program& program) {
    const auto* numbers = certificate_.roles()->Get(program.role())->numbers();
    // By segment: the commands that communicate between roles.
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
    // Numbers increase, so nobody joins twice, and a third member finds no peer.
    const std::string why = WhyDifferent(operation.role, *operation.first, role, command);
    return why.empty() ? absl::OkStatus() : Broken("does not match ", other(), ": ", why);
  }

  const fbs::Plan& plan_;
  const fbs::Certificate& certificate_;
  std::vector<Operation> operations_;
};

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
  return absl::OkStatus();
}

}  // namespace verifier

absl::Status RequireCertificates(const fbs::Plan& plan) {
  if (RankCount(plan) == 1 || SizeOf(plan.certificates()) > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the plan is for ", RankCount(plan), " ranks (", DescribeMesh(plan),
                   ") and carries no proof that they do not wait for each other for ever; compile the model again "
                   "with bowline-compile, which proves it and writes the proof into the plan"));
}

}  // namespace bowline
