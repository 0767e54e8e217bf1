#include "server/scheduling/queue_text.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/scheduling/fair_share.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

// At most so many names are told. A longer list of jobs becomes their number. A longer list of workers is cut, and ends
// with the number of the others.
constexpr size_t kNamesMax = 3;

std::string Needs(const WaitingGroup& group) {
  const std::string gpus = group.gpus_per_rank == 0 ? "" : absl::StrCat(" with ", GpusText(group.gpus_per_rank));
  return absl::StrCat("needs ", group.ranks, group.ranks == 1 ? " slot" : " slots", gpus,
                      group.site.empty() ? "" : " at ", group.site);
}

// The place is named only if the group could run elsewhere, too.
std::string OnText(const WaitingGroup& group, const FreeWorker& worker) {
  return absl::StrCat(" on ", worker.name, group.site.empty() ? " at " : "", group.site.empty() ? worker.site : "");
}

// Rounds to what an estimate so far ahead is good for.
absl::Time Rounded(absl::Time now, absl::Duration ahead) {
  const absl::Duration step = ahead < absl::Minutes(10) ? absl::Minutes(1)
                              : ahead < absl::Hours(2)  ? absl::Minutes(5)
                                                        : absl::Minutes(30);
  return absl::UnixEpoch() + absl::Floor(now + ahead + step / 2 - absl::UnixEpoch(), step);
}

std::string JoinedText(const std::vector<std::string>& names) {
  if (names.size() > kNamesMax) return absl::StrCat(names.size(), " jobs");
  if (names.size() == 1) return names[0];
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), " and ", names.back());
}

std::string NameOf(const Occupant& occupant, const WaitingGroup& group) {
  if (occupant.job_id.empty()) return "a group of an unknown job";
  return occupant.job_id == group.job_id ? "another of its groups" : occupant.job_id;
}

// Returns the words about drained workers, of which some end by themselves: "is drained", "are drained or end".
std::string DrainedText(size_t drained, size_t ending) {
  const bool one = drained == 1;
  if (ending == 0) return one ? "is drained" : "are drained";
  if (ending == drained) return one ? "ends" : "end";
  return "are drained or end";
}

// Says which occupants end first until so many slots are free: "; 4 more when mnist-3 ends, about ...". Empty if they
// are too few.
std::string MoreText(const WaitingGroup& group, std::vector<Occupant> occupants, uint64_t missing, Instant now) {
  const auto ends_at = [now](const Occupant& of) {
    return of.ends_at.has_value() ? std::max(now.steady, *of.ends_at) : absl::InfiniteDuration();
  };
  const auto order = [&ends_at](const Occupant& of) { return std::make_tuple(ends_at(of), UINT32_MAX - of.ranks); };
  absl::c_stable_sort(occupants, [&order](const Occupant& a, const Occupant& b) { return order(a) < order(b); });
  std::vector<std::string> names;
  uint64_t more = 0;
  absl::Duration last = now.steady;
  for (const Occupant& occupant : occupants) {
    if (more >= missing) break;
    more += occupant.ranks;
    last = std::max(last, ends_at(occupant));
    const std::string name = NameOf(occupant, group);
    if (!absl::c_linear_search(names, name)) names.push_back(name);
  }
  if (more < missing) return "";
  return absl::StrCat("; ", more, " more when ", JoinedText(names), names.size() == 1 ? " ends" : " end",
                      last == absl::InfiniteDuration() ? "" : ", about ",
                      last == absl::InfiniteDuration() ? "" : UtcText(Rounded(now.wall, last - now.steady)));
}

std::string KeeperText(const Room& room) {
  return absl::StrCat("group ", room.kept_for->group, " of ", room.kept_for->job_id);
}

