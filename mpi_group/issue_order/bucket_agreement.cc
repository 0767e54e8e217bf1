#include "mpi_group/issue_order/bucket_agreement.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

constexpr size_t kTextBytes = 240;

// Returns the objection of the lowest rank that has one, on all ranks; OK if none has.
absl::Status ShareObjection(Group& group, const std::string& objection) {
  int64_t lowest = objection.empty() ? group.size() : group.rank();
  absl::Status status = group.AllReduce(TensorList(absl::MakeSpan(&lowest, 1)), ReduceOp::kMin);
  if (!status.ok()) return status;
  if (lowest == group.size()) return absl::OkStatus();
  int64_t text[kTextBytes / sizeof(int64_t)] = {};
  if (lowest == group.rank()) std::memcpy(text, objection.data(), std::min(objection.size(), kTextBytes));
  status = group.Broadcast(TensorList(absl::MakeSpan(text)), static_cast<int>(lowest));
  if (!status.ok()) return status;
  const auto* begin = reinterpret_cast<const char*>(text);
  return absl::InvalidArgumentError(std::string(begin, std::find(begin, begin + kTextBytes, '\0')));
}

std::string Describe(int64_t size, int64_t type) {
  return absl::StrCat(size, " ", NameOf(static_cast<DataType>(type)), " values");
}

}  // namespace

absl::Status AgreeOnBuckets(Group& group, absl::Span<const AgreedSetting> settings,
                            absl::Span<const TensorList> buckets) {
  std::vector<int64_t> own;
  own.reserve(settings.size() + 1);
  for (const AgreedSetting& setting : settings) own.push_back(setting.value);
  own.push_back(static_cast<int64_t>(buckets.size()));
  std::vector<int64_t> first = own;
  absl::Status status = group.Broadcast(TensorList(absl::MakeSpan(first)), 0);
  if (!status.ok()) return status;
  std::string objection;
  for (size_t i = 0; i < own.size() && objection.empty(); ++i) {
    if (own[i] == first[i]) continue;
    const absl::string_view name = i < settings.size() ? settings[i].name : "the number of buckets";
    objection = absl::StrCat(name, " is ", own[i], " on rank ", group.rank(), " and ", first[i],
                             " on rank 0; all ranks of a group must run the same job with the same program");
  }
  // Ranks must agree on the number of buckets first, because it decides how long the next broadcast is. So objections
  // are shared here already.
  if (status = ShareObjection(group, objection); !status.ok()) return status;

  own.clear();
  for (const TensorList& bucket : buckets) {
    own.push_back(static_cast<int64_t>(bucket.size()));
    own.push_back(static_cast<int64_t>(bucket.type()));
  }
  first = own;
  status = group.Broadcast(TensorList(absl::MakeSpan(first)), 0);
  if (!status.ok()) return status;
  for (size_t i = 0; i < own.size() && objection.empty(); i += 2) {
    if (own[i] == first[i] && own[i + 1] == first[i + 1]) continue;
    objection =
        absl::StrCat("bucket ", i / 2, " has ", Describe(own[i], own[i + 1]), " on rank ", group.rank(), " and ",
                     Describe(first[i], first[i + 1]), " on rank 0; all ranks of a group must train the same model");
  }
  return ShareObjection(group, objection);
}

}  // namespace hooke
