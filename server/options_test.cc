#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace hooke {
namespace {

using testing::HasSubstr;

ParsedCommandLine Parse(std::vector<const char*> arguments, const char* home = "/home/user") {
  arguments.insert(arguments.begin(), "hooke-server");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(), home);
}

// Without flags every option has a value that is right on one machine.
TEST(OptionsTest, HasDefaults) {
  const ParsedCommandLine parsed = Parse({});
  ASSERT_TRUE(parsed.run.has_value()) << parsed.text;
  EXPECT_EQ(Describe(*parsed.run),
            "listen=127.0.0.1:7411 advertise= coordinator= token-file= metrics= dashboard= "
            "state-dir=/home/user/.hooke/server "
            "ready-file= "
            "snapshot-interval=30s "
            "lease=10s resize-after=30s hold-after=3 owner-slots= fair-share-half-life=24h finished-jobs-max=1000 "
            "keep-jobs=inf "
            "keep-bytes=0 files-max-bytes=1073741824 "
            "files-total-bytes=10737418240 max-message-bytes=16777216 max-center-bytes=8589934592 log-level=info");
}

// Every flag reaches its option.
TEST(OptionsTest, ReadsEveryFlag) {
  const ParsedCommandLine parsed = Parse({"--listen=0.0.0.0:0",
                                          "--advertise=node:1",
                                          "--coordinator=c:7411",
                                          "--token-file=/t",
                                          "--metrics=[::]:9",
                                          "--state-dir=/s",
                                          "--ready-file=/r",
                                          "--snapshot-interval=1m30s",
                                          "--lease=5s",
                                          "--resize-after=7s",
                                          "--hold-after=0",
                                          "--owner-slots=8,anna=16",
                                          "--fair-share-half-life=1h",
                                          "--finished-jobs-max=7",
                                          "--keep-jobs=720h",
                                          "--keep-bytes=1000",
                                          "--files-max-bytes=11",
                                          "--files-total-bytes=12",
                                          "--max-message-bytes=200000",
                                          "--max-center-bytes=5",
                                          "--log-level=warning"});
  ASSERT_TRUE(parsed.run.has_value()) << parsed.text;
  EXPECT_EQ(Describe(*parsed.run),
            "listen=0.0.0.0:0 advertise=node:1 coordinator=c:7411 token-file=/t metrics=[::]:9 dashboard= state-dir=/s "
            "ready-file=/r "
            "snapshot-interval=1m30s "
            "lease=5s resize-after=7s hold-after=0 owner-slots=8,anna=16 fair-share-half-life=1h finished-jobs-max=7 "
            "keep-jobs=720h keep-bytes=1000 files-max-bytes=11 "
            "files-total-bytes=12 max-message-bytes=200000 max-center-bytes=5 "
            "log-level=warning");
}

// The words of --log-level are those of hooke-worker, and the logger knows them.
TEST(OptionsTest, KnowsEveryLogLevel) {
  for (const char* level : {"trace", "debug", "info", "warning", "error", "critical", "off"}) {
    const std::string flag = std::string("--log-level=") + level;
    const ParsedCommandLine parsed = Parse({flag.c_str()});
    ASSERT_TRUE(parsed.run.has_value()) << level;
    EXPECT_EQ(spdlog::level::to_string_view(spdlog::level::from_str(parsed.run->log_level)),
              spdlog::string_view_t(level));
  }
}

// Mistakes exit with 2 and name the flag and what is allowed. Help and version exit with 0.
TEST(OptionsTest, NamesMistakes) {
  struct {
    std::vector<const char*> arguments;
    int exit_status;
    const char* text;
  } cases[] = {
      {{"--lissen=x"}, 2, "--lissen=x"},
      {{"extra"}, 2, "extra"},
      {{"--listen=nowhere"}, 2, "--listen: \"nowhere\" is no address, allowed is HOST:PORT or [IPv6]:PORT"},
      {{"--metrics=9090"}, 2, "--metrics: \"9090\" is no address, allowed is HOST:PORT or [IPv6]:PORT"},
      {{"--coordinator=:1"}, 2, "--coordinator: \":1\" is no address"},
      {{"--coordinator=c:0"},
       2,
       "--coordinator: \"c:0\" has port 0, at which nobody can be reached, allowed is 1 to 65535"},
      {{"--snapshot-interval=30"},
       2,
       "--snapshot-interval: \"30\" is no duration, allowed is one like 30s, more than 0"},
      {{"--snapshot-interval=0s"},
       2,
       "--snapshot-interval: \"0s\" is out of range, allowed is one like 30s, more than 0"},
      {{"--owner-slots=x"},
       2,
       "--owner-slots: \"x\" is no limit, allowed is a list like 8,anna=16: the slots of each owner, and those of "
       "owners "
       "with a limit of their own"},
      {{"--lease=soon"}, 2, "--lease: \"soon\" is no duration, allowed is 5s to 24h"},
      {{"--lease=-1s"}, 2, "--lease: \"-1s\" is out of range, allowed is 5s to 24h"},
      {{"--lease=4999ms"}, 2, "--lease: \"4999ms\" is out of range, allowed is 5s to 24h"},
      {{"--lease=24h1s"}, 2, "--lease: \"24h1s\" is out of range, allowed is 5s to 24h"},
      {{"--finished-jobs-max=0"}, 2, "--finished-jobs-max: "},
      {{"--keep-jobs=0s"}, 2, "--keep-jobs: \"0s\" is out of range, allowed is one like 720h, from 1m on, or inf"},
      {{"--keep-jobs=30"}, 2, "--keep-jobs: \"30\" is no duration, allowed is one like 720h"},
      {{"--keep-bytes=-1"}, 2, "--keep-bytes: "},
      {{"--max-message-bytes=1"}, 2, "--max-message-bytes: "},
      {{"--log-level=loud"}, 2, "--log-level: "},
      {{"--log-level=warn"}, 2, "--log-level: "},
      {{"--version"}, 0, "hooke-server "},
      {{"--help"}, 0, "--snapshot-interval"},
  };
  for (const auto& c : cases) {
    const ParsedCommandLine parsed = Parse(c.arguments);
    EXPECT_FALSE(parsed.run.has_value()) << c.arguments[0];
    EXPECT_EQ(parsed.exit_status, c.exit_status) << c.arguments[0];
    EXPECT_THAT(parsed.text, HasSubstr(c.text));
  }
  EXPECT_EQ(Parse({}, "").text, "hooke-server: no home folder is known: set --state-dir\n");
}

}  // namespace
}  // namespace hooke
