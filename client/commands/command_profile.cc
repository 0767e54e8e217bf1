#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/profile/profile_table.h"
#include "client/text/listing.h"
#include "files/new_file.h"
#include "job/profile/profile_summary.h"
#include "job/profile/step_split.h"
#include "job/trace/profile_trace.h"
#include "wire/calls/exchange_reads.h"
#include "wire/cluster_token.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

struct ProfileFlags {
  std::string job;
  bool exact = false;
  bool per_group = false;
  bool steps = false;
  std::string trace;  // Path of the trace file; empty: none.
  bool force = false;
};

using Ranks = std::vector<v1::ReadProfileResponse>;

std::map<uint32_t, Ranks> ByGroup(const Ranks& ranks) {
  std::map<uint32_t, Ranks> groups;
  for (const v1::ReadProfileResponse& rank : ranks) groups[rank.group()].push_back(rank);
  return groups;
}

void PrintTables(const Invocation& invocation, const ProfileFlags& flags, const Ranks& ranks) {
  const ProfileSizes sizes = flags.exact ? ProfileSizes::kExact : ProfileSizes::kBins;
  if (ranks.empty()) return;
  if (!flags.per_group) {
    *invocation.out << flags.job << ": " << ProfileTable(Summarize(ranks, sizes)) << std::flush;
    return;
  }
  bool first = true;
  for (const auto& [group, its_ranks] : ByGroup(ranks)) {
    *invocation.out << (first ? "" : "\n") << flags.job << ", group " << group << ": "
                    << ProfileTable(Summarize(its_ranks, sizes)) << std::flush;
    first = false;
  }
}

ordered_json TraceToJson(const std::string& path, const Trace& trace) {
  return {{"path", path},
          {"events", trace.events},
          {"starts", trace.starts},
          {"exchanges", trace.exchanges},
          {"ranks", trace.ranks},
          {"ranks_left_out", trace.ranks_left_out},
          {"machines", trace.machines},
          {"clock_error_us", static_cast<double>(trace.error_ns) / 1000},
          {"notes", trace.notes}};
}

// Returns how many cores the job's servers keep busy now. Returns nothing unless the job runs, because its servers may
// otherwise work for other jobs.
absl::StatusOr<std::vector<ServerCores>> ReadServerCores(CoordinatorClient& coordinator, const std::string& job_id) {
  const absl::StatusOr<v1::JobStatus> job = coordinator.GetJob(job_id);
  if (!job.ok()) return job.status();
  if (job->state() != v1::JOB_STATE_RUNNING) return std::vector<ServerCores>();
  const absl::StatusOr<v1::ListNodesResponse> nodes = coordinator.ListNodes();
  if (!nodes.ok()) return nodes.status();
  return CoresOfServers(*job, *nodes);
}

void PrintJson(const Invocation& invocation, const ProfileFlags& flags, const Ranks& ranks,
               const std::vector<ServerCores>& servers, const ordered_json& trace) {
  const ProfileSizes sizes = flags.exact ? ProfileSizes::kExact : ProfileSizes::kBins;
  ordered_json json = {{"job_id", flags.job}, {"all", ProfileToJson(Summarize(ranks, sizes))}};
  if (flags.per_group) {
    ordered_json& groups = json["per_group"] = ordered_json::array();
    for (const auto& [group, its_ranks] : ByGroup(ranks)) {
      ordered_json one = {{"group", group}};
      one.update(ProfileToJson(Summarize(its_ranks, sizes)));
      groups.push_back(one);
    }
  }
  if (flags.steps) {
    json["steps"] = StepSplitToJson(SplitSteps(ranks));
    json["servers"] = ServerCoresToJson(servers);
  }
  if (!trace.is_null()) json["trace"] = trace;
  *invocation.out << DumpJson(json, 2) << std::endl;
}

// Returns the times of the job's starts, for its trace. Nothing without a trace, or if the coordinator is of an older
// version.
absl::StatusOr<v1::ReadStartsResponse> ReadStarts(CoordinatorClient& coordinator, const ProfileFlags& flags) {
  if (flags.trace.empty()) return v1::ReadStartsResponse();
  absl::StatusOr<v1::ReadStartsResponse> starts = coordinator.ReadStarts(flags.job);
  if (absl::IsUnimplemented(starts.status())) return v1::ReadStartsResponse();
  return starts;
}

// Returns what the job's servers say of their last exchanges, for its trace.
absl::StatusOr<std::vector<ExchangesOfServer>> ReadServers(const Invocation& invocation, CoordinatorClient& coordinator,
                                                           const std::string& job_id) {
  const absl::StatusOr<v1::JobStatus> job = coordinator.GetJob(job_id);
  if (!job.ok()) return job.status();
  absl::StatusOr<ClusterToken> token = ReadClusterToken(invocation.absolute_token_file());
  if (!token.ok()) return token.status();
  ExchangeReadsOptions options;
  options.job_id = job_id;
  options.servers.assign(job->servers().begin(), job->servers().end());
  options.token = *std::move(token);
  return ReadExchanges(options);
}

