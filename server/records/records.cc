#include "server/records/records.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {

v1::GroupId IdOf(const GroupKey& key) {
  v1::GroupId id;
  id.set_job_id(key.job_id);
  id.set_group(key.group);
  id.set_incarnation(key.incarnation);
  return id;
}

std::string PlaceText(const GroupRecord& group) {
  if (group.parts.empty()) return "no worker";
  if (group.parts.size() == 1) return absl::StrCat("worker ", group.parts[0].worker);
  return absl::StrCat("workers ", absl::StrJoin(group.parts, " and ", [](std::string* text, const GroupPart& part) {
                        const uint32_t last = part.first_rank + part.ranks - 1;
                        absl::StrAppend(text, part.worker, part.ranks == 1 ? " (rank " : " (ranks ", part.first_rank,
                                        part.ranks == 1 ? "" : absl::StrCat("-", last), ")");
                      }));
}

}  // namespace hooke
