#ifndef HOOKE_WORKER_DAEMON_OUTBOX_H_
#define HOOKE_WORKER_DAEMON_OUTBOX_H_

// A worker's messages that the coordinator has not stored yet. Events are kept by group, each with its number, until
// the coordinator's EventsSeen. Log lines are kept until they were sent. Pure: no threads, network or clock. Not
// thread-safe.
//
// Messages share a write, because a write costs the coordinator more than what it carries. Progress and profiles, which
// nobody waits for, may wait for company.
//
// Its memory is bounded, even while the coordinator is away for days. Only the newest progress report and the newest
// profile of a rank are kept. If a group has more than `events_max` events, its oldest notices and SilenceChanged
// events are dropped. If the log is too long, its oldest lines are dropped. The log says how many were dropped. Starts,
// ends, failures and evaluations are never dropped.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "wire/worker_limits.h"

namespace hooke {

struct OutboxOptions {
  size_t events_max = 4096;          // Most events of one group.
  size_t log_bytes_max = 4 << 20;    // Most bytes of log lines, of all groups together.
  size_t log_line_bytes_max = 8192;  // Longer lines are cut.
  size_t log_message_bytes_max = 256 << 10;
  // TakeSome returns no further message once it has so many, or so many bytes.
  size_t messages_max = kBatchMax - 1;  // A heartbeat may come to them.
  size_t messages_bytes_max = 256 << 10;
};

class Outbox {
 public:
  explicit Outbox(const OutboxOptions& options) : options_(options) {}

  // Fills in the event's group and its number: one more than the last of that group.
  void AddEvent(const v1::GroupId& group, v1::GroupEvent event);
  // Adds a log line. `text` is one line of any bytes. Bytes that are not UTF-8 and control characters other than tabs
  // become '?'.
  void AddLog(const v1::GroupId& group, absl::string_view source, absl::string_view text);

  // Returns whether there is a message to send.
  bool HasNext() const;
  // Returns the next message to send; nullopt if all were sent. Events come before log lines. But a group's end comes
  // after the group's own lines, so that its job's log ends with the reason of the end. An end that is next in its
  // group, and the lines for which it waits, come before the events of other groups.
  std::optional<v1::WorkerMessage> TakeNext();
  // Returns the messages that the next calls of TakeNext would return, up to the limits of OutboxOptions.
  std::vector<v1::WorkerMessage> TakeSome();
  // Returns whether a message must not wait for company. Only profiles and progress may wait, but not a group's first
  // progress with a step, nor progress by which a rank begins or ceases to miss servers.
  bool HasUrgent() const;

  // Drops the group's events up to `number`. Call it when the coordinator has stored them.
  void Seen(const v1::GroupId& group, uint64_t number);
  // Makes TakeNext return all events again that the coordinator has not stored. Call it for a new stream.
  void Rewind();

  // Returns the groups whose end the coordinator has not stored yet.
  std::vector<v1::GroupId> EndedGroups() const;
  bool HasEnded(const v1::GroupId& group) const;
  // Returns whether all events were sent and stored, and all lines were sent.
  bool empty() const;

 private:
  using Key = std::tuple<std::string, uint32_t, uint32_t>;
  struct Group {
    v1::GroupId id;
    uint64_t last_number = 0;
    uint64_t sent = 0;  // Events up to this number were sent on this stream.
    // The last event that is sent at once, without waiting for other messages to share its write.
    uint64_t urgent = 0;
    bool stepped = false;  // An event has said that a step is done.
    bool ended = false;
    std::set<uint32_t> miss_servers;  // Ranks whose last progress named absent servers.
    // Notices and SilenceChanged events dropped since the log last told how many were dropped.
    uint64_t dropped = 0;
    std::deque<v1::GroupEvent> events;  // Ascending numbers.
  };
  struct LogLine {
    v1::GroupId group;
    std::string text;
  };
  static Key KeyOf(const v1::GroupId& group);
  // Returns the group's next event to send; null if all were sent.
  static const v1::GroupEvent* NextEvent(const Group& group);
  static bool MustHurry(const v1::GroupEvent& event, Group& group);
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

// When a worker writes to its stream.
struct SendTimes {
  // The longest time that a message waits for others, to share their write.
  absl::Duration company = absl::Milliseconds(400);

  // Returns when to write. `waits_since` is when the oldest message began to wait; nullopt: there is none.
  absl::Time SendAt(bool urgent, std::optional<absl::Time> waits_since, absl::Time next_heartbeat) const;
  // Returns whether a write at `now` takes the next heartbeat along, which then needs no write of its own.
  bool TakesHeartbeat(absl::Time now, absl::Time next_heartbeat) const { return now + company >= next_heartbeat; }
};

// Returns one message that means the same as `messages`, of which there is at least one.
v1::WorkerMessage InOne(std::vector<v1::WorkerMessage> messages);

// Returns the text as valid UTF-8 of at most `bytes_max` bytes, without control characters except tabs.
std::string CleanLine(absl::string_view text, size_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_OUTBOX_H_
