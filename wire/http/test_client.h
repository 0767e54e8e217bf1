#ifndef HOOKE_WIRE_HTTP_TEST_CLIENT_H_
#define HOOKE_WIRE_HTTP_TEST_CLIENT_H_

// A client of HTTP for tests, which sends exactly the bytes that it is given.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "wire/host_port.h"

namespace hooke {

// Connects to HOST:PORT of this machine. A read waits 20 s at most.
inline int Connect(const std::string& address) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(ParseHostPort(address)->port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const timeval limit = {20, 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return client;
}

// Sends `request` as it is, and returns all of the answer.
inline std::string Exchange(const std::string& address, const std::string& request) {
  const int client = Connect(address);
  EXPECT_EQ(send(client, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = recv(client, bytes, sizeof bytes, 0)) > 0) answer.append(bytes, static_cast<size_t>(count));
  close(client);
  return answer;
}

}  // namespace hooke

#endif  // HOOKE_WIRE_HTTP_TEST_CLIENT_H_
