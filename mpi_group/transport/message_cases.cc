#include "mpi_group/transport/message_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace hooke {
namespace {

// The content of message i from one rank to another.
std::string Text(const MessageCases& cases, int from, int to, int i) {
  const bool is_long = i % cases.long_each == cases.long_each - 1;
  return std::string(is_long ? cases.long_bytes + i : 1 + i * 301, static_cast<char>('a' + from * 5 + to + i % 3));
}

}  // namespace

void CheckMessagesWithPeers(Transport& transport, const MessageCases& cases, absl::Time deadline) {
  const int rank = transport.rank();
  const int all = transport.size() * cases.count;
  std::vector<std::string> sent;
  std::vector<std::string> received;
  for (int peer = 0; peer < transport.size(); ++peer) {
    for (int i = 0; i < cases.count; ++i) {
      sent.push_back(Text(cases, rank, peer, i));
      received.push_back(std::string(Text(cases, peer, rank, i).size(), ' '));
    }
  }
  std::vector<Transport::Ticket> tickets;
  for (int i = 0; i < all; ++i) {
    const int peer = i / cases.count;
    if (peer == rank) continue;
    const auto send = transport.StartSend({peer, sent[i]});
    const auto receive = transport.StartReceive({peer, absl::MakeSpan(received[i])});
    ASSERT_TRUE(receive.ok() && send.ok());
    tickets.insert(tickets.end(), {*receive, *send});
  }
  std::shuffle(tickets.begin(), tickets.end(), std::mt19937(rank));
  for (Transport::Ticket ticket : tickets) ASSERT_EQ(transport.Wait(ticket, deadline), absl::OkStatus());
  for (int i = 0; i < all; ++i) {
    const int peer = i / cases.count;
    if (peer == rank) continue;
    EXPECT_TRUE(received[i] == Text(cases, peer, rank, i % cases.count)) << "message " << i;
  }
}

}  // namespace hooke
