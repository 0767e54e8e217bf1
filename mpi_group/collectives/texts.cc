#include "mpi_group/collectives/texts.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/tree.h"

namespace hooke {
namespace {

Tree TreeOf(const Transport& transport) {
  return MakeTree(BinomialShape(), transport.rank(), transport.size(), /*root=*/0);
}

absl::Span<char> BytesOf(uint64_t& value) { return {reinterpret_cast<char*>(&value), sizeof(value)}; }

// Copies values out of a text that holds their bytes; a text may lie at any address.
template <typename Value>
std::vector<Value> ValuesIn(const std::string& text) {
  std::vector<Value> values(text.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), text.data(), values.size() * sizeof(Value));
  return values;
}

// The patterns of the nodes on which ranks with these hashes of identities are, as bytes.
std::string PatternText(const std::vector<uint64_t>& hash_of_rank) {
  std::vector<std::string> identities;
  identities.reserve(hash_of_rank.size());
  for (uint64_t hash : hash_of_rank) identities.push_back(absl::StrCat(hash));
  const std::vector<NodePattern> patterns = PatternsOf(NodesFrom(identities).node_of_rank);
  return std::string(reinterpret_cast<const char*>(patterns.data()), patterns.size() * sizeof(NodePattern));
}

}  // namespace

absl::Status Spread(Transport& transport, absl::Span<char> bytes, absl::Time deadline) {
  const Tree tree = TreeOf(transport);
  if (tree.parent >= 0) {
    absl::Status status = transport.Receive({tree.parent, bytes}, deadline);
    if (!status.ok()) return status;
  }
  for (int child : tree.children) {
    absl::Status status = transport.Send({child, bytes}, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ShareText(Transport& transport, const std::string& text, absl::Time deadline) {
  uint64_t bytes = text.size();
  absl::Status status = Spread(transport, BytesOf(bytes), deadline);
  if (!status.ok()) return status;
  if (bytes > kTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", bytes, " bytes for all ranks; at most ", kTextBytesMax, " are allowed"));
  }
  std::string shared = transport.rank() == 0 ? text : std::string(bytes, '\0');
  status = Spread(transport, absl::MakeSpan(shared), deadline);
  if (!status.ok()) return status;
  return shared;
}

// The subtree of a rank's child has consecutive ranks, and children of higher ranks have larger subtrees. So the texts
// of a subtree, joined in order, go on where those of the child before ended.
absl::StatusOr<std::string> JoinTexts(Transport& transport, std::string text, absl::Time deadline) {
  const Tree tree = TreeOf(transport);
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    uint64_t bytes = 0;
    absl::Status status = transport.Receive({*child, BytesOf(bytes)}, deadline);
    if (!status.ok()) return status;
    const size_t before = text.size();
    if (before > kTextBytesMax || bytes > kTextBytesMax - before) {
      return absl::InternalError(absl::StrCat("rank ", *child, " sends a text of ", bytes, " bytes to follow ", before,
                                              " others; at most ", kTextBytesMax, " are allowed"));
    }
    text.resize(before + bytes);
    status = transport.Receive({*child, absl::MakeSpan(text).subspan(before)}, deadline);
    if (!status.ok()) return status;
  }
  if (tree.parent < 0) return text;
  uint64_t bytes = text.size();
  absl::Status status = transport.Send({tree.parent, BytesOf(bytes)}, deadline);
  if (status.ok()) status = transport.Send({tree.parent, text}, deadline);
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<Nodes> GatherNodes(Transport& transport, const std::string& identity, absl::Time deadline) {
  const uint64_t hash = HashOfIdentity(identity);
  const absl::StatusOr<std::string> hashes =
      JoinTexts(transport, std::string(reinterpret_cast<const char*>(&hash), sizeof(hash)), deadline);
  if (!hashes.ok()) return hashes.status();
  const absl::StatusOr<std::string> patterns =
      ShareText(transport, transport.rank() == 0 ? PatternText(ValuesIn<uint64_t>(*hashes)) : std::string(), deadline);
  if (!patterns.ok()) return patterns.status();
  return NodesFrom(ValuesIn<NodePattern>(*patterns), transport.size());
}

}  // namespace hooke
