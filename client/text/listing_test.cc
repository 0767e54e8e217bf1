#include "client/text/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/fake_servers.h"
#include "client/text/job_text.h"

namespace hooke {
namespace {

v1::NodeStatus Node(v1::NodeStatus::Kind kind, const std::string& name) {
  v1::NodeStatus node;
  node.set_kind(kind);
  node.set_name(name);
  node.set_alive(true);
  node.set_version("0.1.0");
  return node;
}

// The table of three jobs: one succeeded, one runs, one failed.
TEST(ListingTest, JobsTable) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = RunningJob("fashion-3");
  *jobs.add_jobs() = SucceededJob("fashion-2");
  v1::JobStatus failed = RunningJob("fashion-1");
  failed.set_state(v1::JOB_STATE_FAILED);
  failed.set_ended_unix_ms(failed.started_unix_ms() + 12000);
  failed.set_reason("no such\nfile");
  *jobs.add_jobs() = failed;
  EXPECT_EQ(
      JobsTable(jobs, absl::FromUnixMillis(1'000'000'043'000), absl::UTCTimeZone()),
      "JOB        STATE      DONE   TIME  ACCURACY  WHAT                                               REASON\n"
      "fashion-3  running    46 %   0:42  -         lenet, 2 groups x 2 ranks, elastic every 16 steps\n"
      "fashion-2  succeeded  100 %  1:32  90.12 %   lenet, 2 groups x 2 ranks, elastic every 16 steps\n"
      "fashion-1  failed     46 %   0:12  -         lenet, 2 groups x 2 ranks, elastic every 16 steps  no such file\n");
}

// Columns are aligned for names of any script.
TEST(ListingTest, ColumnsAreAsWideAsTheyLook) {
  EXPECT_EQ(FormatTable({{"\u8bad\u7ec3", "a"}, {"w\u00f6rk", "b"}, {"x", "c"}}),
            "\u8bad\u7ec3  a\nw\u00f6rk  b\nx     c\n");
}

// If a running group has not reported its step, as after a restart of the coordinator, the share done is "-" and not 0
// %.
TEST(ListingTest, AStepThatIsNotKnown) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(1)->clear_progress();
  EXPECT_EQ(DoneText(job), "-");
  EXPECT_TRUE(nlohmann::json::parse(DumpJson(JobToJson(job)))["groups"][1]["progress"].is_null());
  job.mutable_groups(1)->set_state(v1::GROUP_STATE_FINISHED);
  EXPECT_EQ(DoneText(job), "73 %") << "it has done all its steps, whatever they were";
  job.mutable_groups(1)->set_state(v1::GROUP_STATE_WAITING);
  job.mutable_groups(1)->set_incarnation(0);
  EXPECT_EQ(DoneText(job), "23 %") << "it was never started";
}

// The table says why a running job's loss may have risen.
TEST(ListingTest, JobsTableTellsASetback) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = RunningJob("fashion-3");
  jobs.mutable_jobs(0)->mutable_setback()->set_text("group 0 rank 0: server b:2 came back from its snapshot\n");
  EXPECT_NE(JobsTable(jobs, absl::FromUnixSeconds(1), absl::UTCTimeZone())
                .find("group 0 rank 0: server b:2 came back from its snapshot"),
            std::string::npos);
  EXPECT_EQ(JobToJson(jobs.jobs(0))["setback"]["text"], jobs.jobs(0).setback().text());
  EXPECT_TRUE(JobToJson(RunningJob("a"))["setback"].is_null());
}

// The table says why no group of a job runs, although the job has started. While one runs it says nothing of the
// others.
TEST(ListingTest, JobsTableTellsWhyNoGroupRuns) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = RunningJob("fashion-3");
  jobs.mutable_jobs(0)->set_reason("no group runs: needs 2 slots at hpc");
  jobs.mutable_jobs(0)->mutable_setback()->set_text("server b:2 came back from its snapshot");
  const auto table = [&jobs] { return JobsTable(jobs, absl::FromUnixSeconds(1), absl::UTCTimeZone()); };
  jobs.mutable_jobs(0)->mutable_groups(1)->set_state(v1::GROUP_STATE_WAITING);
  EXPECT_THAT(table(), testing::HasSubstr("came back from its snapshot\n"));
  jobs.mutable_jobs(0)->mutable_groups(0)->set_state(v1::GROUP_STATE_FINISHED);
  EXPECT_THAT(table(), testing::HasSubstr("no group runs: needs 2 slots at hpc\n"));
}

// Jobs that the coordinator left out are counted below the table.
TEST(ListingTest, JobsLeftOut) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = SucceededJob("fashion-2");
  const std::string whole = JobsTable(jobs, absl::FromUnixSeconds(1), absl::UTCTimeZone());
  jobs.set_left_out(1);
  EXPECT_EQ(JobsTable(jobs, absl::FromUnixSeconds(1), absl::UTCTimeZone()), whole + "and 1 older job\n");
  jobs.set_left_out(20);
  EXPECT_EQ(JobsTable(jobs, absl::FromUnixSeconds(1), absl::UTCTimeZone()), whole + "and 20 older jobs\n");
}

