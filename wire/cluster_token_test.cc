#include "wire/cluster_token.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

class TokenFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<ClusterToken> Read(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return ReadClusterToken(path_);
  }

  void ExpectRefused(const std::string& text, absl::StatusCode code, const std::string& why) const {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(kSecret)));
  }

  const std::string path_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".token";
};

// The line end is no part of the token. An empty path gives no token.
TEST_F(TokenFileTest, HoldsOneLine) {
  for (const std::string end : {"", "\n", "\r\n"}) {
    const absl::StatusOr<ClusterToken> token = Read(kSecret + end);
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(token->ForCalls().secret, kSecret);
  }
  EXPECT_EQ(Read(std::string(4096, 'x') + "\n")->ForCalls().secret.size(), 4096u);
  EXPECT_TRUE(ReadClusterToken("")->empty());
}

TEST_F(TokenFileTest, IsRefusedWithTheReason) {
  using Code = absl::StatusCode;
  ExpectRefused("", Code::kInvalidArgument, "fewer characters");
  ExpectRefused("short\n", Code::kInvalidArgument, "fewer characters than a token, which has 16 to 4096");
  ExpectRefused(std::string(4097, 'x'), Code::kInvalidArgument, "more characters");
  ExpectRefused(std::string(1 << 20, 'x'), Code::kInvalidArgument, "more characters");
  ExpectRefused(std::string(kSecret) + "\n" + kSecret + "\n", Code::kInvalidArgument, "one line");
  ExpectRefused(std::string(kSecret) + " \n", Code::kInvalidArgument, "without spaces");
  ExpectRefused(std::string(kSecret) + "\xc3\xa4", Code::kInvalidArgument, "printable");
}

// A missing file, a folder and a pipe are errors. The program neither waits nor starts without a token.
TEST_F(TokenFileTest, MustBeAFile) {
  EXPECT_EQ(ReadClusterToken(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadClusterToken(path_ + ".none").status().message()), HasSubstr("openssl rand -hex 32"));
  EXPECT_EQ(ReadClusterToken(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string pipe = path_ + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadClusterToken(pipe).status().message()), HasSubstr("no regular file"));
}

// A token file whose mode gives any right to others than its owner is refused.
TEST_F(TokenFileTest, IsForItsOwnerOnly) {
  for (const mode_t mode : {0640, 0604, 0620, 0644, 0601}) {
    const absl::Status status = Read(kSecret, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << mode;
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600 " + path_));
  }
  EXPECT_TRUE(Read(kSecret, 0400).ok());
}

// Root may let a group read its token file: so does systemd with credentials, and Kubernetes with secrets. No group may
// change it.
TEST(TokenFileOfRootTest, MayBeReadByItsGroup) {
  constexpr gid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "not root: only root can give a file of its own to others";
  // Others must reach the file, which they may not in the folder of the test.
  std::string path = "/dev/shm/hooke-token-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, kSecret, sizeof kSecret - 1), static_cast<ssize_t>(sizeof kSecret - 1));
  ASSERT_EQ(fchown(file, 0, kNobody), 0);
  for (const mode_t mode : {0440, 0640, 0460, 0660, 0444, 0450}) {
    ASSERT_EQ(fchmod(file, mode), 0);
    ASSERT_EQ(setegid(kNobody), 0);
    ASSERT_EQ(seteuid(kNobody), 0);
    const absl::Status status = ReadClusterToken(path).status();
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(setegid(0), 0);
    EXPECT_EQ(status.ok(), mode == 0440 || mode == 0640) << status;
    EXPECT_EQ(ReadClusterToken(path).status().code(), absl::StatusCode::kPermissionDenied) << "root's own";
  }
  close(file);
  unlink(path.c_str());
}

TEST(ClusterTokenTest, KnowsWhatItMade) {
  const ClusterToken token(kSecret);
  EXPECT_TRUE(token.Made(token.ForCalls()));
  EXPECT_TRUE(token.Made(token.ForJob("a-1")));
  EXPECT_FALSE(token.Made({}));
  EXPECT_FALSE(token.Made({"", "a-1"}));
  EXPECT_FALSE(token.Made({"0123456789abcdef0123456789abcdeF", ""}));
  EXPECT_FALSE(token.Made({std::string(kSecret) + "0", ""}));
  EXPECT_FALSE(token.Made({std::string(kSecret).substr(1), ""}));
  EXPECT_FALSE(token.Made(ClusterToken("another token of this length....").ForJob("a-1")));
}

// A ClusterToken without a secret has made no credential, not even an empty one.
TEST(ClusterTokenTest, NoTokenMadeNothing) {
  EXPECT_FALSE(ClusterToken().Made({}));
  EXPECT_FALSE(ClusterToken().Made({"x", ""}));
  EXPECT_TRUE(ClusterToken().ForJob("a-1").secret.empty());
  EXPECT_TRUE(ClusterToken().ForJob("a-1").job_id.empty());
}

// A job's credential is good for that job only, and does not contain the token.
TEST(ClusterTokenTest, JobsCredentialIsForOneJob) {
  const ClusterToken token(kSecret);
  const CallCredential a = token.ForJob("a-1");
  EXPECT_EQ(a.job_id, "a-1");
  EXPECT_EQ(a.secret.size(), 64u);
  EXPECT_THAT(a.secret, Not(HasSubstr(kSecret)));
  EXPECT_FALSE(token.Made({a.secret, "a-2"}));
  EXPECT_FALSE(token.Made({a.secret, ""}));  // The job's secret is not the token.
  EXPECT_FALSE(token.Made({kSecret, "a-1"}));
  EXPECT_EQ(token.ForJob("a-1").secret, a.secret);
}

}  // namespace
}  // namespace hooke
