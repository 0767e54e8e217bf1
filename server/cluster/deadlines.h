#ifndef HOOKE_SERVER_CLUSTER_DEADLINES_H_
#define HOOKE_SERVER_CLUSTER_DEADLINES_H_

// Keeps the times at which workers, groups and others are due. A tick then looks only at those that are due.

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

// Each key is due at one steady time, or never.
template <typename Key>
class Deadlines {
 public:
  // Replaces the key's time. InfiniteDuration: it is not due any more.
  void Set(const Key& key, absl::Duration at) {
    const auto found = at_.find(key);
    if (found != at_.end()) {
      if (found->second == at) return;
      in_order_.erase({found->second, key});
    }
    if (at == absl::InfiniteDuration()) {
      if (found != at_.end()) at_.erase(found);
      return;
    }
    in_order_.insert({at, key});
    if (found == at_.end()) {
      at_.emplace(key, at);
    } else {
      found->second = at;
    }
  }

  // Removes the keys that are due by `now`, and returns them, those first that were due first.
  std::vector<Key> TakeDue(absl::Duration now) {
    std::vector<Key> due;
    while (!in_order_.empty() && in_order_.begin()->first <= now) {
      due.push_back(in_order_.begin()->second);
      in_order_.erase(in_order_.begin());
      at_.erase(due.back());
    }
    return due;
  }

 private:
  std::set<std::pair<absl::Duration, Key>> in_order_;
  std::map<Key, absl::Duration> at_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_DEADLINES_H_