// The table of three nodes: a server, a worker, and a silent worker.
TEST(ListingTest, NodesTable) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus server = Node(v1::NodeStatus::SERVER, "127.0.0.1:7411");
  server.set_centers(1);
  server.set_center_bytes(3 << 20);
  server.set_disk_centers(2);
  server.set_disk_bytes(9 << 20);
  server.set_cores(0.257);
  *nodes.add_nodes() = server;
  v1::NodeStatus worker = Node(v1::NodeStatus::WORKER, "w1");
  worker.set_site("hpc");
  worker.set_slots(4);
  worker.set_slots_used(2);
  *nodes.add_nodes() = worker;
  worker.set_name("w2");
  worker.set_alive(false);
  worker.set_last_heard_unix_ms(90'000);
  *nodes.add_nodes() = worker;
  EXPECT_EQ(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
            "NODE            KIND    STATE            SITE  SLOTS     VERSION  CORES  CENTERS\n"
            "127.0.0.1:7411  server  alive            -     -         0.1.0    0.26   3 (2 on disk only), 3.0 MiB in "
            "memory, 9.0 MiB on disk\n"
            "w1              worker  alive            hpc   2/4 used  0.1.0    -      -\n"
            "w2              worker  silent for 0:10  hpc   2/4 used  0.1.0    -      -\n");
  nodes.mutable_nodes(1)->set_gpus(8);
  EXPECT_THAT(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
              testing::AllOf(testing::HasSubstr("SLOTS     GPUS  VERSION"), testing::HasSubstr("-         -     0.1.0"),
                             testing::HasSubstr("2/4 used  8     0.1.0"), testing::HasSubstr("2/4 used  0     0.1.0")));
  EXPECT_EQ(NodeToJson(nodes.nodes(1))["gpus"], 8);
  v1::NodeGroup& group = *nodes.mutable_nodes(1)->add_groups();
  group.set_job_id("job-1");
  group.set_group(3);
  group.set_ranks(2);
  EXPECT_EQ(NodeToJson(nodes.nodes(1))["groups"].dump(), R"([{"job_id":"job-1","group":3,"ranks":2}])");
  v1::ExchangeFigures& figures = *server.mutable_exchanges();
  figures.set_messages_per_second(4321.06);
  figures.set_received_bytes_per_second(12.3456e6);
  figures.set_sent_bytes_per_second(12.5e6);
  figures.set_median_ms(0.4251);
  figures.set_p99_ms(34.56);
  server.set_snapshot_age_seconds(7.5);
  *nodes.mutable_nodes(0) = server;
  EXPECT_THAT(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
              testing::EndsWith("\nserver 127.0.0.1:7411 answers 4321.1 messages/s, 12.35 MB/s in, 12.50 MB/s out, "
                                "p50 0.43 ms, p99 34.6 ms\n"));
  EXPECT_EQ(NodeToJson(server)["exchanges"]["median_ms"], 0.4251);
  EXPECT_EQ(NodeToJson(server)["snapshot_age_seconds"], 7.5);
  server.clear_exchanges();
  server.set_disk_centers(0);
  nodes.clear_nodes();
  *nodes.add_nodes() = server;
  EXPECT_THAT(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
              testing::EndsWith("  1, 3.0 MiB in memory, 9.0 MiB on disk\n"));
}

// A server that the coordinator cannot reach is not "alive", and a line below the table says why.
TEST(ListingTest, NodesTableTellsWhatIsWrongWithAServer) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus server = Node(v1::NodeStatus::SERVER, "10.0.0.9:7411");
  server.set_server_id("1f3a9c02aabbccdd");
  server.set_problem("advertises 10.0.0.9:7411, which the coordinator cannot reach: connection refused");
  *nodes.add_nodes() = server;
  EXPECT_EQ(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
            "NODE           KIND    STATE     SITE  SLOTS  VERSION  CORES  CENTERS\n"
            "10.0.0.9:7411  server  unusable  -     -      0.1.0    0.00   0, 0.0 KiB in memory, 0.0 KiB on disk\n"
            "server 1f3a9c02 advertises 10.0.0.9:7411, which the coordinator cannot reach: connection refused\n");
  EXPECT_EQ(NodeToJson(server)["problem"], server.problem());
  EXPECT_EQ(NodeToJson(server)["server_id"], "1f3a9c02aabbccdd");
  server.set_alive(false);
  nodes.clear_nodes();
  *nodes.add_nodes() = server;
  EXPECT_THAT(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()), testing::HasSubstr("  silent for "));
}

// A drained worker is "draining" until its last group has ended, then "drained".
TEST(ListingTest, NodesTableTellsOfDrains) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus worker = Node(v1::NodeStatus::WORKER, "w1");
  worker.set_slots(4);
  worker.set_slots_used(2);
  worker.set_drain(v1::DRAIN_FINISH);
  *nodes.add_nodes() = worker;
  worker.set_slots_used(0);
  worker.set_drain(v1::DRAIN_NOW);
  *nodes.add_nodes() = worker;
  worker.set_alive(false);
  worker.set_last_heard_unix_ms(90'000);
  *nodes.add_nodes() = worker;
  const std::string table = NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone());
  EXPECT_THAT(table, testing::HasSubstr("  draining "));
  EXPECT_THAT(table, testing::HasSubstr("  drained "));
  EXPECT_THAT(table, testing::HasSubstr("  silent for 0:10, drained "));
  EXPECT_EQ(NodeToJson(worker)["drain"], "now");
}

