#include "server/parameters/connection_lobby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "server/parameters/test_center.h"
#include "wire/frame.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch();

// A lobby, and the peers' ends of its connections.
class ConnectionLobbyTest : public ::testing::Test {
 protected:
  ~ConnectionLobbyTest() override {
    for (const int peer : peers_) close(peer);
  }

  void MakeLobby(const ConnectionLobby::Limits& limits) { lobby_ = std::make_unique<ConnectionLobby>(limits); }

  // Returns the peer's end of a connection, on which calls block, and puts the other end into `own`.
  int Connect(int* own) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *own = ends[0];
    return peers_.emplace_back(ends[1]);
  }
  int Admit(absl::Time now = kNow) {
    int own = -1;
    const int peer = Connect(&own);
    lobby_->Admit(now, own);
    return peer;
  }
  int Refuse(const absl::Status& refusal) {
    int own = -1;
    const int peer = Connect(&own);
    lobby_->Refuse(kNow, own, refusal);
    return peer;
  }

  static void Send(int peer, const std::string& bytes) {
    ASSERT_EQ(send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Reads all bytes until the connection ends.
  static std::string ReadAll(int peer) {
    std::string all;
    char bytes[4096];
    for (ssize_t got = 0; (got = recv(peer, bytes, sizeof bytes, 0)) > 0;) all.append(bytes, static_cast<size_t>(got));
    return all;
  }
  static bool HasEnded(int peer) {
    char byte;
    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::vector<ConnectionLobby::Opening> Receive(absl::Time now = kNow) {
    std::vector<pollfd> polled;
    lobby_->AppendTo(polled);
    EXPECT_GE(poll(polled.data(), polled.size(), 0), 0);
    return lobby_->Receive(now, polled);
  }

  std::unique_ptr<ConnectionLobby> lobby_ = std::make_unique<ConnectionLobby>(ConnectionLobby::Limits());
  std::vector<int> peers_;
};

// An opening that comes byte by byte is complete with its last byte. Bytes that follow it stay in the socket, for the
// session.
TEST_F(ConnectionLobbyTest, AnOpeningInPieces) {
  const int peer = Admit();
  const std::string opening = EncodeOpening(MakeSender({}, 1));
  for (const char byte : opening) {
    ASSERT_TRUE(Receive().empty());
    Send(peer, std::string(1, byte));
  }
  Send(peer, "values");
  const std::vector<ConnectionLobby::Opening> openings = Receive();
  ASSERT_EQ(openings.size(), 1u);
  EXPECT_EQ(openings[0].sender.value().SerializeAsString(), MakeSender({}, 1).SerializeAsString());
  char behind[16];
  EXPECT_EQ(recv(openings[0].descriptor, behind, sizeof behind, MSG_DONTWAIT), 6);
  EXPECT_EQ(lobby_->waiting(), 0u);
  close(openings[0].descriptor);
}

// A peer that sends nothing, or only a few bytes, has one timeout for the whole opening. If a peer hangs up, its
// connection is closed at once.
TEST_F(ConnectionLobbyTest, WhoSaysNothingIsClosed) {
  EXPECT_EQ(lobby_->deadline(), absl::InfiniteFuture());
  const int silent = Admit();
  const int drips = Admit(kNow + absl::Seconds(1));
  const int gone = Admit(kNow + absl::Seconds(2));
  shutdown(gone, SHUT_WR);
  EXPECT_EQ(lobby_->deadline(), kNow + absl::Seconds(10));
  Send(drips, std::string(1, '\1'));
  EXPECT_TRUE(Receive(kNow + absl::Seconds(9)).empty());
  EXPECT_EQ(lobby_->waiting(), 2u);
  EXPECT_TRUE(HasEnded(gone));
  EXPECT_TRUE(Receive(kNow + absl::Seconds(10)).empty());
  EXPECT_TRUE(HasEnded(silent));
  Send(drips, std::string(1, '\2'));
  EXPECT_TRUE(Receive(kNow + absl::Seconds(11)).empty());
  EXPECT_TRUE(HasEnded(drips));
  EXPECT_EQ(lobby_->waiting(), 0u);
}

// If there is no room for one more connection, the oldest is closed.
TEST_F(ConnectionLobbyTest, TheOldestMakesRoom) {
  ConnectionLobby::Limits limits;
  limits.waiting_max = limits.leaving_max = 2;
  MakeLobby(limits);
  const int first = Admit();
  const int second = Admit();
  EXPECT_FALSE(HasEnded(first));
  const int third = Admit();
  EXPECT_TRUE(HasEnded(first));
  EXPECT_EQ(lobby_->waiting(), 2u);
  std::vector<int> refused;
  refused.reserve(3);
  for (int i = 0; i < 3; ++i) refused.push_back(Refuse(absl::AbortedError("stop")));
  EXPECT_EQ(lobby_->leaving(), 2u);
  EXPECT_TRUE(lobby_->CloseOldest());
  EXPECT_TRUE(lobby_->CloseOldest());
  EXPECT_FALSE(HasEnded(second)) << "those that leave go first";
  EXPECT_TRUE(lobby_->CloseOldest());
  EXPECT_TRUE(HasEnded(second));
  EXPECT_TRUE(lobby_->CloseOldest());
  EXPECT_TRUE(HasEnded(third));
  EXPECT_FALSE(lobby_->CloseOldest());
}

// Bytes that are no opening are refused when the first 16 have come, without waiting for the rest.
TEST_F(ConnectionLobbyTest, WhatIsNoOpening) {
  std::string long_id = EncodeOpening(MakeSender({}));
  long_id[2] = 101;
  std::string first_version = EncodeOpening(MakeSender({}));
  first_version[1] = 1;
  const std::pair<std::string, std::string> cases[] = {
      {std::string(16, '\xff'), "a message is of kind 255"},
      {std::string(16, '\2'), "the first message is no opening"},
      {long_id.substr(0, 16), "an opening announces a job id of 101 bytes; 1 to 100 are allowed"},
      {first_version.substr(0, 16), "an opening is of version 1"},
  };
  for (const auto& [bytes, text] : cases) {
    Send(Admit(), bytes);
    const std::vector<ConnectionLobby::Opening> openings = Receive();
    ASSERT_EQ(openings.size(), 1u);
    EXPECT_EQ(openings[0].sender.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(openings[0].sender.status().message()), HasSubstr(text));
    close(openings[0].descriptor);
  }
}

// A refusal reaches a peer that is still sending, with its code and text, before the connection ends.
TEST_F(ConnectionLobbyTest, ARefusalReachesASender) {
  const absl::Status refusal = absl::AbortedError("replaced by 2; stop");
  const int peer = Refuse(refusal);
  for (int i = 0; i < 40; ++i) {
    Send(peer, std::string(100000, 'x'));
    for (int read = 0; read < 2; ++read) EXPECT_TRUE(Receive(kNow + absl::Seconds(1)).empty());
  }
  shutdown(peer, SHUT_WR);
  EXPECT_EQ(ReadAll(peer), EncodeRefusal(refusal));
  EXPECT_TRUE(Receive(kNow + absl::Seconds(1)).empty());
  EXPECT_EQ(lobby_->leaving(), 0u);
}

// A refused connection is closed after a timeout if its peer does not close it. It is closed earlier if the peer sends
// more than `dropped_bytes_max` bytes.
TEST_F(ConnectionLobbyTest, WhoDoesNotLeaveIsClosed) {
  ConnectionLobby::Limits limits;
  limits.dropped_bytes_max = 100;
  MakeLobby(limits);
  Refuse(absl::AbortedError("stop"));
  const int sender = Refuse(absl::AbortedError("stop"));
  Send(sender, std::string(101, 'x'));
  EXPECT_EQ(lobby_->deadline(), kNow + absl::Seconds(2));
  EXPECT_TRUE(Receive(kNow + absl::Seconds(1)).empty());
  EXPECT_EQ(lobby_->leaving(), 1u);
  EXPECT_TRUE(Receive(kNow + absl::Seconds(2)).empty());
  EXPECT_EQ(lobby_->leaving(), 0u);
}

// If a peer does not read at all, its connection is closed although the refusal has not been sent.
TEST_F(ConnectionLobbyTest, APeerThatDoesNotRead) {
  int own = -1;
  const int peer = Connect(&own);
  const std::string much(1 << 20, 'x');
  while (send(own, much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  lobby_->Refuse(kNow, own, absl::AbortedError("stop"));
  EXPECT_EQ(lobby_->leaving(), 0u);
  EXPECT_GT(ReadAll(peer).size(), 0u);
}

}  // namespace
}  // namespace hooke
