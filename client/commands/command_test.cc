// Tests the real program against a scripted coordinator: its output and exit codes.
#include "client/commands/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/fake_servers.h"
#include "client/process/run_program.h"
#include "job/job_refusal.h"
#include "wire/cluster_token.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    std::filesystem::create_directories(folder_);
    v1::JobStatus failed = RunningJob("fashion-2");
    failed.set_state(v1::JOB_STATE_FAILED);
    failed.set_reason("group 0: no such file: /data/train-images-idx3-ubyte");
    failed.set_ended_unix_ms(1'000'000'010'000);
    v1::JobStatus cancelled = failed;
    cancelled.set_state(v1::JOB_STATE_CANCELLED);
    cancelled.set_job_id("fashion-3");
    cancelled.set_reason("by a user");
    coordinator_.jobs["fashion-1"] = {RunningJob("fashion-1"), SucceededJob("fashion-1")};
    coordinator_.jobs["fashion-2"] = {failed};
    coordinator_.jobs["fashion-3"] = {cancelled};
    coordinator_.jobs["fashion-4"] = {RunningJob("fashion-4")};
    coordinator_.log = "2030-01-01T00:00:00Z coordinator group 0 starts\n2030-01-01T00:00:01Z g0/r0 step 1\n";
    listener_ = std::make_unique<FakeListener>(coordinator_);
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  ProgramOptions Options(const std::vector<std::string>& arguments) {
    ProgramOptions options;
    options.arguments = {"client/hooke"};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = {"TZ=UTC", "HOME=" + folder_, "HOOKE_COORDINATOR=" + listener_->address(),
                           "PATH=/usr/bin:/bin"};
    return options;
  }
  ProgramOutcome Run(const std::vector<std::string>& arguments) { return RunProgram(Options(arguments)); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/command_test");
  FakeCoordinatorService coordinator_;
  std::unique_ptr<FakeListener> listener_;
};

