#include "worker/daemon/outbox.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Returns whether an event replaces the last one of its type from the same rank.
bool IsReplaceable(const v1::RankEvent& event) { return event.has_progress() || event.has_profile(); }

bool Replaces(const v1::RankReport& report, const v1::GroupEvent& older) {
  return older.has_report() && older.report().rank() == report.rank() &&
         older.report().event().event_case() == report.event().event_case();
}

bool IsDroppable(const v1::GroupEvent& event) {
  return event.has_silence() || (event.has_report() && event.report().event().has_notice());
}

// Returns the length of the UTF-8 character with which `text` begins; 0 if it does not begin with one.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Refuses overlong forms, surrogates, and characters beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

}  // namespace

absl::Time SendTimes::SendAt(bool urgent, std::optional<absl::Time> waits_since, absl::Time next_heartbeat) const {
  if (urgent) return absl::InfinitePast();
  return waits_since.has_value() ? std::min(next_heartbeat, *waits_since + company) : next_heartbeat;
}

v1::WorkerMessage InOne(std::vector<v1::WorkerMessage> messages) {
  if (messages.size() == 1) return std::move(messages.front());
  v1::WorkerMessage one;
  for (v1::WorkerMessage& message : messages) *one.mutable_batch()->add_messages() = std::move(message);
  return one;
}

std::string CleanLine(absl::string_view text, size_t bytes_max) {
  std::string clean;
  while (!text.empty() && clean.size() < bytes_max) {
    const size_t length = CharacterBytes(text);
    const bool control = length == 1 && (text[0] == 0x7F || (text[0] < 0x20 && text[0] != '\t'));
    if (length == 0 || control) {
      // A carriage return at the end belongs to a line end of another system, so it is dropped.
      if (text != "\r") clean.push_back('?');
      text.remove_prefix(1);
      continue;
    }
    if (clean.size() + length > bytes_max) break;
    clean.append(text.data(), length);
    text.remove_prefix(length);
  }
  return clean;
}

void Outbox::AddEvent(const v1::GroupId& id, v1::GroupEvent event) {
  Group& group = groups_[KeyOf(id)];
  group.id = id;
  if (group.ended) return;  // The end is a group's last event.
  *event.mutable_group() = id;
  event.set_number(++group.last_number);
  group.ended = event.has_ended();
  if (MustHurry(event, group)) group.urgent = event.number();
  if (IsReplaceable(event.report().event())) {
    const auto older = [&event](const v1::GroupEvent& kept) { return Replaces(event.report(), kept); };
    group.events.erase(std::remove_if(group.events.begin(), group.events.end(), older), group.events.end());
  }
  MakeRoom(group);
  group.events.push_back(std::move(event));
}

void Outbox::AddLog(const v1::GroupId& group, absl::string_view source, absl::string_view text) {
  LogLine line{group, CleanLine(absl::StrCat(source, ": ", text), options_.log_line_bytes_max)};
  log_bytes_ += line.text.size();
  log_.push_back(std::move(line));
  TrimLog();
}

bool Outbox::HasNext() const {
  if (!log_.empty()) return true;
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) {
    return !entry.second.events.empty() && entry.second.events.back().number() > entry.second.sent;
  });
}

std::optional<v1::WorkerMessage> Outbox::TakeNext() {
  // Ends of groups, and the log lines for which they wait, go first. Otherwise they could wait for ever, because other
  // groups may have a new event each time.
  for (auto& [key, group] : groups_) {
    const v1::GroupEvent* const event = NextEvent(group);
    if (event == nullptr || !event->has_ended()) continue;
    return HasLogLines(key) ? TakeLogLines() : Take(*event, group);
  }
  for (auto& [key, group] : groups_) {
    const v1::GroupEvent* const event = NextEvent(group);
    if (event != nullptr) return Take(*event, group);
  }
  if (log_.empty()) return std::nullopt;
  return TakeLogLines();
}

bool Outbox::MustHurry(const v1::GroupEvent& event, Group& group) {
  const v1::RankEvent& report = event.report().event();
  if (report.has_profile()) return false;
  if (!report.has_progress()) return true;
  const bool first_step = report.progress().step() > 0 && !std::exchange(group.stepped, true);
  const bool misses = !report.progress().absent_servers().empty();
  const uint32_t rank = event.report().rank();
  const bool news = misses ? group.miss_servers.insert(rank).second : group.miss_servers.erase(rank) > 0;
  return first_step || news;
}

