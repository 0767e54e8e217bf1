#include "server/parameters/served_exchanges.h"

#include <algorithm>

namespace hooke {

void ServedExchanges::Add(const ServedMessage& message) {
  const int64_t took = std::max<int64_t>(message.answered_ns - message.arrived_ns, 0);
  const int64_t waited = std::clamp<int64_t>(message.waited_ns, 0, took);
  absl::MutexLock lock(&mutex_);
  ServedRow& row = RowOf(message);
  row.end_ns = std::max(row.end_ns, message.answered_ns);
  row.work_ns += took - waited;
  row.wait_ns += waited;
  ++row.messages;
  row.received_bytes += message.received_bytes;
  row.sent_bytes += message.sent_bytes;
}

ServedRow& ServedExchanges::RowOf(const ServedMessage& message) {
  uint64_t& last = last_.try_emplace(uint64_t{message.of.group} << 32 | message.of.rank, begun_).first->second;
  const bool in_ring = last < begun_ && begun_ - last <= rows_max_;
  if (in_ring) {
    ServedRow& row = rows_[last % rows_max_];
    if (row.of == message.of) return row;
  }
  last = begun_++;
  if (rows_.size() < rows_max_) rows_.emplace_back();
  ServedRow& row = rows_[last % rows_max_];
  row = {};
  row.of = message.of;
  row.begin_ns = row.end_ns = message.arrived_ns;
  return row;
}

std::vector<ServedRow> ServedExchanges::Read() const {
  std::vector<ServedRow> rows;
  {
    absl::MutexLock lock(&mutex_);
    rows = rows_;
  }
  std::sort(rows.begin(), rows.end(), [](const ServedRow& a, const ServedRow& b) { return a.end_ns < b.end_ns; });
  return rows;
}

}  // namespace hooke