// `watch` of a successful job prints plain lines, with the center's accuracy last. The exit code is 0.
TEST_F(CommandTest, WatchToSuccess) {
  const ProgramOutcome result = Run({"watch", "fashion-1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("group 0: step 528/1123 (47 %)"));
  EXPECT_TRUE(absl::EndsWith(result.out, "\ncenter test accuracy: 90.12 %\n")) << result.out;
}

// `watch` of a failed or cancelled job prints the reason, and the exit code is 1.
TEST_F(CommandTest, WatchToFailure) {
  const ProgramOutcome failed = Run({"watch", "fashion-2"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err,
            "hooke: job fashion-2 failed: group 0: no such file: /data/train-images-idx3-ubyte; `hooke logs fashion-2` "
            "shows its log\n");
  const ProgramOutcome cancelled = Run({"watch", "fashion-3"});
  EXPECT_EQ(cancelled.exit_code, 1);
  EXPECT_THAT(cancelled.err, StartsWith("hooke: job fashion-3 was cancelled: by a user"));
  const ProgramOutcome unknown = Run({"watch", "nope-1"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.err, "hooke: no job nope-1\n");
}

// With --output json, `watch` prints one object per line.
TEST_F(CommandTest, WatchAsJsonLines) {
  const ProgramOutcome result = Run({"watch", "fashion-1", "--output", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["state"], "running");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["state"], "succeeded");
}

// Ctrl-C ends `watch`, which says so. The job goes on, and the exit code is 130.
TEST_F(CommandTest, InterruptEndsTheWatchingOnly) {
  Program watch(Options({"watch", "fashion-4"}));
  ASSERT_TRUE(watch.Prints("step 528/1123", absl::Seconds(20)));
  watch.Signal(SIGINT);
  const ProgramOutcome result = watch.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(
      result.err,
      "hooke: job fashion-4 goes on; `hooke watch fashion-4` shows it again, `hooke cancel fashion-4` stops it\n");
}

// `submit` sends the job with all defaults. With --watch the exit code is the job's.
TEST_F(CommandTest, Submit) {
  const ProgramOutcome result = Run({"submit", "deploy/jobs/fashion.yaml", "--watch"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("submitted fashion-1\n"));
  EXPECT_THAT(result.out, HasSubstr("center test accuracy: 90.12 %\n"));
  const ProgramOutcome json = Run({"submit", "deploy/jobs/fashion.yaml", "--output", "json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["job_id"], "fashion-1");
  absl::MutexLock lock(&coordinator_.mutex);
  ASSERT_EQ(coordinator_.submitted.size(), 2u);
  EXPECT_NE(coordinator_.submitted[0].submission_id(), coordinator_.submitted[1].submission_id());
  EXPECT_EQ(coordinator_.submitted[0].job().averaging().interval(), 4u);
}

// For a wrong job file, `submit` prints one line for each mistake and sends nothing. The exit code is 2.
TEST_F(CommandTest, SubmitOfAWrongFile) {
  const std::string path = folder_ + "/job.yaml";
  std::ofstream(path) << "name: a\nmodel: mlp\ndata: {train: a, test: b}\naverging: {rule: none}\n";
  const ProgramOutcome result = Run({"submit", path});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, path +
                            ":4: averging: unknown key; allowed here: name, priority, owner, preemptible, model, data, "
                            "command, environment, "
                            "directory, files, sites, train, groups, averaging, collectives (did "
                            "you mean \"averaging\"?)\n");
  absl::MutexLock lock(&coordinator_.mutex);
  EXPECT_EQ(coordinator_.submitted.size(), 0u);
}

// `submit -` reads standard input. A valid job is submitted and can be watched. A wrong one is refused, with the lines
// of the mistakes. Reading stops at the size limit of a job file.
TEST_F(CommandTest, SubmitOfStandardInput) {
  const auto submit = [this](const std::string& text, const std::string& flags) {
    const std::string path = folder_ + "/input";
    std::ofstream(path) << text;
    ProgramOptions options = Options({});
    options.arguments = {"/bin/sh", "-c", absl::StrCat("exec client/hooke submit - ", flags, " < ", path)};
    return RunProgram(options);
  };
  const std::string right = "name: fashion\nmodel: mlp\ndata: {train: a, test: b}\n";
  const ProgramOutcome watched = submit(right, "--watch");
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_THAT(watched.out, StartsWith("submitted fashion-1\n"));
  EXPECT_THAT(watched.out, HasSubstr("center test accuracy: 90.12 %\n"));
  {
    absl::MutexLock lock(&coordinator_.mutex);
    ASSERT_EQ(coordinator_.submitted.size(), 1u);
    EXPECT_EQ(coordinator_.submitted[0].job().data().train(), (std::filesystem::current_path() / "a").string());
  }
  const ProgramOutcome wrong = submit("name: a\nmodel: mlp\naverging: {rule: none}\nepchs: 3\n", "");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("standard input, line 3: averging: unknown key"));
  EXPECT_THAT(wrong.err, HasSubstr("\nstandard input, line 4: epchs: unknown key"));
  EXPECT_THAT(wrong.err, testing::Not(HasSubstr("standard input:")));
  const ProgramOutcome empty = submit("", "");
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, StartsWith("standard input, line 1: is empty"));
  const ProgramOutcome large = submit(std::string((1 << 20) + 1, '#'), "");
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_THAT(large.err, StartsWith("standard input, line 1: is larger than 1 MiB"));
  absl::MutexLock lock(&coordinator_.mutex);
  EXPECT_EQ(coordinator_.submitted.size(), 1u);
}

// `jobs JOB` shows one job, as text or as JSON. For an unknown job it suggests a similar name, like every command that
// takes a job.
TEST_F(CommandTest, OneJob) {
  const ProgramOutcome one = Run({"jobs", "fashion-1"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("job         fashion-1\nstate       running for "));
  EXPECT_THAT(one.out, HasSubstr("\ngroup 1  running  worker-2 (local)  1      512/1123"));
  const nlohmann::json json = nlohmann::json::parse(Run({"jobs", "fashion-1", "--output", "json"}).out);
  EXPECT_EQ(json["job_id"], "fashion-1");
  EXPECT_EQ(json["groups"][1]["progress"]["step"], 512);
  for (const char* command : {"jobs", "watch", "logs", "resume", "cancel", "forget", "profile", "metrics"}) {
    const ProgramOutcome typo = Run({command, "fashon-1"});
    EXPECT_EQ(typo.exit_code, 1) << command;
    EXPECT_EQ(typo.err, "hooke: no job fashon-1 (did you mean \"fashion-1\"?)\n") << command;
  }
  EXPECT_THAT(Run({"jobs", "fashion"}).err, HasSubstr("(did you mean \"fashion-"));
  EXPECT_EQ(Run({"jobs", "nope-1"}).err, "hooke: no job nope-1\n");
}

// `jobs ""`, as from a script's unset variable, is a wrong command line. It does not list all jobs.
TEST_F(CommandTest, AnEmptyJobIsNoListOfAll) {
  const ProgramOutcome result = Run({"jobs", ""});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "hooke: JOB is empty; name a job, or leave it out to list all\n");
}

// A refusal that names no key is printed unchanged, with exit code 1.
TEST_F(CommandTest, SubmitThatIsRefused) {
  coordinator_.submit_status = {grpc::FAILED_PRECONDITION, "groups.ranks is 64, but no worker has more than 4 slots"};
  const ProgramOutcome result = Run({"submit", "deploy/jobs/fashion.yaml"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "hooke: groups.ranks is 64, but no worker has more than 4 slots\n");
}

// The coordinator's refusal of a file is printed like the client's own: with line numbers, and with exit code 2.
TEST_F(CommandTest, SubmitOfAFileThatTheCoordinatorRefuses) {
  const std::string path = folder_ + "/job.yaml";
  std::ofstream(path) << "name: a\nmodel: mlp\ndata: {train: a, test: b}\ngroups:\n  ranks: 4\n";
  const absl::Status refusal = RefusalOf({{"groups.ranks", "4 ranks do not fit", {}}});
  coordinator_.submit_status = {grpc::FAILED_PRECONDITION, "groups.ranks: 4 ranks do not fit",
                                std::string(*refusal.GetPayload(kStatusDetails))};
  const ProgramOutcome result = Run({"submit", path});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, path + ":5: groups.ranks: 4 ranks do not fit\n");
}

// `jobs` and `nodes` print tables, or JSON with --output json.
TEST_F(CommandTest, Listings) {
  v1::NodeStatus worker;
  worker.set_name("worker-1");
  worker.set_kind(v1::NodeStatus::WORKER);
  worker.set_alive(true);
  coordinator_.nodes = {worker};
  coordinator_.jobs_left_out = 7;
  EXPECT_THAT(Run({"jobs"}).out, HasSubstr("\nfashion-1  succeeded  100 %"));
  const nlohmann::json jobs = nlohmann::json::parse(Run({"jobs", "--output", "json"}).out);
  EXPECT_EQ(jobs["jobs"].size(), 4u);
  EXPECT_EQ(jobs["left_out"], 7);
  EXPECT_THAT(Run({"nodes"}).out, HasSubstr("\nworker-1  worker  alive"));
  nlohmann::json nodes = nlohmann::json::parse(Run({"nodes", "--output=json"}).out);
  EXPECT_EQ(nodes["nodes"][0]["name"], "worker-1");
  EXPECT_FALSE(nodes.contains("links"));
  v1::NodeLink link;
  link.set_from("worker-2");
  coordinator_.links = {link};
  EXPECT_THAT(Run({"nodes", "--links"}).out, HasSubstr("\nworker-2  "));
  nodes = nlohmann::json::parse(Run({"nodes", "--links", "--output=json"}).out);
  EXPECT_EQ(nodes["links"][0]["from"], "worker-2");
  EXPECT_THAT(Run({"resume", "fashion-4"}).out, StartsWith("fashion-4: no group is held; "));
  EXPECT_EQ(Run({"cancel", "fashion-4"}).out, "fashion-4: cancelled\n");
  EXPECT_EQ(Run({"forget", "fashion-3"}).out, "fashion-3: forgotten\n");
  EXPECT_EQ(nlohmann::json::parse(Run({"forget", "fashion-3", "--output=json"}).out)["job_id"], "fashion-3");
  EXPECT_EQ(Run({"logs", "fashion-1"}).out, coordinator_.log);
  EXPECT_EQ(Run({"logs", "-f", "fashion-1"}).out, coordinator_.log);
  EXPECT_EQ(Run({"logs", "nope-1"}).err, "hooke: no job nope-1\n");
  EXPECT_THAT(Run({"version"}).out, testing::MatchesRegex("hooke [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// `top` writes one picture into a pipe, or as many as are asked for. Ctrl-C ends it with 0, unless some are still due.
TEST_F(CommandTest, Top) {
  const ProgramOutcome once = Run({"top"});
  EXPECT_EQ(once.exit_code, 0) << once.err;
  EXPECT_THAT(once.out, HasSubstr("jobs: 1 running, 0 waiting, 3 ended"));
  EXPECT_THAT(once.out, HasSubstr("\nfashion-4 0  running  worker-1 (local)  528/1123"));
  const ProgramOutcome json = Run({"top", "--interval=0.1", "--count=2", "--output=json"});
  const std::vector<std::string> lines = absl::StrSplit(json.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << json.err;
  EXPECT_EQ(nlohmann::json::parse(lines[1])["jobs"].size(), 4u);
  for (const bool counted : {false, true}) {
    Program top(Options({"top", "--interval=0.1", counted ? "--count=1000" : "--output=table"}));
    ASSERT_TRUE(top.Prints("\n\n", absl::Seconds(20)));
    top.Signal(SIGINT);
    EXPECT_EQ(top.Wait().exit_code, counted ? 130 : 0);
  }
}

// `scale` sends the new number of groups, and of which kind.
TEST_F(CommandTest, Scale) {
  EXPECT_EQ(Run({"scale", "fashion-1", "--groups=3"}).out,
            "fashion-1: 3 groups from the next exchange on; `hooke watch fashion-1` shows it\n");
  EXPECT_EQ(Run({"scale", "fashion-1", "--groups=1", "--site=cloud"}).out,
            "fashion-1: 1 group at cloud from the next exchange on; `hooke watch fashion-1` shows it\n");
  ASSERT_EQ(coordinator_.scaled.size(), 2u);
  EXPECT_EQ(coordinator_.scaled[0].groups(), 3u);
  EXPECT_EQ(coordinator_.scaled[1].site(), "cloud");
  EXPECT_EQ(Run({"scale", "fashion-1"}).exit_code, 2);
  EXPECT_EQ(Run({"scale", "fashion-1", "--groups=0"}).exit_code, 2);
  EXPECT_EQ(Run({"scale", "fashion-9", "--groups=2"}).exit_code, 1);
}

// `drain` says what becomes of the worker and its groups. For a name that no worker has, the error suggests the most
// similar one.
TEST_F(CommandTest, Drain) {
  v1::NodeStatus& node = coordinator_.nodes.emplace_back();
  node.set_name("worker-2");
  node.set_kind(v1::NodeStatus::WORKER);
  node.set_alive(true);
  node.set_slots(4);
  node.set_slots_used(3);
  EXPECT_EQ(Run({"drain", "worker-2"}).out,
            "worker-2: gets no more groups; 3 of 4 slots are used until its groups end by themselves; `hooke nodes` "
            "shows it\n");
  EXPECT_EQ(coordinator_.nodes[0].drain(), v1::DRAIN_FINISH);
  EXPECT_THAT(Run({"nodes"}).out, HasSubstr("  draining  "));
  EXPECT_THAT(Run({"drain", "worker-2", "--now"}).out, HasSubstr("until its groups have stopped, to start elsewhere;"));
  EXPECT_EQ(coordinator_.nodes[0].drain(), v1::DRAIN_NOW);
  EXPECT_EQ(Run({"drain", "worker-2", "--undo"}).out, "worker-2: gets groups again\n");
  coordinator_.nodes[0].set_slots_used(0);
  EXPECT_EQ(nlohmann::json::parse(Run({"drain", "worker-2", "--output=json"}).out)["drain"], "finish");
  EXPECT_EQ(Run({"drain", "worker-2"}).out, "worker-2: drained; no group runs there\n");
  const ProgramOutcome typo = Run({"drain", "worker2"});
  EXPECT_EQ(typo.exit_code, 1);
  EXPECT_EQ(typo.err, "hooke: no worker worker2 (did you mean \"worker-2\"?)\n");
  EXPECT_EQ(Run({"drain", ""}).exit_code, 2);
  const ProgramOutcome both = Run({"drain", "worker-2", "--now", "--undo"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr(" excludes --"));
}

// A wrong command line gives exit code 2 and says what is allowed.
TEST_F(CommandTest, WrongCommandLines) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } cases[] = {
      {{"frobnicate"}, "hooke: there is no command \"frobnicate\"; the commands are up, run, submit, jobs,"},
      {{"sumbit"}, "hooke: there is no command \"sumbit\" (did you mean \"submit\"?); the commands are up,"},
      {{"top", "--interval", "0"}, "hooke: --interval: Value 0 not in range 0.1"},
      {{"jobs", "--output", "xml"}, "hooke: --output: xml not in {table,json}"},
      {{"jobs", "--frob"}, "--frob"},
      {{"watch"}, "hooke: JOB is required\nhooke: `hooke watch --help` says what is allowed\n"},
      {{"run", "--ranks", "2", "python3", "train.py"},
       "hooke: The following arguments were not expected: python3 train.py\nhooke: the program to run comes after --, "
       "as"},
      {{"up", "--workers", "0"}, "hooke: --workers: Value 0 not in range 1 to 64"},
      {{"jobs", "--coordinator", "nonsense"},
       "hooke: --coordinator: \"nonsense\" is no address, allowed is HOST:PORT or [IPv6]:PORT\n"},
      {{}, "Usage: hooke [OPTIONS] SUBCOMMAND"},
      {{"submit", "none.yaml"}, "none.yaml: no such file; name a job file (docs/job-file.md says what is in one)\n"},
  };
  for (const auto& one : cases) {
    const ProgramOutcome result = Run(one.arguments);
    EXPECT_EQ(result.exit_code, 2) << one.error;
    EXPECT_THAT(result.err, HasSubstr(one.error));
    EXPECT_EQ(result.out, "");
  }
}

// A command that cannot reach the coordinator says so, with exit code 1.
TEST_F(CommandTest, CoordinatorUnreachable) {
  const std::string address = listener_->address();
  listener_.reset();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"jobs"},
                                             {"nodes"},
                                             {"watch", "a-1"},
                                             {"logs", "a-1"},
                                             {"cancel", "a-1"},
                                             {"forget", "a-1"},
                                             {"submit", "deploy/jobs/fashion.yaml"}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--coordinator", address});
    ProgramOptions options;
    options.arguments = {"client/hooke"};
    options.arguments.insert(options.arguments.end(), all.begin(), all.end());
    const ProgramOutcome result = RunProgram(options);
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_EQ(result.err,
              absl::StrCat("hooke: cannot reach the coordinator at ", address,
                           ": Connection refused; is hooke-server running there? (--coordinator chooses another)\n"));
  }
}

// `export` writes the file and refuses to overwrite it. If the file size limit stops a write, no file is left.
TEST_F(CommandTest, Export) {
  FakeParameterServer server;
  v1::PullResponse header;
  header.mutable_header()->set_shard_count(1);
  v1::Parameter* parameter = header.mutable_header()->mutable_layout()->add_parameters();
  parameter->set_name("w");
  parameter->set_type(v1::Parameter::FLOAT32);
  parameter->add_shape(1000);
  v1::PullResponse block;
  block.mutable_block()->set_values(std::string(4000, '\0'));
  server.responses = {header, block};
  FakeListener parameters(server);
  coordinator_.jobs["fashion-1"].back().add_servers(parameters.address());
  coordinator_.jobs["fashion-1"] = {coordinator_.jobs["fashion-1"].back()};
  const std::string path = folder_ + "/model.safetensors";

  ProgramOptions limited = Options({});
  limited.arguments = {"/bin/sh", "-c", absl::StrCat("ulimit -f 1; exec client/hooke export fashion-1 ", path)};
  const ProgramOutcome too_large = RunProgram(limited);
  EXPECT_EQ(too_large.exit_code, 1);
  EXPECT_THAT(too_large.err, HasSubstr("model.safetensors: cannot hold"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));

  const ProgramOutcome first = Run({"export", "fashion-1", path});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, absl::StrCat(path, ": 1 tensors, 1000 values, 0.0 MiB, from the center of fashion-1\n"));
  const ProgramOutcome second = Run({"export", "fashion-1", path});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.err, absl::StrCat("hooke: ", path,
                                     ": the file exists already; choose another name, or --force to replace it\n"));
  EXPECT_EQ(Run({"export", "fashion-1", path, "--force"}).exit_code, 0);
}

// Ctrl-C during an export gives exit code 130 and leaves no partial file.
TEST_F(CommandTest, AnInterruptedExportLeavesNothing) {
  FakeParameterServer server;
  v1::PullResponse header;
  header.mutable_header()->set_shard_count(1);
  v1::Parameter* parameter = header.mutable_header()->mutable_layout()->add_parameters();
  parameter->set_name("w");
  parameter->set_type(v1::Parameter::FLOAT32);
  parameter->add_shape(1000);
  server.responses = {header};
  server.falls_silent = true;
  FakeListener parameters(server);
  coordinator_.jobs["fashion-1"] = {SucceededJob("fashion-1")};
  coordinator_.jobs["fashion-1"].back().add_servers(parameters.address());
  const std::string path = folder_ + "/model.safetensors";
  Program program(Options({"export", "fashion-1", path}));
  const std::string part = absl::StrCat(path, ".part-", program.pid());
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!std::filesystem::exists(part) && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  ASSERT_TRUE(std::filesystem::exists(part));
  program.Signal(SIGINT);
  const ProgramOutcome result = program.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, absl::StrCat("hooke: interrupted; ", path, " was not written\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// `profile` prints the ranks' profiles and writes their trace. It does not overwrite a file, and refuses a job without
// a profile.
TEST_F(CommandTest, Profile) {
  EXPECT_EQ(Run({"profile", "nope-1"}).err, "hooke: no job nope-1\n");
  const ProgramOutcome none = Run({"profile", "fashion-1"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "hooke: it has no profile\n");
  // Before the first profile, the trace has the starts alone.
  v1::StartTimes* start = coordinator_.starts.add_starts();
  start->set_worker("w1");
  start->add_spans()->set_what(v1::LifeSpan::STORED);
  const std::string early = folder_ + "/early.json";
  EXPECT_EQ(Run({"profile", "fashion-1"}).exit_code, 1);
  const ProgramOutcome starts = Run({"profile", "fashion-1", "--trace", early});
  EXPECT_EQ(starts.exit_code, 0);
  EXPECT_EQ(starts.err, "hooke: it has no profile\n");
  EXPECT_THAT(starts.out, StartsWith(early + ": 0 events of 0 ranks; 1 start, from submit to the first step; open"));
  coordinator_.starts.Clear();
  for (const uint32_t group : {0, 1}) {
    v1::ReadProfileResponse& rank = coordinator_.profiles.emplace_back();
    rank.set_group(group);
    rank.mutable_profile()->set_step_ns(1000000);
    rank.mutable_profile()->set_machine("m");
    v1::CollectiveProfile* some = rank.mutable_profile()->add_collectives();
    some->set_operation(v1::ALL_REDUCE);
    some->set_bytes_min(1000);
    some->set_bytes_max(1000);
    some->add_bucket_begin_ns(5000);
    some->add_bucket_end_ns(5001);
    some->add_bucket_calls(3);
    rank.mutable_profile()->add_events()->set_phase(v1::RankProgress::COMPUTE);
  }
  EXPECT_THAT(Run({"profile", "fashion-1"}).out,
              StartsWith("fashion-1: 2 ranks of 2 groups, together 0.002 s in steps\nOPERATION   BYTES        CALLS"));
  EXPECT_THAT(Run({"profile", "fashion-1", "--exact"}).out, HasSubstr("\nall-reduce  1000   6 "));
  EXPECT_THAT(Run({"profile", "fashion-1", "--per-group"}).out,
              HasSubstr("\n\nfashion-1, group 1: 1 rank of 1 group,"));
  const nlohmann::json json = nlohmann::json::parse(Run({"profile", "fashion-1", "--per-group", "--output=json"}).out);
  EXPECT_EQ(json["all"]["collectives"][0]["calls"], 6);
  EXPECT_EQ(json["per_group"][1]["group"], 1);
  const std::string path = folder_ + "/trace.json";
  EXPECT_THAT(Run({"profile", "fashion-1", "--steps"}).out, HasSubstr("\nThe last steps:\n"));
  EXPECT_TRUE(nlohmann::json::parse(Run({"profile", "fashion-1", "--steps", "--output=json"}).out).contains("steps"));
  const std::vector<std::string> trace = {"profile", "fashion-1", "--trace", path};
  const ProgramOutcome written = Run(trace);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr(path + ": 2 events of 2 ranks; open it at"));
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file)["otherData"]["job_id"], "fashion-1");
  const ProgramOutcome again = Run(trace);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.err, absl::StrCat("hooke: ", path,
                                    ": the file exists already; choose another name, or --force to replace it\n"));
  EXPECT_EQ(Run({"profile", "fashion-1", "--trace", path, "--force"}).exit_code, 0);
  EXPECT_EQ(Run({"profile", "fashion-1", "--force"}).exit_code, 2);
}

// With the script, bash completes commands, flags, values, job ids from the coordinator, and files.
TEST_F(CommandTest, BashCompletion) {
  const std::string programs = std::filesystem::absolute("client").string();
  const auto complete = [&](const std::string& line, int word) {
    ProgramOptions options = Options({});
    options.arguments = {"/bin/bash", "-c",
                         absl::StrCat("PATH=", programs, ":$PATH; source <(hooke completion bash); COMP_WORDS=(", line,
                                      "); COMP_CWORD=", word, "; _hooke; echo ${COMPREPLY[@]}")};
    const ProgramOutcome result = RunProgram(options);
    EXPECT_EQ(result.err, "");
    return result.out;
  };
  EXPECT_EQ(complete("hooke su", 1), "submit\n");
  EXPECT_EQ(complete("hooke up --work", 2), "--workers\n");
  EXPECT_EQ(complete("hooke jobs --output ''", 3), "table json\n");
  EXPECT_EQ(complete("hooke export --format ''", 3), "safetensors torchscript\n");
  EXPECT_EQ(complete("hooke export --format torchscript fashion-1 deploy/job", 5), "deploy/jobs\n");
  EXPECT_EQ(complete("hooke prof", 1), "profile\n");
  EXPECT_EQ(complete("hooke profile fashion-1 --trace deploy/job", 4), "deploy/jobs\n");
  coordinator_.jobs_left_out = 7;  // The line about jobs left out is not completed as a job.
  EXPECT_EQ(complete("hooke watch ''", 2), "fashion-1 fashion-2 fashion-3 fashion-4\n");
  EXPECT_EQ(complete("hooke jobs fa", 2), "fashion-1 fashion-2 fashion-3 fashion-4\n");
  EXPECT_EQ(complete("hooke watch fa", 2), "fashion-1 fashion-2 fashion-3 fashion-4\n");
  EXPECT_EQ(complete("hooke --coordinator 127.0.0.1:1 watch fa", 4), "\n");
  EXPECT_EQ(complete("hooke completion ''", 2), "bash zsh\n");
  EXPECT_EQ(complete("hooke bench ''", 2), "tune explain\n");
  EXPECT_EQ(complete("hooke bench explain --tuning deploy/job", 4), "deploy/jobs\n");
  EXPECT_EQ(complete("hooke submit deploy/jobs/fashion-n", 2), "deploy/jobs/fashion-none.yaml\n");
  EXPECT_EQ(complete("hooke export fashion-1 deploy/job", 3), "deploy/jobs\n");
  EXPECT_THAT(Run({"completion", "zsh"}).out, StartsWith("#compdef hooke\n"));
}

// zsh parses the zsh script, if zsh is installed here.
TEST_F(CommandTest, ZshCompletionParses) {
  if (std::system("command -v zsh >/dev/null 2>&1") != 0) GTEST_SKIP() << "no zsh here";
  std::ofstream(folder_ + "/_hooke") << Run({"completion", "zsh"}).out;
  EXPECT_EQ(std::system(absl::StrCat("zsh -n ", folder_, "/_hooke").c_str()), 0);
}

// The token file comes from the flag, else from the environment. A user without the token is told what to do.
TEST_F(CommandTest, SendsTheTokenOfItsFile) {
  const FakeListener closed(coordinator_, 0, ClusterToken("0123456789abcdef"));
  const std::string file = (std::filesystem::path(folder_) / "token").lexically_normal();
  std::ofstream(file) << "0123456789abcdef\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ProgramOptions options = Options({"nodes", "--coordinator", closed.address()});
  const ProgramOutcome refused = RunProgram(options);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, absl::StrCat("hooke: the coordinator at ", closed.address(),
                                      ": this cluster wants a token: give --token-file, or set HOOKE_TOKEN_FILE\n"));
  options.environment.push_back("HOOKE_TOKEN_FILE=" + file);
  EXPECT_EQ(RunProgram(options).exit_code, 0) << RunProgram(options).err;
  // Calls with streams send the token, too.
  options.arguments = {"client/hooke", "watch", "fashion-1", "--coordinator", closed.address()};
  EXPECT_EQ(RunProgram(options).exit_code, 0) << RunProgram(options).err;
  options.arguments.insert(options.arguments.end(), {"--token-file", file + ".none"});
  const ProgramOutcome missing = RunProgram(options);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr(absl::StrCat("hooke: the token file ", file, ".none does not exist")));
}

// Every command and every flag has a help text, and so does `hooke` itself.
TEST(CommandLineTest, EverythingHasHelp) {
  Invocation invocation;
  const std::unique_ptr<Command> program = MakeProgram(invocation);
  EXPECT_THAT(program->HelpText(), HasSubstr("Examples:\n  hooke up "));
  const CommandDescription hooke = program->Describe();
  EXPECT_EQ(hooke.commands.size(), 22u);
  for (const CommandDescription& command : hooke.commands) {
    EXPECT_GE(command.help.size(), 10u) << command.name;
    for (const ArgumentDescription& argument : command.arguments) {
      EXPECT_GE(argument.help.size(), 5u)
          << command.name << " " << argument.position_name << absl::StrJoin(argument.long_names, "|");
    }
  }
}

}  // namespace
}  // namespace hooke
