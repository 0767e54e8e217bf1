#include "worker/api/launcher.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment EnvironmentOf(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(LauncherTest, ProcessesThatAreNoGroupAreRefused) {
  const struct {
    Variables variables;
    std::string says;
  } cases[] = {
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}}, "WORLD_SIZE says that torchrun started 4 processes"},
      {{{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}}, "HOROVOD_SIZE says that horovodrun started 2 processes"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}, "SLURM_STEP_NUM_TASKS says that srun started 8"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, "PMI_SIZE says that an MPI launcher started 3 processes"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_SIZE says that Open MPI's mpirun started 2 processes"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}}, "torchrun"},
  };
  for (const auto& one : cases) {
    const absl::Status status = CheckLauncher(1, EnvironmentOf(one.variables));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << one.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.says));
    EXPECT_THAT(std::string(status.message()), HasSubstr("hooke run"));
    EXPECT_EQ(CheckLauncher(2, EnvironmentOf(one.variables)), absl::OkStatus()) << one.says;
  }
}

TEST(LauncherTest, OneProcessMayBeAlone) {
  const Variables cases[] = {
      {},
      {{"WORLD_SIZE", "4"}},  // Somebody's own variable.
      {{"RANK", "0"}, {"WORLD_SIZE", "many"}},
      {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},                                          // A batch script.
      {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},                                 // A shell of salloc.
      {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}},  // mpirun in each task.
  };
  for (const Variables& variables : cases) EXPECT_EQ(CheckLauncher(1, EnvironmentOf(variables)), absl::OkStatus());
}

TEST(LauncherTest, WhichLaunchersSpeakMpi) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    EXPECT_TRUE(HasMpiLauncher(EnvironmentOf({{name, "1"}}))) << name;
  }
  EXPECT_FALSE(HasMpiLauncher(EnvironmentOf({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"SLURM_STEP_ID", "0"}})));
}

}  // namespace
}  // namespace hooke
