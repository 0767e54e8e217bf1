#include "server/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// The reasons why listening fails: the port is taken, the address is another host's, or the host is unknown.
TEST(ListenAddressTest, SaysWhyNot) {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(WhyNotListening({"127.0.0.1", port}).message(),
            absl::StrCat("cannot listen on 127.0.0.1:", port,
                         ": address already in use: another server runs there, or choose another with --listen"));
  close(taken);
  EXPECT_EQ(WhyNotListening({"192.0.2.1", 7411}).message(),
            "cannot listen on 192.0.2.1:7411: Cannot assign requested address: choose another with --listen");
  EXPECT_THAT(std::string(WhyNotListening({"no.such.host.invalid", 1}).message()),
              testing::HasSubstr("cannot listen on no.such.host.invalid:1: "));
}

}  // namespace
}  // namespace hooke
