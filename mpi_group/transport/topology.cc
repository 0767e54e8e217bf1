#include "mpi_group/transport/topology.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr uint64_t kTextBytesMax = 1 << 20;

// The device and inode behind a path. They are equal if two processes see the same file there.
std::string Seen(const char* path) {
  struct stat seen = {};
  if (stat(path, &seen) != 0) return "none";
  return absl::StrCat(seen.st_dev, ":", seen.st_ino);
}

absl::Span<char> AsMutableBytes(std::vector<uint64_t>& values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(uint64_t)};
}

// Sends rank 0's bytes to all ranks.
absl::Status Spread(Transport& transport, absl::Span<char> bytes, absl::Time deadline) {
  if (transport.rank() != 0) return transport.Receive({0, bytes}, deadline);
  for (int rank = 1; rank < transport.size(); ++rank) {
    absl::Status status = transport.Send({rank, bytes}, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::string NodeIdentity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return absl::StrCat("boot ", boot, " network ", Seen("/proc/self/ns/net"), " memory ", Seen("/dev/shm"), " user ",
                      geteuid());
}

// FNV-1a.
uint64_t HashOfIdentity(const std::string& identity) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : identity) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

Nodes NodesFrom(const std::vector<std::string>& identity_of_rank) {
  Nodes nodes;
  std::map<std::string, int> numbers;
  for (size_t rank = 0; rank < identity_of_rank.size(); ++rank) {
    const auto [found, added] = numbers.try_emplace(identity_of_rank[rank], static_cast<int>(numbers.size()));
    if (added) nodes.ranks_of_node.emplace_back();
    nodes.node_of_rank.push_back(found->second);
    nodes.ranks_of_node[found->second].push_back(static_cast<int>(rank));
  }
  return nodes;
}

absl::StatusOr<std::string> ShareText(Transport& transport, const std::string& text, absl::Time deadline) {
  std::vector<uint64_t> size = {text.size()};
  absl::Status status = Spread(transport, AsMutableBytes(size), deadline);
  if (!status.ok()) return status;
  if (size[0] > kTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", size[0], " bytes for all ranks; at most ", kTextBytesMax, " are allowed"));
  }
  std::string shared = transport.rank() == 0 ? text : std::string(size[0], '\0');
  status = Spread(transport, absl::MakeSpan(shared), deadline);
  if (!status.ok()) return status;
  return shared;
}

absl::Status GatherRecords(Transport& transport, absl::Span<char> records, absl::Time deadline) {
  const size_t bytes = records.size() / transport.size();
  if (transport.rank() != 0) {
    absl::Status status = transport.Send({0, records.subspan(transport.rank() * bytes, bytes)}, deadline);
    return status.ok() ? Spread(transport, records, deadline) : status;
  }
  for (int rank = 1; rank < transport.size(); ++rank) {
    absl::Status status = transport.Receive({rank, records.subspan(rank * bytes, bytes)}, deadline);
    if (!status.ok()) return status;
  }
  return Spread(transport, records, deadline);
}

absl::StatusOr<Nodes> GatherNodes(Transport& transport, const std::string& identity, absl::Time deadline) {
  // Records have one size, so identities travel as hashes.
  std::vector<uint64_t> hashes(transport.size());
  hashes[transport.rank()] = HashOfIdentity(identity);
  absl::Status status = GatherRecords(transport, AsMutableBytes(hashes), deadline);
  if (!status.ok()) return status;
  std::vector<std::string> identities;
  identities.reserve(hashes.size());
  for (uint64_t hash : hashes) identities.push_back(absl::StrCat(hash));
  return NodesFrom(identities);
}

}  // namespace hooke
