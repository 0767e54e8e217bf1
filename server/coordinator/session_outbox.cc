#include "server/coordinator/session_outbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hooke {
namespace {

size_t BytesOf(const GroupKey& group) { return sizeof(GroupKey) + group.job_id.size() + 64; }
size_t BytesOf(const v1::WorkerCommand& command) { return sizeof(v1::WorkerCommand) + command.ByteSizeLong(); }

GroupKey StartedBy(const v1::WorkerCommand& command) {
  const v1::GroupStart& start = command.start().group();
  return {start.job_id(), start.group(), start.incarnation()};
}

v1::WorkerCommand SeenCommand(const GroupKey& group, uint64_t number) {
  v1::WorkerCommand command;
  v1::EventsSeen* seen = command.mutable_seen();
  seen->mutable_group()->set_job_id(group.job_id);
  seen->mutable_group()->set_group(group.group);
  seen->mutable_group()->set_incarnation(group.incarnation);
  seen->set_number(number);
  return command;
}

}  // namespace

uint64_t SessionOutbox::StartIsHeldFor(const v1::GroupId& group) const {
  const GroupKey key = KeyOf(group);
  const auto held = std::find_if(held_.begin(), held_.end(), [&key](const Held& waiting) {
    return waiting.command.has_start() && StartedBy(waiting.command) == key;
  });
  return held == held_.end() ? 0 : held->after;
}

void SessionOutbox::Add(v1::WorkerCommand command, uint64_t after) {
  if (command.has_clock()) {
    echo_ = std::move(command);
    return;
  }
  if (command.has_stop()) after = std::max(after, StartIsHeldFor(command.stop().group()));
  bytes_ += BytesOf(command);
  if (after == 0) {
    ready_.push_back(std::move(command));
  } else {
    held_.push_back({after, std::move(command)});
  }
}

void SessionOutbox::AddReadySeen(const GroupKey& group, uint64_t number) {
  const auto [seen, is_new] = seen_.try_emplace(group, number);
  if (is_new) bytes_ += BytesOf(group);
  seen->second = std::max(seen->second, number);
}

void SessionOutbox::AddSeen(const GroupKey& group, uint64_t number, uint64_t after) {
  if (after == 0) return AddReadySeen(group, number);
  const auto [held, is_new] = held_seen_.try_emplace(group);
  if (is_new) bytes_ += BytesOf(group);
  std::deque<Seen>& waits = held->second;
  // Only the last entry may move to a later batch. If the first one moved too, a group that changes with every batch
  // would never get an acknowledgement.
  if (waits.size() < 2 && (waits.empty() || waits.back().after < after)) waits.push_back({after, 0});
  waits.back().after = std::max(waits.back().after, after);
  waits.back().number = std::max(waits.back().number, number);
}

void SessionOutbox::Stored(uint64_t through) {
  std::deque<Held> waits;
  for (Held& held : held_) {
    if (held.after > through) {
      waits.push_back(std::move(held));
    } else {
      ready_.push_back(std::move(held.command));
    }
  }
  held_ = std::move(waits);
  for (auto held = held_seen_.begin(); held != held_seen_.end();) {
    std::deque<Seen>& of_group = held->second;
    while (!of_group.empty() && of_group.front().after <= through) {
      AddReadySeen(held->first, of_group.front().number);
      seen_is_due_ = true;
      of_group.pop_front();
    }
    if (of_group.empty()) bytes_ -= BytesOf(held->first);
    held = of_group.empty() ? held_seen_.erase(held) : std::next(held);
  }
}

std::vector<v1::WorkerCommand> SessionOutbox::TakeReady() {
  std::vector<v1::WorkerCommand> commands;
  for (v1::WorkerCommand& command : std::exchange(ready_, {})) {
    bytes_ -= BytesOf(command);
    commands.push_back(std::move(command));
  }
  if (echo_.has_value()) commands.push_back(*std::exchange(echo_, std::nullopt));
  seen_is_due_ = false;
  for (const auto& [group, number] : std::exchange(seen_, {})) {
    bytes_ -= BytesOf(group);
    commands.push_back(SeenCommand(group, number));
  }
  return commands;
}

std::vector<v1::WorkerCommand> InBatches(std::vector<v1::WorkerCommand> commands) {
  std::vector<v1::WorkerCommand> batches;
  for (v1::WorkerCommand& command : commands) {
    const bool shares = command.has_clock() || command.has_seen();
    if (!shares || batches.empty() ||
        !(batches.back().has_batch() || batches.back().has_clock() || batches.back().has_seen())) {
      batches.push_back(std::move(command));
      continue;
    }
    if (!batches.back().has_batch()) {
      v1::WorkerCommand first = std::exchange(batches.back(), {});
      *batches.back().mutable_batch()->add_commands() = std::move(first);
    }
    *batches.back().mutable_batch()->add_commands() = std::move(command);
  }
  return batches;
}

}  // namespace hooke
