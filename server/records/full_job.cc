#include "server/records/full_job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {

JobRecord FullJob(uint64_t number) {
  JobRecord job;
  job.number = number;
  job.job_id = absl::StrCat("fashion-", number);
  job.submission_id = absl::StrCat("submission-", number);
  job.spec.set_name("fashion");
  job.spec.mutable_groups()->set_count(2);
  job.spec.mutable_groups()->set_ranks(2);
  job.state = v1::JOB_STATE_EVALUATING;
  job.reason = "because, \"so\"; '";
  job.submitted_unix_ms = 1;
  job.preparing_us = 5;
  job.upload_us = 6;
  job.started_unix_ms = 2;
  job.first_step_unix_ms = 3;
  job.ended_unix_ms = 4;
  job.servers = {{"id1", "b:1"}, {"", "a:2"}};
  job.center.emplace().set_accuracy(0.9);
  job.generations.wanted.emplace().set_count(3);
  job.generations.earlier.emplace_back().add_groups()->set_last_step(77);
  job.generations.first_step = 78;
  job.generations.first_incarnation = 5;
  for (uint32_t i = 0; i < 3; ++i) {
    GroupRecord group;
    group.group = i;
    group.task = i == 2 ? v1::GroupStart::EVALUATE : v1::GroupStart::TRAIN;
    group.state = i == 2 ? v1::GROUP_STATE_RUNNING : v1::GROUP_STATE_FINISHED;
    group.reason = absl::StrCat("reason ", i);
    group.parts = {{absl::StrCat("w", i), 0, 2, "", uint64_t{1} << 40}};
    if (i == 1) {
      group.parts[0] = {"w1", 0, 1, "10.0.0.1", uint64_t{1} << 41, true};
      group.parts.push_back({"w2", 1, 1, "10.0.0.2", 7});
    }
    group.site = "hpc";
    group.incarnation = i + 1;
    group.failures = i;
    group.best_step = 100 + i;
    group.evaluated = i == 2;
    group.is_new = i == 1;
    group.exchanged_step = 90 + i;
    if (i == 1) {
      v1::StartTimes start;
      start.set_group(i);
      start.set_incarnation(i + 1);
      start.set_worker("w1");
      start.set_waited_for("slots");
      v1::LifeSpan* span = start.add_spans();
      span->set_what(v1::LifeSpan::STORED);
      span->set_begin_unix_us(90);
      span->set_duration_us(91);
      group.starts.emplace_back(start);
    }
    group.cause = i == 1 ? "ABORTED: x" : "";
    group.repeats = i == 1 ? 2 : 0;
    v1::RankProgress progress;
    progress.set_step(95 + i);
    if (i == 1) group.end_progress = progress.SerializeAsString();
    if (i == 1) group.last_lines = {"group 1 rank 0: a", "b"};
    job.groups.push_back(group);
  }
  return job;
}

std::string TextOf(const JobRecord& job) {
  std::string text =
      absl::StrCat(job.job_id, "|", job.number, "|", job.submission_id, "|", job.spec.ShortDebugString(), "|",
                   job.state, "|", job.reason, "|", job.submitted_unix_ms, "|", job.preparing_us, "|", job.upload_us,
                   "|", job.started_unix_ms, "|", job.first_step_unix_ms, "|", job.ended_unix_ms, "|",
                   job.center.has_value() ? job.center->ShortDebugString() : "none");
  const Generations& generations = job.generations;
  absl::StrAppend(&text, "|", generations.wanted.has_value() ? generations.wanted->ShortDebugString() : "none", "|",
                  generations.first_step, "|", generations.first_incarnation);
  for (const v1::Generation& earlier : generations.earlier) absl::StrAppend(&text, "|", earlier.ShortDebugString());
  for (const JobServer& server : job.servers) absl::StrAppend(&text, "|", server.id, "@", server.address);
  for (const GroupRecord& g : job.groups) {
    absl::StrAppend(&text, "\n", g.group, "|", g.task, "|", g.state, "|", g.reason, "|", g.site, "|");
    for (const GroupPart& p : g.parts) {
      absl::StrAppend(&text, p.worker, "|", p.first_rank, "|", p.ranks, "|", p.address, "|", p.last_event, "|", p.ended,
                      "|");
    }
    absl::StrAppend(&text, g.incarnation, "|", g.failures, "|", g.best_step, "|", g.evaluated, "|", g.cause, "|",
                    g.repeats, "|", absl::StrJoin(g.last_lines, ","), "|", g.is_new, "|", g.exchanged_step, "|",
                    g.end_progress);
    for (const PackedStart& start : g.starts) absl::StrAppend(&text, "|", start.Unpack().ShortDebugString());
  }
  return text;
}

}  // namespace hooke
