#include "client/history/event_files.h"

#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/history/series_name.h"
#include "client/history/time_shares.h"
#include "proto/event_file.pb.h"

namespace hooke {
namespace {

std::array<uint32_t, 256> CrcTable() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, with its bits reversed.
  std::array<uint32_t, 256> table;
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// Readers refuse a record without the mask. It keeps a CRC over data that has CRCs inside from being a trivial one.
std::string MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return LittleEndian(((crc >> 15) | (crc << 17)) + 0xa282ead8U, 4);
}

void AppendRecord(const event_file::Event& event, std::string& file) {
  const std::string data = event.SerializeAsString();
  const std::string length = LittleEndian(data.size(), 8);
  absl::StrAppend(&file, length, MaskedCrc(length), data, MaskedCrc(data));
}

void AddValue(absl::string_view tag, double value, event_file::Summary& summary) {
  event_file::Summary::Value& added = *summary.add_value();
  added.set_tag(std::string(tag));
  added.set_simple_value(static_cast<float>(value));
}

double Seconds(const v1::HistoryPoint& point) { return static_cast<double>(point.unix_ms()) / 1000; }

// `before` is the point of the same series before this one; null: there is none.
event_file::Event EventOf(const v1::HistoryPoint* before, const v1::HistoryPoint& point) {
  event_file::Event event;
  event.set_wall_time(Seconds(point));
  event.set_step(static_cast<int64_t>(point.step()));
  event_file::Summary& summary = *event.mutable_summary();
  AddValue("loss", point.loss(), summary);
  if (point.has_group()) {
    AddValue("samples_per_s", point.samples_per_s(), summary);
    if (point.has_exchange_ms()) AddValue("exchange_ms", point.exchange_ms(), summary);
    if (point.has_center_distance()) AddValue("center_distance", point.center_distance(), summary);
    if (point.has_staleness()) AddValue("staleness", point.staleness(), summary);
    if (const std::optional<TimeShares> shares = TimeSharesBetween(before, point); shares.has_value()) {
      AddValue("compute_share", shares->compute, summary);
      AddValue("collective_share", shares->collective, summary);
      AddValue("exchange_share", shares->exchange, summary);
    }
  } else if (!std::isnan(point.accuracy())) {
    AddValue("accuracy", point.accuracy(), summary);
  }
  return event;
}

EventFile Begin(absl::string_view job_id, const v1::HistoryPoint& first) {
  EventFile file;
  const std::string series = first.has_group() ? absl::StrCat("group-", first.group()) : "center";
  // TensorBoard takes files with "tfevents" in their names, and reads a run's files in the order of their names.
  file.path = absl::StrFormat("%s/%s/events.out.tfevents.%010d.hooke", job_id, series, first.unix_ms() / 1000);
  event_file::Event version;
  version.set_wall_time(Seconds(first));
  version.set_file_version("brain.Event:2");
  AppendRecord(version, file.content);
  return file;
}

}  // namespace

std::vector<EventFile> EventFiles(absl::string_view job_id, const std::vector<v1::HistoryPoint>& points) {
  std::vector<EventFile> files;
  const v1::HistoryPoint* before = nullptr;
  for (const v1::HistoryPoint& point : points) {
    if (before != nullptr && !SameSeries(*before, point)) before = nullptr;
    if (before == nullptr) files.push_back(Begin(job_id, point));
    AppendRecord(EventOf(before, point), files.back().content);
    before = &point;
  }
  return files;
}

uint32_t Crc32c(absl::string_view bytes) {
  static const std::array<uint32_t, 256> table = CrcTable();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

}  // namespace hooke
