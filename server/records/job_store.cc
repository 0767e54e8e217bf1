#include "server/records/job_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/records/job_records.h"

namespace hooke {
namespace {

// Adds the store's name to a status of job_records.h.
absl::Status Named(const RecordStore& store, const absl::Status& status) {
  if (absl::IsDataLoss(status)) return DamagedStore(store.Name(), status.message());
  return absl::Status(status.code(), absl::StrCat(store.Name(), " ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::Open(std::shared_ptr<RecordStore> store) {
  bool has_format = false, has_jobs = false;
  absl::Status status = store->Scan(kFormatKey, [&](absl::string_view /*key*/, absl::string_view value) {
    has_format = true;
    const absl::Status format = CheckFormat(value);
    return format.ok() ? format : Named(*store, format);
  });
  if (!status.ok()) return status;
  if (!has_format) {
    status = store->Scan(kJobsPrefix, [&](absl::string_view /*key*/, absl::string_view /*value*/) {
      has_jobs = true;
      return absl::OkStatus();
    });
    if (status.ok() && has_jobs) status = DamagedStore(store->Name(), absl::StrCat("no record ", kFormatKey));
    if (status.ok()) status = store->Write({{}, {{kFormatKey, FormatRecord()}}});
  }
  if (!status.ok()) return status;
  return std::unique_ptr<JobStore>(new JobStore(std::move(store)));
}

absl::StatusOr<StoredJobs> JobStore::Load() {
  StoredJobs stored;
  absl::Status status = LoadJobs(stored.jobs);
  if (status.ok()) status = LoadForgotten(stored.forgotten);
  if (status.ok()) status = LoadDrains(stored.drains);
  if (status.ok()) status = LoadUses(stored.uses);
  if (!status.ok()) return status;
  return stored;
}

absl::Status JobStore::LoadJobs(std::vector<JobRecord>& jobs) {
  Records records;  // The records of one job. A scan returns them one after another.
  const auto end_job = [&] {
    if (records.empty()) return absl::OkStatus();
    absl::StatusOr<JobRecord> job = JobFrom(std::exchange(records, {}));
    if (!job.ok()) return Named(*store_, job.status());
    jobs.push_back(*std::move(job));
    return absl::OkStatus();
  };
  const size_t prefix_bytes = JobPrefix(0).size();
  absl::Status status = store_->Scan(kJobsPrefix, [&](absl::string_view key, absl::string_view value) {
    absl::Status ended;
    if (!records.empty() && !absl::StartsWith(records.begin()->first, key.substr(0, prefix_bytes))) ended = end_job();
    records.emplace(key, value);
    return ended;
  });
  return status.ok() ? end_job() : status;
}

absl::Status JobStore::LoadForgotten(std::vector<ForgottenJob>& forgotten) {
  absl::Status status = store_->Scan(kForgottenPrefix, [&](absl::string_view key, absl::string_view value) {
    absl::StatusOr<ForgottenJob> job = ForgottenFrom(key, value);
    if (!job.ok()) return Named(*store_, job.status());
    forgotten.push_back(*std::move(job));
    return absl::OkStatus();
  });
  if (!status.ok() || forgotten.size() <= ForgottenJob::kKeptMax) return status;
  RecordChanges trimmed;
  const auto kept = forgotten.end() - ForgottenJob::kKeptMax;
  for (auto job = forgotten.begin(); job != kept; ++job) trimmed.removed.push_back(ForgottenKey(job->number));
  forgotten.erase(forgotten.begin(), kept);
  return store_->Write(trimmed);
}

absl::Status JobStore::LoadUses(std::vector<OwnerUse>& uses) {
  return store_->Scan(kUsesPrefix, [&](absl::string_view key, absl::string_view value) {
    absl::StatusOr<OwnerUse> use = UseFrom(key, value);
    if (!use.ok()) return Named(*store_, use.status());
    uses.push_back(*std::move(use));
    return absl::OkStatus();
  });
}

absl::Status JobStore::LoadDrains(std::vector<WorkerDrain>& drains) {
  return store_->Scan(kDrainsPrefix, [&](absl::string_view key, absl::string_view value) {
    absl::StatusOr<WorkerDrain> drain = DrainFrom(key, value);
    if (!drain.ok()) return Named(*store_, drain.status());
    drains.push_back(*std::move(drain));
    return absl::OkStatus();
  });
}

absl::Status JobStore::Write(absl::Span<const JobRecord> jobs, absl::Span<const ForgottenJob> forgotten,
                             absl::Span<const WorkerDrain> drains, absl::Span<const OwnerUse> uses) {
  RecordChanges changes;
  for (const JobRecord& job : jobs) {
    Records records = RecordsOf(job);
    absl::Status status = store_->Scan(JobPrefix(job.number), [&](absl::string_view key, absl::string_view value) {
      const auto same = records.find(key);
      if (same == records.end()) {
        // The job has fewer groups than before.
        if (IsGroupKey(job.number, key)) changes.removed.emplace_back(key);
      } else if (same->second == value) {
        records.erase(same);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    changes.put.merge(records);
  }
  for (const ForgottenJob& job : forgotten) {
    changes.removed.push_back(JobPrefix(job.number));
    changes.removed.push_back(HistoryPrefix(job.number));
    changes.put[ForgottenKey(job.number)] = ForgottenRecord(job);
  }
  for (const OwnerUse& use : uses) {
    changes.removed.push_back(UseKey(use.owner));
    if (use.slot_seconds > 0) changes.put[UseKey(use.owner)] = UseRecord(use);
  }
  for (const WorkerDrain& drain : drains) {
    changes.removed.push_back(DrainKey(drain.worker));
    if (drain.drain != v1::DRAIN_NONE) changes.put[DrainKey(drain.worker)] = DrainRecord(drain);
  }
  if (changes.put.empty() && changes.removed.empty()) return absl::OkStatus();
  return store_->Write(changes);
}

absl::StatusOr<Records> JobStore::ReadHistory(uint64_t number) {
  Records records;
  absl::Status status = store_->Scan(HistoryPrefix(number), [&](absl::string_view key, absl::string_view value) {
    records.emplace(key, value);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return records;
}

}  // namespace hooke
