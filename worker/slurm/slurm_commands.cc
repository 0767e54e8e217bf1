#include "worker/slurm/slurm_commands.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "job/visible_text.h"
#include "worker/slurm/batch_logs.h"

namespace hooke {
namespace {

constexpr char kMark[] = "hooke";  // The first word of a batch job's comment.

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

// Returns whether Slurm or an administrator holds the batch job back; Slurm has a state or a reason for each way to do
// so. A user's hold (JobHeldUser) does not count, because that user wants the batch job to wait. Nor does the state
// REQUEUE_HOLD alone, which may come from a user as well.
bool IsHeldBack(absl::string_view state, absl::string_view reason) {
  // Slurm's programs print such a reason with spaces or with "_".
  return state == "SPECIAL_EXIT" || state == "RESV_DEL_HOLD" || reason == "JobHeldAdmin" ||
         absl::EndsWith(absl::StrReplaceAll(reason, {{"_", " "}}), "requeued held");
}

BatchJob::State StateOf(absl::string_view word, absl::string_view reason) {
  if (word == "RUNNING" || word == "SUSPENDED" || word == "RESIZING") return BatchJob::State::kRuns;
  for (const char* waits :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}) {
    if (word == waits) return IsHeldBack(word, reason) ? BatchJob::State::kHeld : BatchJob::State::kWaits;
  }
  return BatchJob::State::kEnds;
}

}  // namespace

std::vector<std::string> SbatchCommand(const SlurmSiteFacts& facts, const BatchPlan::Submission& submission) {
  std::vector<std::string> command = {"sbatch", "--parsable", absl::StrCat("--job-name=hooke-", submission.job_id),
                                      absl::StrCat("--output=", BatchLogPath(facts.folder, "%j")),
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
  if (submission.gpus_per_rank > 0) command.push_back(absl::StrCat("--gpus-per-task=", submission.gpus_per_rank));
  command.push_back(absl::StrCat("--comment=", kMark, " ", facts.site, " ", facts.coordinator, " ", submission.job_id,
                                 " ", submission.ranks));
  command.push_back(facts.script);
  command.insert(command.end(), facts.worker_flags.begin(), facts.worker_flags.end());
  command.push_back(absl::StrCat("--only-job=", submission.job_id));
  return command;
}

std::vector<std::string> SqueueCommand() {
  // Partitions may be hidden from users, but the batch jobs there are ours, too. The fields are id, state, reason and
  // comment.
  return {"squeue", "--me", "--all", "--noheader", "--format=%i|%T|%r|%k"};
}

std::vector<std::string> EndStatesCommand(const std::vector<std::string>& ids) {
  return {"squeue",     "--all",          "--states=all",
          "--noheader", "--format=%i|%T", absl::StrCat("--jobs=", absl::StrJoin(ids, ","))};
}

std::vector<std::vector<std::string>> ScancelCommands(const std::vector<BatchPlan::End>& ends) {
  // A plain scancel ends all processes of the batch job at once, so mpirun dies before its worker has ended the group.
  // Running batch jobs get SIGTERM for the script alone. The script then ends the workers, and they end their groups.
  std::vector<std::string> gently = {"scancel", "--batch", "--signal=TERM"};
  std::vector<std::string> at_once = {"scancel"};
  for (const BatchPlan::End& end : ends) (end.gently ? gently : at_once).push_back(end.id);
  std::vector<std::vector<std::string>> commands;
  if (gently.size() > 3) commands.push_back(std::move(gently));
  if (at_once.size() > 1) commands.push_back(std::move(at_once));
  return commands;
}

std::vector<std::string> SlurmEnvironment(std::vector<std::string> environment) {
  // Other SBATCH_ variables stay: they are defaults of the user, such as the account.
  constexpr const char* kPrefixes[] = {
      "SQUEUE_", "SCANCEL_", "SLURM_CLUSTERS=", "SBATCH_CLUSTERS=", "SBATCH_ARRAY_INX=", "SBATCH_WAIT="};
  const auto goes = [&kPrefixes](const std::string& variable) {
    return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                       [&variable](const char* prefix) { return absl::StartsWith(variable, prefix); });
  };
  environment.erase(std::remove_if(environment.begin(), environment.end(), goes), environment.end());
  return environment;
}

absl::Status CheckSbatchFlags(const std::vector<std::string>& flags) {
  constexpr std::pair<const char*, const char*> kRefused[] = {
      {"--array", "each batch job must be one job"},
      {"--clusters", "squeue and scancel would look at another cluster"},
      {"--output", "the agent reads the batch job's log"},
      {"--quiet", "sbatch would not print the batch job's number"},
      {"--test-only", "nothing would be submitted"},
      {"--wait", "sbatch would end only with the batch job"},
      {"--wrap", "it would replace the batch script"}};
  for (const std::string& flag : flags) {
    const std::string name = flag.substr(0, flag.find('='));
    for (const auto& [refused, why] : kRefused) {
      // sbatch takes abbreviations of its flags.
      if (!absl::StartsWith(refused, name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("--sbatch=", flag, ": ", refused, " is not allowed: ", why));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSbatch(absl::string_view output) {
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::string id(line.substr(0, line.find(';')));  // "4211;cluster".
    if (IsNumber(id)) return id;
  }
  return absl::InternalError(
      absl::StrCat("sbatch has printed no number: ", EscapedEnd(absl::StripAsciiWhitespace(output), kErrorMax)));
}

std::map<std::string, std::string> ReadEndStates(absl::string_view output) {
  std::map<std::string, std::string> states;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (fields.size() == 2 && IsNumber(fields[0]) && !fields[1].empty()) states[fields[0]] = Escaped(fields[1]);
  }
  return states;
}

std::vector<BatchJob> ReadSqueue(const SlurmSiteFacts& facts, absl::string_view output) {
  std::vector<BatchJob> jobs;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (fields.size() != 4) continue;
    const std::vector<std::string> comment = absl::StrSplit(fields[3], ' ');
    const bool ours = comment.size() == 5 && comment[0] == kMark && comment[1] == facts.site &&
                      comment[2] == facts.coordinator && IsVisibleText(comment[3]) && IsNumber(fields[0]);
    BatchJob job = {fields[0], ours ? comment[3] : "", 0, StateOf(fields[1], fields[2]), Escaped(fields[2])};
    if (ours && absl::SimpleAtoi(comment[4], &job.ranks)) jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace hooke
