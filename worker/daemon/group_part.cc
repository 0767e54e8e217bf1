#include "worker/daemon/group_part.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/file_manifest.h"
#include "job/job_keys.h"
#include "job/site_command.h"
#include "mpi_group/sockets/host_addresses.h"

namespace hooke {
namespace {

// Checks the group's parts. Their addresses become words of mpirun's command line, so each must be an IP address.
absl::Status CheckParts(const v1::StartGroupCommand& start) {
  if (start.parts().empty()) return absl::OkStatus();
  const auto wrong = [](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("a group's parts: ", what));
  };
  if (start.parts_size() < 2 || start.parts_size() > kJobRanksMax) {
    return wrong(absl::StrCat("a group has 2 to ", kJobRanksMax, " of them, or none"));
  }
  if (start.part() >= static_cast<uint32_t>(start.parts_size())) return wrong("this worker's part is none of them");
  uint64_t ranks = 0;
  for (const v1::GroupPart& part : start.parts()) {
    if (!HostAddressFrom(part.address()).has_value()) return wrong("each has an IP address");
    if (part.ranks() < 1 || part.first_rank() != ranks) return wrong("each has ranks, which follow those before it");
    ranks += part.ranks();
  }
  return ranks == start.ranks() ? absl::OkStatus() : wrong("together they have all ranks");
}

}  // namespace

PartHere PartOf(const v1::StartGroupCommand& start) {
  if (start.parts().empty()) return {0, start.ranks(), true, true};
  const v1::GroupPart& part = start.parts(static_cast<int>(start.part()));
  return {part.first_rank(), part.ranks(), false, start.part() == 0};
}

std::vector<LaunchHost> HostsOf(const v1::StartGroupCommand& start) {
  std::vector<LaunchHost> hosts;
  for (const v1::GroupPart& part : start.parts()) hosts.push_back({part.address(), part.ranks()});
  return hosts;
}

std::vector<RanksElsewhere> ElsewhereOf(const v1::StartGroupCommand& start) {
  std::vector<RanksElsewhere> elsewhere;
  for (int i = 0; i < start.parts_size(); ++i) {
    if (static_cast<uint32_t>(i) == start.part()) continue;
    elsewhere.push_back({start.parts(i).first_rank(), start.parts(i).ranks(), start.parts(i).worker()});
  }
  return elsewhere;
}

v1::GroupId IdOf(const v1::GroupStart& start) {
  v1::GroupId id;
  id.set_job_id(start.job_id());
  id.set_group(start.group());
  id.set_incarnation(start.incarnation());
  return id;
}

std::string GroupName(const v1::GroupId& group) {
  return absl::StrCat(group.job_id(), "-", group.group(), "-", group.incarnation());
}

absl::Status CheckStartGroup(const v1::StartGroupCommand& start, uint32_t slots, bool allow_commands) {
  const std::string& job_id = start.group().job_id();
  const auto allowed = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; };
  if (job_id.empty() || job_id.size() > 80 || !std::all_of(job_id.begin(), job_id.end(), allowed)) {
    // The id is part of folder names.
    return absl::InvalidArgumentError("a job id must be 1 to 80 of [a-z0-9-]");
  }
  if (start.ranks() < 1) return absl::InvalidArgumentError("a group must have at least one rank");
  if (absl::Status status = CheckParts(start); !status.ok()) return status;
  if (PartOf(start).ranks > slots) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a group of ranks ", PartOf(start).ranks, " was sent to a worker of slots ", slots));
  }
  if (!HasCommand(start.group().job())) return absl::OkStatus();
  if (!allow_commands) {
    return absl::FailedPreconditionError(
        "this worker runs no commands; start hooke-worker with --allow-commands, and submit the job again");
  }
  // The coordinator has checked the command. The worker checks it again, because it is about to run it.
  const v1::CommandSpec& command = start.group().job().command();
  const std::vector<std::string> arguments(command.arguments().begin(), command.arguments().end());
  if (absl::Status status = CheckArguments(arguments); !status.ok()) return status;
  if (absl::Status status = CheckSites(start.group().job()); !status.ok()) return status;
  if (command.has_files()) return CheckFileSet(command.files());
  if (!absl::StartsWith(command.directory(), "/")) {
    return absl::InvalidArgumentError("a command's directory must be an absolute path");
  }
  return absl::OkStatus();
}

}  // namespace hooke
