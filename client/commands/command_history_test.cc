// Tests the commands that read a job's history, with the real program against a scripted coordinator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"
#include "client/process/run_program.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class CommandHistoryTest : public ::testing::Test {
 protected:
  CommandHistoryTest() {
    std::filesystem::create_directories(folder_);
    coordinator_.jobs["fashion-1"] = {SucceededJob("fashion-1")};
    listener_ = std::make_unique<FakeListener>(coordinator_);
  }
  ~CommandHistoryTest() override { std::filesystem::remove_all(folder_); }

  ProgramOutcome Run(const std::vector<std::string>& arguments) {
    ProgramOptions options;
    options.arguments = {"client/hooke"};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = {"HOME=" + folder_, "HOOKE_COORDINATOR=" + listener_->address(), "PATH=/usr/bin:/bin"};
    return RunProgram(options);
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/command_history_test");
  FakeCoordinatorService coordinator_;
  std::unique_ptr<FakeListener> listener_;
};

// `metrics --csv` prints all points, and `plot` draws them. It does not overwrite a file, and refuses a job without
// points.
TEST_F(CommandHistoryTest, MetricsAndPlot) {
  const std::string path = folder_ + "/loss.svg";
  EXPECT_EQ(Run({"plot", "nope-1", "--svg", path}).err, "hooke: no job nope-1\n");
  EXPECT_EQ(Run({"plot", "fashion-1", "--svg", path}).err, "hooke: it has no points\n");
  EXPECT_EQ(Run({"plot", "fashion-1"}).exit_code, 2);
  for (const uint64_t step : {10, 20}) {
    v1::HistoryPoint& point = coordinator_.history.emplace_back();
    point.set_group(0);
    point.set_step(step);
    point.set_loss(5.0 / static_cast<double>(step));
  }
  const ProgramOutcome csv = Run({"metrics", "fashion-1", "--csv"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_THAT(csv.out,
              HasSubstr("\r\nfashion-1,group,0,0,10,0,0.5,0,,,,,,,\r\nfashion-1,group,0,0,20,0,0.25,0,,,,,,,\r\n"));
  EXPECT_THAT(Run({"metrics", "fashion-1"}).out, HasSubstr("\ngroup 0  2       20 "));
  const std::vector<std::string> plot = {"plot", "fashion-1", "fashion-1", "--svg", path, "--over", "time"};
  EXPECT_EQ(Run(plot).out, absl::StrCat(path, ": fashion-1, fashion-1 over time\n"));
  const ProgramOutcome again = Run(plot);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("loss.svg: the file exists already"));
  EXPECT_EQ(Run({"plot", "fashion-1", "--svg", path, "--force"}).exit_code, 0);
  EXPECT_THAT(Run({"plot", "fashion-1", "--svg", folder_ + "/none/loss.svg"}).err, HasSubstr("none/loss.svg"));
}

// `export-tensorboard` makes a folder with a file for each series. It replaces files only when told to.
TEST_F(CommandHistoryTest, ExportTensorBoard) {
  const std::string runs = folder_ + "/runs/today";
  EXPECT_EQ(Run({"export-tensorboard", "fashion-1", runs}).err, "hooke: it has no points\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/runs"));
  v1::HistoryPoint& point = coordinator_.history.emplace_back();
  point.set_group(0);
  point.set_unix_ms(1'700'000'000'000);
  coordinator_.history.emplace_back();
  EXPECT_EQ(Run({"export-tensorboard", "fashion-1", runs}).out,
            absl::StrCat(runs, ": fashion-1, 2 runs, 2 points; to see them: tensorboard --logdir ", runs, "\n"));
  EXPECT_TRUE(std::filesystem::exists(runs + "/fashion-1/group-0/events.out.tfevents.1700000000.hooke"));
  EXPECT_TRUE(std::filesystem::exists(runs + "/fashion-1/center/events.out.tfevents.0000000000.hooke"));
  EXPECT_THAT(Run({"export-tensorboard", "fashion-1", runs}).err, HasSubstr(".hooke: the file exists already"));
  EXPECT_EQ(Run({"export-tensorboard", "fashion-1", runs, "--force"}).exit_code, 0);
  std::ofstream(folder_ + "/file") << "no folder";
  const ProgramOutcome no_folder = Run({"export-tensorboard", "fashion-1", folder_ + "/file"});
  EXPECT_EQ(no_folder.exit_code, 1);
  EXPECT_THAT(no_folder.err, HasSubstr("/file"));
}

}  // namespace
}  // namespace hooke
