#include "client/commands/job_owner.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

#include "job/job_keys.h"

namespace hooke {

std::string NameOfUser() {
  constexpr size_t kBufferBytes = 16 << 10;
  std::vector<char> buffer(kBufferBytes);
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  KeyValue name;
  name.text = found->pw_name;
  return CheckKeyValue(*FindJobKey("owner"), name).ok() ? name.text : "";
}

void SetOwner(v1::JobSpec& job) {
  if (job.owner().empty()) job.set_owner(NameOfUser());
}

}  // namespace hooke