// Returns the worker on which the group is likely to start first. Null: no single worker is large enough.
const Room* RoomToWaitFor(const WaitingGroup& group, const Rooms& rooms, absl::Duration now) {
  using Order = std::tuple<absl::Duration, bool, uint32_t>;
  const Room* best = nullptr;
  Order of_best;
  for (const Room* room : rooms.all()) {
    if (room->worker.drained || room->worker.slots < group.ranks || !Suits(group, room->worker)) continue;
    const Order order = {LatestStart(*room, group.ranks, now), room->kept_for != nullptr,
                         UINT32_MAX - room->worker.free};
    if (best != nullptr && order >= of_best) continue;
    best = room;
    of_best = order;
  }
  return best;
}

// Says why no group can have ranks on both workers of a site. Empty: one can.
std::string WhyNotBeside(const FreeWorker& largest, const FreeWorker& other) {
  if (other.address.empty()) return absl::StrCat(other.name, " has no address for other nodes");
  if (other.address == largest.address) return absl::StrCat(other.name, " is on the same node");
  if (other.mpi != largest.mpi) {
    return absl::StrCat(other.name, " has the MPI library ", other.mpi, ", not ", largest.mpi);
  }
  if (other.version == largest.version) return "";
  return absl::StrCat(other.name, " has Hooke ", other.version, ", not ", largest.version);
}

// Returns why a group that one worker cannot hold does not start on several workers of the site, or "" if those have
// too few slots.
std::string WhyNotTogether(const WaitingGroup& group, const Rooms& rooms, const FreeWorker& largest) {
  WorkerSet at_site;
  for (const Room* room : rooms.all()) {
    const FreeWorker& worker = room->worker;
    if (!worker.drained && Suits(group, worker) && worker.site == largest.site) at_site.push_back(&worker);
  }
  if (SumOf(at_site, &FreeWorker::slots) < group.ranks) return "";
  if (largest.address.empty()) return "; it has no address for other nodes";
  std::vector<std::string> faults;
  for (const FreeWorker* worker : at_site) {
    std::string fault = worker == &largest ? "" : WhyNotBeside(largest, *worker);
    if (!fault.empty()) faults.push_back(std::move(fault));
  }
  if (faults.empty()) return "";
  const size_t told = std::min(faults.size(), kNamesMax);
  return absl::StrCat("; ", absl::StrJoin(faults.begin(), faults.begin() + static_cast<ptrdiff_t>(told), ", "),
                      told == faults.size() ? "" : absl::StrCat(" and ", faults.size() - told, " more"));
}

// Returns why a group that only several workers together can hold does not start.
std::string WhyTogether(const WaitingGroup& group, const Rooms& rooms, Instant now) {
  WorkerSet best;
  for (const WorkerSet& set : SetsFor(group, rooms, /*open_only=*/false, /*good_only=*/false)) {
    const auto size = [](const WorkerSet& of) {
      return std::make_tuple(SumOf(of, &FreeWorker::free), SumOf(of, &FreeWorker::slots));
    };
    if (SumOf(set, &FreeWorker::slots) >= group.ranks && (best.empty() || size(set) > size(best))) best = set;
  }
  if (best.empty()) {
    const Room* largest = nullptr;
    for (const Room* room : rooms.all()) {
      if (room->worker.drained || !Suits(group, room->worker)) continue;
      if (largest == nullptr || room->worker.slots > largest->worker.slots) largest = room;
    }
    return absl::StrCat(Needs(group), "; the largest worker that could run it, ", largest->worker.name, ", has ",
                        largest->worker.slots, WhyNotTogether(group, rooms, largest->worker));
  }
  const uint64_t free = SumOf(best, &FreeWorker::free);
  const std::string text =
      absl::StrCat(Needs(group), "; ", free, " free on ", best.size(), " workers of ", best.front()->site, " together");
  for (const Room* room : rooms.all()) {
    if (room->kept_for == nullptr || !absl::c_linear_search(best, &room->worker)) continue;
    return absl::StrCat(text, "; ", KeeperText(*room), " comes first");
  }
  if (free >= group.ranks || !best.front()->only_job.empty()) return text;
  std::vector<Occupant> occupants;
  for (const FreeWorker* worker : best) absl::c_copy(worker->occupants, std::back_inserter(occupants));
  return absl::StrCat(text, MoreText(group, std::move(occupants), group.ranks - free, now));
}

}  // namespace

