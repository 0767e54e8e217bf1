#include "worker/slurm/batch_end.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr size_t kTextsMax = 3;  // A note has a few hundred bytes.
// A group may begin to wait some time after its batch job has gone, because the coordinator first gives the silent
// workers a lease. If no group of a job has waited within this time, the texts about the job are dropped.
constexpr absl::Duration kWaitsWithin = absl::Minutes(2);

}  // namespace

std::string EndText(const BatchEnd& end) {
  const std::string name = absl::StrCat("Slurm job ", end.id, " ended");
  if (end.state.empty()) return absl::StrCat(name, ", and Slurm does not say how");
  if (end.state == "COMPLETED") return end.script_said.empty() ? "" : absl::StrCat(name, ": ", end.script_said);
  if (end.state != "FAILED") return absl::StrCat(name, ": ", end.state);
  return absl::StrCat(name, ": FAILED, see ", end.log, end.last_line.empty() ? "" : ": ", end.last_line);
}

void EndNotes::Add(const std::string& job_id, const std::string& text, absl::Duration now) {
  OfJob& job = jobs_[job_id];
  job.texts.push_back(text);
  if (job.texts.size() > kTextsMax) job.texts.erase(job.texts.begin());
  job.waited = false;
  job.last_came = now;
}

void EndNotes::Next(const std::set<std::string>& waiting, absl::Duration now) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    OfJob& job = it->second;
    const bool waits = waiting.count(it->first) > 0;
    job.waited = job.waited || waits;
    const bool goes = !waits && (job.waited || now - job.last_came >= kWaitsWithin);
    it = goes ? jobs_.erase(it) : std::next(it);
  }
}

std::map<std::string, std::vector<std::string>> EndNotes::Texts() const {
  std::map<std::string, std::vector<std::string>> texts;
  for (const auto& [job_id, job] : jobs_) texts[job_id] = job.texts;
  return texts;
}

}  // namespace hooke
