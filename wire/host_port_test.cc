#include "wire/host_port.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Every form of HOST:PORT parses and prints as it was written.
TEST(HostPortTest, Parses) {
  for (const char* text :
       {"127.0.0.1:7411", "localhost:0", "[::1]:65535", "node-1.cluster_a:80", "[fe80::1%eth0]:1", "a:1"}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

// For a text that is no address, ParseHostPort and CheckDialAddress return the same message, which gives the allowed
// form.
TEST(HostPortTest, SaysWhatIsNone) {
  for (const char* text : {"", "7411", ":7411", "host:", "host:65536", "host:-1", "host: 1", "::1:80", "[::1]", "[]:1",
                           "host:1x", "a b:1", "a:1:2", "unix:/tmp/x", "[a]:1", "[::1%]:1", "[::g]:1", "host:+1"}) {
    const std::string says = absl::StrCat("\"", text, "\" is no address, allowed is HOST:PORT or [IPv6]:PORT");
    EXPECT_EQ(ParseHostPort(text).status(), absl::InvalidArgumentError(says));
    EXPECT_EQ(CheckDialAddress(text), absl::InvalidArgumentError(says));
  }
  EXPECT_EQ(ParseHostPort(std::string(301, 'a') + ":1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseHostPort("a\n:1").status().message(), "\"a\\n:1\" is no address, allowed is HOST:PORT or [IPv6]:PORT");
}

// A listener may let the system choose its port; CheckDialAddress refuses port 0.
TEST(HostPortTest, NobodyDialsPort0) {
  EXPECT_TRUE(ParseHostPort("host:0").ok());
  EXPECT_TRUE(CheckDialAddress("host:1").ok());
  EXPECT_TRUE(CheckDialAddress("[::1]:65535").ok());
  EXPECT_EQ(CheckDialAddress("host:0").message(),
            "\"host:0\" has port 0, at which nobody can be reached, allowed is 1 to 65535");
}

// Only addresses of this machine itself count as loopback, and no name that merely begins like one.
TEST(HostPortTest, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1", "localhost"}) {
    EXPECT_TRUE((HostPort{host, 1}.IsLoopback())) << host;
  }
  for (const char* host : {"127.0.0.1.example.org", "10.0.0.1", "0.0.0.0", "::", "::2", "localhost.example.org", "1"}) {
    EXPECT_FALSE((HostPort{host, 1}.IsLoopback())) << host;
  }
}

}  // namespace
}  // namespace hooke
