#include "worker/exchange/exchange_client.h"

#include <algorithm>
#include <utility>

#include "worker/exchange/acknowledged_exchanges.h"

namespace hooke {

ExchangeClient::ExchangeClient(ExchangeOptions options) {
  const Partition& partition = options.partition;
  const uint32_t rank = options.sender.rank();
  const Range blocks = rank < options.slices ? partition.SliceBlocks({rank, options.slices}) : Range{};
  slice_ = partition.Values(blocks);
  for (size_t i = 0; i < options.servers.size(); ++i) {
    ServerExchangeOptions server;
    server.blocks = Intersect(blocks, partition.ShardBlocks({i, options.servers.size()}));
    if (server.blocks.empty()) continue;
    server.calls = options.servers[i];
    server.sender = options.sender;
    server.partition = partition;
    server.encoding = options.encoding;
    server.answered = AnswerEncoding(options.encoding, options.answers_center);
    server.window_blocks = options.window_blocks;
    server.recreate = [recreate = options.recreate, i](absl::Time deadline) { return recreate(i, deadline); };
    if (options.on_presence) {
      server.on_presence = [tell = options.on_presence, i](std::optional<absl::Time> since) { tell(i, since); };
    }
    const Range shard = partition.ShardBlocks({i, options.servers.size()});
    // One rank of the group is enough to report a shard's setback.
    if (options.on_setback && shard.begin == server.blocks.begin) {
      SetbackPlace place;
      place.address = server.calls->address();
      place.shard = partition.Values(shard);
      place.values = partition.values();
      server.on_setback = [tell = options.on_setback, place](absl::Time snapshot, const Setback& setback) {
        SetbackPlace there = place;
        there.snapshot = snapshot;
        tell(SetbackText(there, setback));
      };
    }
    exchanges_.push_back(std::make_unique<ServerExchange>(std::move(server)));
  }
}

// Stops all exchanges before the first one is destroyed. Each may have to wait for a Locate call to a server that does
// not answer, so all wait at the same time.
ExchangeClient::~ExchangeClient() {
  for (const auto& exchange : exchanges_) exchange->Stop();
}

bool ExchangeClient::SkipsSome() const {
  return std::any_of(exchanges_.begin(), exchanges_.end(), [](const auto& exchange) { return exchange->Skips(); });
}

bool ExchangeClient::Skips(absl::string_view address) const {
  return std::any_of(exchanges_.begin(), exchanges_.end(),
                     [address](const auto& exchange) { return exchange->address() == address && exchange->Skips(); });
}

void ExchangeClient::Start(const ExchangeCall& call, absl::Span<const float> sent, const AnswerSink& sink) {
  for (auto& exchange : exchanges_) {
    if (exchange->BlocksOf(call).empty()) continue;
    exchange->Start(call, sent, sink);
    started_.push_back(exchange.get());
  }
}

std::vector<ServerOutcome> ExchangeClient::Wait() {
  std::vector<ServerOutcome> outcomes;
  outcomes.reserve(started_.size());
  for (ServerExchange* exchange : started_) outcomes.push_back({exchange->address(), exchange->Wait()});
  started_.clear();
  return outcomes;
}

}  // namespace hooke
