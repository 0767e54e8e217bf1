#include "worker/slurm/slurm_commands.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hooke {
namespace {

constexpr char kMark[] = "hooke";  // The first word of a batch job's comment.

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

BatchJob::State StateOf(absl::string_view word) {
  if (word == "RUNNING" || word == "SUSPENDED" || word == "RESIZING") return BatchJob::State::kRuns;
  for (const char* waits :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}) {
    if (word == waits) return BatchJob::State::kWaits;
  }
  return BatchJob::State::kEnds;
}

}  // namespace

std::vector<std::string> SbatchCommand(const SlurmSiteFacts& facts, const BatchPlan::Submission& submission) {
  std::vector<std::string> command = {"sbatch", "--parsable", absl::StrCat("--job-name=hooke-", submission.job_id),
                                      absl::StrCat("--output=", LogOf(facts, "%j")),
                                      absl::StrCat("--chdir=", facts.folder)};
  command.insert(command.end(), facts.sbatch_flags.begin(), facts.sbatch_flags.end());
  const v1::SlurmSpec& slurm = submission.slurm;
  for (const auto& [flag, value] :
       {std::pair("partition", slurm.partition()), std::pair("account", slurm.account()), std::pair("qos", slurm.qos()),
        std::pair("time", slurm.time()), std::pair("constraint", slurm.constraint()),
        std::pair("cpus-per-task", slurm.cpus_per_task() == 0 ? "" : absl::StrCat(slurm.cpus_per_task())),
        std::pair("mem-per-cpu", slurm.memory_per_cpu())}) {
    if (!value.empty()) command.push_back(absl::StrCat("--", flag, "=", value));
  }
  command.push_back(absl::StrCat("--ntasks=", submission.ranks));
  command.push_back(absl::StrCat("--comment=", kMark, " ", facts.site, " ", facts.coordinator, " ", submission.job_id,
                                 " ", submission.ranks));
  command.push_back(facts.script);
  command.insert(command.end(), facts.worker_flags.begin(), facts.worker_flags.end());
  command.push_back(absl::StrCat("--only-job=", submission.job_id));
  return command;
}

std::vector<std::string> SqueueCommand() {
  return {"squeue", "--me", "--noheader", "--format=%i|%T|%r|%k"};  // Id, state, reason, comment.
}

std::vector<std::string> ScancelCommand(const BatchPlan::End& end) {
  // SIGTERM goes only to the script, which ends the workers. Slurm's own end would kill mpirun beside them.
  if (end.gently) return {"scancel", "--batch", "--signal=TERM", end.id};
  return {"scancel", end.id};
}

absl::StatusOr<std::string> ReadSbatch(absl::string_view output) {
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::string id(line.substr(0, line.find(';')));  // "4211;cluster".
    if (IsNumber(id)) return id;
  }
  return absl::InternalError(absl::StrCat("sbatch has printed no number: ", absl::StripAsciiWhitespace(output)));
}

std::vector<BatchJob> ReadSqueue(const SlurmSiteFacts& facts, absl::string_view output) {
  std::vector<BatchJob> jobs;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (fields.size() != 4) continue;
    const std::vector<std::string> comment = absl::StrSplit(fields[3], ' ');
    const bool ours = comment.size() == 5 && comment[0] == kMark && comment[1] == facts.site &&
                      comment[2] == facts.coordinator && IsNumber(fields[0]);
    BatchJob job = {fields[0], ours ? comment[3] : "", 0, StateOf(fields[1]), fields[2]};
    if (ours && absl::SimpleAtoi(comment[4], &job.ranks)) jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string LogOf(const SlurmSiteFacts& facts, const std::string& id) {
  return absl::StrCat(facts.folder, "/slurm-", id, ".log");
}

}  // namespace hooke
