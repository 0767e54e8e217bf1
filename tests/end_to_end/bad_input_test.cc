// Tests a running cluster's answers to bad input, which must not harm the cluster. client/ tests the checks of job
// files, and server/ the answers to malformed messages.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kJobLimit = absl::Seconds(120);

class BadInputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ClusterOptions options;
    options.workers = 1;
    options.server_flags = {"--snapshot-interval=1s"};
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 1000, 1).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 200, 2).ok());
    job_.data = cluster_->folder();
    job_.model = "mlp";
    job_.learning_rate = 0.05;
    job_.groups = 1;
    job_.epochs = 1;
  }

  // Runs a job to its end and returns the reason why it failed.
  std::string Failure(const std::string& yaml) {
    const auto id = cluster_->Submit(yaml);
    if (!id.ok()) return std::string(id.status().message());
    const auto end = cluster_->AwaitEnd(*id, kJobLimit);
    EXPECT_TRUE(end.ok()) << end.status();
    if (!end.ok()) return "";
    EXPECT_EQ(end->state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(end->groups(0).incarnation(), 1u) << "a mistake of the user's was tried again";
    return end->reason();
  }

  void Succeed() {
    const auto id = cluster_->Submit(ToYaml(job_));
    ASSERT_TRUE(id.ok()) << id.status();
    const auto end = cluster_->AwaitEnd(*id, kJobLimit);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason() << cluster_->Log(*id);
  }

  std::unique_ptr<Cluster> cluster_;
  JobText job_;
};

// If a data file is missing, cut short or of the wrong kind, the job fails at once, and the error names the file. The
// cluster takes further jobs.
TEST_F(BadInputTest, DataFiles) {
  const std::string folder = cluster_->folder();
  JobText job = job_;
  job.data = "/no/such/folder";
  EXPECT_THAT(
      Failure(ToYaml(job)),
      HasSubstr(
          "no images: neither /no/such/folder/train-images-idx3-ubyte nor /no/such/folder/train-images-idx3-ubyte.gz "
          "exists; data.train and data.test name the part before \"-images-\""));

  const std::string images = folder + "/train-images-idx3-ubyte";
  fs::resize_file(images, 100016);
  EXPECT_THAT(
      Failure(ToYaml(job_)),
      HasSubstr(images +
                " is cut short: its header promises 784000 bytes of images, there are 100000; download it again"));
  ASSERT_TRUE(WriteBars(folder + "/train", 1000, 1).ok());
  {
    std::fstream file(images, std::ios::in | std::ios::out | std::ios::binary);
    file.write("JUNK", 4);
  }
  EXPECT_THAT(
      Failure(ToYaml(job_)),
      HasSubstr(absl::StrCat(images, " is not an IDX file of images: it starts with 0x4a554e4b, not 0x00000803")));

  ASSERT_TRUE(WriteBars(folder + "/train", 1000, 1).ok());
  Succeed();
}

// The log of a failed job ends with the cause, after all output of its ranks and launchers. No launcher crashes.
TEST_F(BadInputTest, LogEndsWithTheCause) {
  JobText missing = job_;
  missing.data = "/no/such/folder";
  missing.ranks = 1;
  missing.groups = 2;  // When one group has failed, the other one is stopped.
  JobText diverges = job_;
  diverges.learning_rate = 1e3;
  const JobText jobs[] = {missing, diverges, missing, diverges};
  for (const JobText& job : jobs) {
    const auto id = cluster_->Submit(ToYaml(job));
    ASSERT_TRUE(id.ok()) << id.status();
    const ProgramResult followed = cluster_->Hooke({"logs", *id, "--follow"}, kJobLimit);
    const auto end = cluster_->Status(*id);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(cluster_->Log(*id), followed.output) << "lines came after the end";
    EXPECT_THAT(followed.output, EndsWith(absl::StrCat(" coordinator job failed: ", end->reason(), "\n")));
    EXPECT_THAT(followed.output, Not(HasSubstr("Segmentation fault")));
    EXPECT_THAT(followed.output, Not(HasSubstr("Process received signal")));
  }
}

// A job with more ranks than the cluster can ever run is refused at submit, and not stored.
TEST_F(BadInputTest, LayoutsThatFitNowhere) {
  JobText job = job_;
  job.ranks = 3;
  // A refusal by the coordinator reads like one by the client and has the same exit code.
  const std::string path = cluster_->folder() + "/wide.yaml";
  std::ofstream(path) << ToYaml(job);
  const ProgramResult refused = cluster_->Hooke({"submit", path});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output,
            path +
                ":5: groups.ranks: 3 ranks do not fit: the largest worker, w0 at site site0, has 2 slots; lower "
                "groups.ranks, or start a worker with --slots=3, or workers on several nodes "
                "(docs/several-machines.md)\n");
  job.ranks = -1;
  EXPECT_THAT(Failure(ToYaml(job)),
              HasSubstr("job.yaml:5: groups.ranks: -1 is out of range; must be an integer from 1 to 16384"));
  EXPECT_EQ(cluster_->Hooke({"jobs", "--output", "json"}).output.find("bars-1"), std::string::npos);
}

// If the coordinator cannot be reached, the error names its address, and the flag that chooses another.
TEST_F(BadInputTest, CoordinatorThatIsNotThere) {
  const ProgramResult result = cluster_->Hooke({"jobs", "--coordinator", "127.0.0.1:1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("cannot reach the coordinator at 127.0.0.1:1"));
  EXPECT_THAT(result.output, HasSubstr("--coordinator"));
}

// A server refuses a snapshot with a flipped bit and names it. It uses the previous snapshot, so the center of an ended
// job is still there.
TEST_F(BadInputTest, DamagedSnapshot) {
  Succeed();
  const std::string sound = cluster_->folder() + "/sound.safetensors";
  const std::string damaged = cluster_->folder() + "/damaged.safetensors";
  ASSERT_EQ(cluster_->Hooke({"export", "bars-1", sound}).status, 0);
  cluster_->SignalServer(1, SIGTERM);
  ASSERT_TRUE(cluster_->AwaitServerEnd(1).ok());
  std::vector<fs::path> snapshots;
  for (const auto& entry : fs::recursive_directory_iterator(cluster_->server_folder(1) + "/centers")) {
    if (entry.is_regular_file() && entry.file_size() > 1000) snapshots.push_back(entry.path());
  }
  ASSERT_EQ(snapshots.size(), 2u) << "two generations are kept";
  const auto [older, newest] = std::minmax(snapshots[0], snapshots[1]);
  {
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(600);
    const char byte = static_cast<char>(file.get());
    file.seekp(600);
    file.put(static_cast<char>(byte ^ 1));
  }
  ASSERT_TRUE(cluster_->RestartServer(1).ok());
  const ProgramResult exported = cluster_->Hooke({"export", "bars-1", damaged});
  EXPECT_EQ(exported.status, 0) << exported.output;
  EXPECT_THAT(cluster_->ServerOutput(1), ContainsRegex(absl::StrCat("snapshot ", newest.filename().string(),
                                                                    " in .* refused: .*; the previous one, ",
                                                                    older.filename().string(), ", is tried")));
  // The model is complete, because its file is as long as that of a job with undamaged snapshots.
  EXPECT_EQ(fs::file_size(damaged), fs::file_size(sound));
}

}  // namespace
}  // namespace hooke
