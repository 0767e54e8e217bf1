#ifndef HOOKE_WORKER_DAEMON_OUTBOX_H_
#define HOOKE_WORKER_DAEMON_OUTBOX_H_

// What a worker has to tell its coordinator and has not been told is stored: events by group, each with its number,
// until EventsSeen; log lines until they were sent. Used by session.h. Pure: no threads, network or clock. Not
// thread-safe.
//
// Bounded, also while the coordinator is away for days: of a rank's progress reports and profiles only the newest is
// kept; past `events_max` in a group the oldest notices and silences go; log lines go oldest first. What went is said
// in the log. Starts, ends, failures, evaluations: never.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct OutboxOptions {
  size_t events_max = 4096;          // Of a group.
  size_t log_bytes_max = 4 << 20;    // Of all groups.
  size_t log_line_bytes_max = 8192;  // Longer lines are cut.
  size_t log_message_bytes_max = 256 << 10;
};

class Outbox {
 public:
  explicit Outbox(const OutboxOptions& options) : options_(options) {}

  // Fills in the event's group and its number: one more than the last of that group.
  void AddEvent(const v1::GroupId& group, v1::GroupEvent event);
  // `text`: one line, any bytes; what is not UTF-8 or a control character becomes '?'.
  void AddLog(const v1::GroupId& group, absl::string_view source, absl::string_view text);

  // The next message to send; nothing when all was sent. Events come before log lines, but a group's end comes after
  // its own lines: so its job's log ends with the reason of the end. An end that is next in its group, and the lines
  // that it waits for, come before the events of other groups.
  bool HasNext() const;
  std::optional<v1::WorkerMessage> TakeNext();

  // The coordinator has stored the group's events up to `number`.
  void Seen(const v1::GroupId& group, uint64_t number);
  // A new stream: all events that were not seen go again.
  void Rewind();

  // Groups whose end has not been seen.
  std::vector<v1::GroupId> EndedGroups() const;
  bool HasEnded(const v1::GroupId& group) const;
  // No event waits for being sent or seen, no line for being sent.
  bool empty() const;

 private:
  using Key = std::tuple<std::string, uint32_t, uint32_t>;
  struct Group {
    v1::GroupId id;
    uint64_t last_number = 0;
    uint64_t sent = 0;  // Events up to this number were sent on this stream.
    bool ended = false;
    uint64_t dropped = 0;               // Notices and silences, since the log last said so.
    std::deque<v1::GroupEvent> events;  // Ascending numbers.
  };
  struct LogLine {
    v1::GroupId group;
    std::string text;
  };
  static Key KeyOf(const v1::GroupId& group);
  // Null if all were sent.
  static const v1::GroupEvent* NextEvent(const Group& group);
  static v1::WorkerMessage Take(const v1::GroupEvent& event, Group& group);
  bool HasLogLines(const Key& key) const;
  void MakeRoom(Group& group);
  void TrimLog();
  v1::WorkerMessage TakeLogLines();

  const OutboxOptions options_;
  std::map<Key, Group> groups_;
  std::deque<LogLine> log_;
  size_t log_bytes_ = 0;
  uint64_t log_lines_dropped_ = 0;
};

// Valid UTF-8 of at most `bytes_max` bytes without control characters but tabs.
std::string CleanLine(absl::string_view text, size_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_OUTBOX_H_