std::string GpusText(uint32_t gpus_per_rank) {
  return absl::StrCat(gpus_per_rank, gpus_per_rank == 1 ? " GPU" : " GPUs", " each");
}

std::string WhyItWaits(const WaitingGroup& group, const Rooms& rooms, Instant now) {
  if (rooms.all().empty()) return "no worker is there";
  size_t at_site = 0, with_gpus = 0, suitable = 0, drained = 0, ending = 0, for_others = 0;
  const Room* kept = nullptr;
  for (const Room* room : rooms.all()) {
    if (!SiteFits(group, room->worker)) {
      for_others += group.site.empty() || group.site == room->worker.site ? 1 : 0;
      continue;
    }
    ++at_site;
    with_gpus += GpusFit(group.gpus_per_rank, room->worker.slots, room->worker.gpus) ? 1 : 0;
    if (!Suits(group, room->worker)) continue;
    ++suitable;
    drained += room->worker.drained ? 1 : 0;
    ending += room->worker.drained && room->worker.ends ? 1 : 0;
    if (room->kept_for != nullptr && room->worker.free >= group.ranks) kept = room;
  }
  if (at_site == 0 && for_others > 0) {
    return absl::StrCat(Needs(group), "; ",
                        for_others == 1 ? "the worker" : absl::StrCat("all ", for_others, " workers"), " there ",
                        for_others == 1 ? "is" : "are", " only for other jobs");
  }
  if (at_site == 0) return absl::StrCat("no worker of site ", group.site, " is there");
  if (with_gpus == 0) {
    return absl::StrCat("no worker", group.site.empty() ? "" : " of site ", group.site, " has slots with ",
                        GpusText(group.gpus_per_rank),
                        "; see GPUS in hooke nodes, and --gpus and --slots of hooke-worker");
  }
  if (suitable == 0) {
    return absl::StrCat("no worker", group.site.empty() ? "" : " of site ", group.site,
                        " allows commands; start hooke-worker with --allow-commands");
  }
  if (drained == suitable) {
    return absl::StrCat(Needs(group), "; ", suitable == 1 ? "the worker" : absl::StrCat("all ", suitable, " workers"),
                        " that could run it ", DrainedText(drained, ending));
  }
  if (kept != nullptr) {
    return absl::StrCat(Needs(group), "; the ", kept->worker.free, " free", OnText(group, kept->worker),
                        kept->worker.free == 1 ? " is" : " are", " kept for ", KeeperText(*kept));
  }
  const Room* room = RoomToWaitFor(group, rooms, now.steady);
  if (room == nullptr) return WhyTogether(group, rooms, now);
  const std::string text = absl::StrCat(Needs(group), "; ", room->worker.free, " free", OnText(group, room->worker));
  if (room->kept_for != nullptr) return absl::StrCat(text, "; ", KeeperText(*room), " comes first");
  // A batch system makes workers for each group of the job. So the group does not wait for other groups of its job to
  // end.
  if (!room->worker.only_job.empty()) return text;
  return absl::StrCat(text, MoreText(group, room->worker.occupants, group.ranks - room->worker.free, now));
}

std::string QuotaText(const WaitingGroup& group, uint64_t used, uint64_t limit) {
  const bool one = !group.owner.empty();
  return absl::StrCat(Needs(group), "; ", OwnerText(group.owner), one ? " uses " : " use ", used, " of ", limit,
                      limit == 1 ? " slot" : " slots");
}

std::string QueuedText(uint32_t position, absl::string_view reason) {
  const uint32_t tens = position % 100 / 10;
  const uint32_t ones = position % 10;
  const char* ending = tens == 1 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th";
  return absl::StrCat(position, ending, " in the queue; ", reason);
}

std::string TogetherText(const WorkerSet& set, uint32_t FreeWorker::*slots) {
  return absl::StrCat(", and the ", set.size(), " workers that site ", set.front()->site,
                      " has for groups of several workers have ", SumOf(set, slots), " together");
}

}  // namespace hooke