// A line below the table says why a worker is avoided, and until when. What a rank printed cannot steer the terminal.
TEST(ListingTest, NodesTableTellsWhyAWorkerIsAvoided) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus worker = Node(v1::NodeStatus::WORKER, "w1");
  worker.set_avoided("until 1970-01-01T00:11:40Z, because groups died there 3 times: \x1b[31mkilled");
  *nodes.add_nodes() = worker;
  const std::string table = NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone());
  EXPECT_THAT(table, testing::HasSubstr("  avoided "));
  EXPECT_THAT(table, testing::EndsWith("\nworker w1 is avoided until 00:11:40, because groups died there 3 times:  "
                                       "[31mkilled\n"));
  EXPECT_EQ(NodeToJson(worker)["avoided"], worker.avoided());
}

// A worker that a batch system has started for one job says for which.
TEST(ListingTest, NodesTableTellsWhoseAWorkerIs) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus worker = Node(v1::NodeStatus::WORKER, "n0-7");
  worker.set_only_job("fashion-1");
  *nodes.add_nodes() = worker;
  EXPECT_THAT(NodesTable(nodes, absl::FromUnixSeconds(100), absl::UTCTimeZone()),
              testing::HasSubstr("only for fashion-1"));
  EXPECT_EQ(NodeToJson(worker)["only_job"], "fashion-1");
}

// The names in JSON are those of the protocol. States are words. Numbers that JSON cannot hold are null.
TEST(ListingTest, JobAsJson) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(0)->mutable_progress()->set_loss(std::numeric_limits<double>::quiet_NaN());
  for (const double value : {21.5, std::numeric_limits<double>::infinity()}) {
    v1::Metric* metric = job.mutable_groups(0)->mutable_progress()->add_metrics();
    metric->set_name(std::isfinite(value) ? "perplexity" : "norm");
    metric->set_value(value);
  }
  job.add_servers("127.0.0.1:7411");
  const nlohmann::json json = nlohmann::json::parse(DumpJson(JobToJson(job)));
  EXPECT_EQ(json["groups"][0]["progress"]["metrics"], nlohmann::json({{"perplexity", 21.5}, {"norm", nullptr}}));
  EXPECT_EQ(json["groups"][1]["progress"]["metrics"], nlohmann::json::object());
  EXPECT_EQ(json["job_id"], "fashion-1");
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["first_step_unix_ms"].get<int64_t>() - json["submitted_unix_ms"].get<int64_t>(), 2000);
  EXPECT_TRUE(json["center"].is_null());
  EXPECT_TRUE(json["groups"][0]["progress"]["loss"].is_null());
  EXPECT_EQ(json["groups"][1]["progress"]["step"], 512);
  EXPECT_EQ(json["groups"][1]["task"], "train");
  EXPECT_EQ(json["servers"][0], "127.0.0.1:7411");
  EXPECT_EQ(json["spec"]["averaging"], "elastic");
  EXPECT_DOUBLE_EQ(JobToJson(SucceededJob("a"))["center"]["accuracy"].get<double>(), 0.9012);
}

// The text about averaging has each rule's numbers.
TEST(ListingTest, Averaging) {
  v1::AveragingSpec spec;
  spec.set_rule(v1::AveragingSpec::DILOCO);
  spec.set_interval(64);
  EXPECT_EQ(AveragingText(spec), "diloco every 64 steps");
  spec.set_interval_auto(true);
  EXPECT_EQ(AveragingText(spec), "diloco at most every 64 steps");
  spec.set_interval_auto(false);
  spec.set_fragments(4);
  spec.set_delay(8);
  spec.set_compression(v1::AveragingSpec::COMPRESSION_INT8);
  EXPECT_EQ(AveragingText(spec), "diloco every 64 steps in 4 fragments, delayed by 8, int8");
  spec.Clear();
  spec.set_rule(v1::AveragingSpec::ASYNC);
  spec.set_interval_seconds(1.5);
  spec.set_compression(v1::AveragingSpec::COMPRESSION_NONE);
  EXPECT_EQ(AveragingText(spec), "async every 1.5 s");
  spec.set_rule(v1::AveragingSpec::NONE);
  EXPECT_EQ(AveragingText(spec), "no averaging");
}

// If a peer's text is not UTF-8, the listing is still printed.
TEST(ListingTest, JsonOfBytesThatAreNoText) {
  v1::NodeStatus node = Node(v1::NodeStatus::WORKER, "w\xff");
  EXPECT_FALSE(nlohmann::json::parse(DumpJson(NodeToJson(node)), nullptr, /*allow_exceptions=*/false).is_discarded());
}

}  // namespace
}  // namespace hooke