bool Outbox::HasUrgent() const {
  if (!log_.empty()) return true;
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) {
    const Group& group = entry.second;
    // An urgent event may have been dropped for lack of room. Then a later one is unsent, or nothing is.
    return group.urgent > group.sent && !group.events.empty() && group.events.back().number() > group.sent;
  });
}

std::vector<v1::WorkerMessage> Outbox::TakeSome() {
  std::vector<v1::WorkerMessage> some;
  size_t bytes = 0;
  while (some.size() < options_.messages_max && bytes < options_.messages_bytes_max) {
    std::optional<v1::WorkerMessage> next = TakeNext();
    if (!next.has_value()) break;
    bytes += next->ByteSizeLong();
    some.push_back(*std::move(next));
  }
  return some;
}

v1::WorkerMessage Outbox::Take(const v1::GroupEvent& event, Group& group) {
  group.sent = event.number();
  v1::WorkerMessage message;
  *message.mutable_event() = event;
  return message;
}

const v1::GroupEvent* Outbox::NextEvent(const Group& group) {
  const auto unsent = [&group](const v1::GroupEvent& event) { return event.number() > group.sent; };
  const auto next = std::find_if(group.events.begin(), group.events.end(), unsent);
  return next == group.events.end() ? nullptr : &*next;
}

bool Outbox::HasLogLines(const Key& key) const {
  return std::any_of(log_.begin(), log_.end(), [&key](const LogLine& line) { return KeyOf(line.group) == key; });
}

void Outbox::Seen(const v1::GroupId& id, uint64_t number) {
  const auto found = groups_.find(KeyOf(id));
  if (found == groups_.end()) return;
  Group& group = found->second;
  while (!group.events.empty() && group.events.front().number() <= number) group.events.pop_front();
  if (group.ended && group.events.empty()) groups_.erase(found);
}

void Outbox::Rewind() {
  // Every event that is still here is sent again. `sent` is not 0 if earlier events are stored, so that these do not
  // seem urgent.
  for (auto& [key, group] : groups_) {
    group.sent = group.events.empty() ? group.last_number : group.events.front().number() - 1;
  }
}

std::vector<v1::GroupId> Outbox::EndedGroups() const {
  std::vector<v1::GroupId> ended;
  for (const auto& [key, group] : groups_) {
    if (group.ended) ended.push_back(group.id);
  }
  return ended;
}

bool Outbox::HasEnded(const v1::GroupId& id) const {
  const auto found = groups_.find(KeyOf(id));
  return found != groups_.end() && found->second.ended;
}

bool Outbox::empty() const {
  const auto idle = [](const auto& entry) { return entry.second.events.empty(); };
  return log_.empty() && std::all_of(groups_.begin(), groups_.end(), idle);
}

Outbox::Key Outbox::KeyOf(const v1::GroupId& group) { return {group.job_id(), group.group(), group.incarnation()}; }

void Outbox::MakeRoom(Group& group) {
  if (group.events.size() < options_.events_max) {
    if (group.dropped > 0) {
      AddLog(group.id, absl::StrCat("group ", group.id.group(), " worker"),
             absl::StrCat(group.dropped, " notices or silences were dropped: the coordinator did not take them"));
      group.dropped = 0;
    }
    return;
  }
  const auto oldest = std::find_if(group.events.begin(), group.events.end(), IsDroppable);
  if (oldest == group.events.end()) return;
  group.events.erase(oldest);
  ++group.dropped;
}

void Outbox::TrimLog() {
  while (log_bytes_ > options_.log_bytes_max) {
    log_bytes_ -= log_.front().text.size();
    log_.pop_front();
    ++log_lines_dropped_;
  }
}

v1::WorkerMessage Outbox::TakeLogLines() {
  v1::WorkerMessage message;
  v1::LogLines* lines = message.mutable_log();
  *lines->mutable_group() = log_.front().group;
  if (log_lines_dropped_ > 0) {
    lines->add_lines(absl::StrCat("worker: ", log_lines_dropped_,
                                  " older lines were dropped: the coordinator was not there to take them"));
    log_lines_dropped_ = 0;
  }
  const Key key = KeyOf(log_.front().group);
  size_t bytes = 0;
  while (!log_.empty() && KeyOf(log_.front().group) == key && bytes < options_.log_message_bytes_max) {
    bytes += log_.front().text.size() + 16;
    log_bytes_ -= log_.front().text.size();
    lines->add_lines(std::move(log_.front().text));
    log_.pop_front();
  }
  return message;
}

}  // namespace hooke