std::string TraceText(const std::string& path, const Trace& trace) {
  std::string text = absl::StrFormat("%s: %d events of %d ranks", path, trace.events, trace.ranks);
  if (trace.machines > 1) {
    absl::StrAppendFormat(&text, " on %d machines, on one clock to within %.0f us", trace.machines,
                          static_cast<double>(trace.error_ns) / 1000);
  }
  if (trace.starts > 0) {
    absl::StrAppend(&text, "; ", trace.starts, trace.starts == 1 ? " start" : " starts",
                    ", from submit to the first step");
  }
  if (trace.exchanges > 0) absl::StrAppend(&text, "; ", trace.exchanges, " exchanges at servers");
  if (trace.ranks_left_out > 0) {
    absl::StrAppend(&text, "; without ", trace.ranks_left_out,
                    " whose clock is not known yet: try again in some seconds");
  }
  return absl::StrCat(text, "; open it at https://ui.perfetto.dev or chrome://tracing\n");
}

int ShowProfile(const Invocation& invocation, const ProfileFlags& flags) {
  if (flags.force && flags.trace.empty()) {
    return Report(invocation, absl::InvalidArgumentError("--force goes with --trace FILE"), kUsage);
  }
  if (!flags.trace.empty()) {
    if (absl::Status status = CheckNewFile(flags.trace, flags.force); !status.ok()) return Report(invocation, status);
  }
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::ReadStartsResponse> starts = ReadStarts(*coordinator, flags);
  if (!starts.ok()) return Report(invocation, starts.status());
  absl::StatusOr<Ranks> ranks = coordinator->ReadProfile(flags.job, flags.steps || !flags.trace.empty());
  if (absl::IsFailedPrecondition(ranks.status()) && !starts->starts().empty()) {
    // The job has no profile, as before its first step. The trace can still show the starts that are known.
    if (!invocation.json()) *invocation.err << "hooke: " << ranks.status().message() << std::endl;
    ranks = Ranks();
  }
  if (!ranks.ok()) return Report(invocation, ranks.status());
  absl::StatusOr<std::vector<ServerCores>> servers = std::vector<ServerCores>();
  if (flags.steps) servers = ReadServerCores(*coordinator, flags.job);
  if (!servers.ok()) return Report(invocation, servers.status());
  ordered_json about_trace = nullptr;
  std::string trace_text;
  if (!flags.trace.empty()) {
    absl::StatusOr<std::vector<ExchangesOfServer>> at_servers = std::vector<ExchangesOfServer>();
    if (!ranks->empty()) at_servers = ReadServers(invocation, *coordinator, flags.job);
    if (!at_servers.ok()) return Report(invocation, at_servers.status());
    const absl::StatusOr<Trace> trace = MakeTrace(flags.job, *ranks, *starts, *at_servers);
    if (!trace.ok()) return Report(invocation, trace.status());
    if (absl::Status status = WriteNewFile(flags.trace, trace->json, flags.force); !status.ok()) {
      return Report(invocation, status);
    }
    for (const std::string& note : trace->notes) Report(invocation, absl::NotFoundError(note));
    about_trace = TraceToJson(flags.trace, *trace);
    trace_text = TraceText(flags.trace, *trace);
  }
  if (invocation.json()) {
    PrintJson(invocation, flags, *ranks, *servers, about_trace);
  } else {
    PrintTables(invocation, flags, *ranks);
    if (flags.steps) {
      *invocation.out << "\nThe last steps:\n" << StepSplitTable(SplitSteps(*ranks)) << ServerCoresLine(*servers);
    }
    *invocation.out << trace_text << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddProfileCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "profile", "Show what a job's collectives cost, and write a trace of its steps, exchanges and starts");
  auto flags = std::make_shared<ProfileFlags>();
  command.Add("JOB", flags->job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command.Add("--exact", flags->exact, "A row for each size instead of each power of two");
  command.Add("--per-group", flags->per_group, "A table for each group instead of one for all");
  command.Add("--steps", flags->steps,
              "Also split the time of the last steps: computing, waiting for slower ranks, ...");
  command
      .Add("--trace", flags->trace,
           "Also write the last steps of all ranks, what the servers did in them, and how groups came to their first "
           "step, for Perfetto")
      .Type("FILE");
  command.Add("--force", flags->force, "Replace a file of that name");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "Calls, bytes and times are of all ranks together; a call's time includes the wait for ranks that come later.\n"
      "OF STEPS: share of the time in steps. FUSED: several vectors in one call. docs/profile.md says more.");
  command.Action([&invocation, flags] { return ShowProfile(invocation, *flags); });
}

}  // namespace hooke
