#include "worker/launch/find_program.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

class FindProgramTest : public testing::Test {
 protected:
  FindProgramTest() {
    fs::create_directories(folder_ + "/bin/folder");
    fs::create_directories(folder_ + "/more");
    for (const std::string file : {"/bin/text", "/bin/run", "/more/run", "/more/other"}) std::ofstream(folder_ + file);
    for (const std::string file : {"/bin/run", "/more/run", "/more/other"}) {
      fs::permissions(folder_ + file, fs::perms::owner_all);
    }
    fs::create_directory_symlink(folder_ + "/bin", folder_ + "/link");
  }
  ~FindProgramTest() override { fs::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(fs::canonical(testing::TempDir()).string(), "/find_program", getpid());
};

// Neither a folder nor a file without the right to run it is a program.
TEST_F(FindProgramTest, TheFirstNameInTheFirstFolder) {
  const std::string path = absl::StrCat(":/no/such:", folder_, "/bin:", folder_, "/more");
  EXPECT_EQ(FindProgram({"run"}, path), folder_ + "/bin/run");
  EXPECT_EQ(FindProgram({"none", "other", "run"}, path), folder_ + "/more/other");
  EXPECT_EQ(FindProgram({"folder", "text", "none"}, path), "");
  EXPECT_EQ(FindProgram({"run"}, ""), "");
}

TEST_F(FindProgramTest, LinksInTheFolderAreResolved) {
  EXPECT_EQ(InRealFolder(folder_ + "/link/run"), folder_ + "/bin/run");
  EXPECT_EQ(InRealFolder(folder_ + "/link/none"), folder_ + "/bin/none");
  EXPECT_EQ(InRealFolder(folder_ + "/none/run"), folder_ + "/none/run");
  EXPECT_EQ(InRealFolder("./run"), (fs::current_path() / "run").string());
  EXPECT_EQ(InRealFolder("run"), "run");
}

}  // namespace
}  // namespace hooke
