#include "server/coordinator/job_spec_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "algorithms/group_rule.h"
#include "algorithms/update_rule.h"

namespace hooke {
namespace {

constexpr size_t kTuningBytesMax = 64 << 10;  // As the client has it: what an honest file may be.

absl::Status Wrong(absl::string_view key, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(key, " is ", value, ", allowed is ", allowed));
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\""); }

absl::Status CheckCount(absl::string_view key, uint64_t value, uint64_t largest) {
  if (value >= 1 && value <= largest) return absl::OkStatus();
  return Wrong(key, absl::StrCat(value), absl::StrCat("1 to ", largest));
}

// `ok` is false for NaN, too: callers write the allowed range.
absl::Status CheckNumber(absl::string_view key, double value, bool ok, absl::string_view allowed) {
  if (ok && std::isfinite(value)) return absl::OkStatus();
  return Wrong(key, absl::StrCat(value), allowed);
}

absl::Status First(std::initializer_list<absl::Status> checks) {
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool IsJobName(absl::string_view name) {
  if (name.empty() || name.size() > 63 || !absl::ascii_islower(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; });
}

absl::Status CheckPath(absl::string_view key, absl::string_view path) {
  if (!path.empty() && path[0] == '/' && path.size() <= 4096 && path.find('\0') == path.npos) return absl::OkStatus();
  return Wrong(key, Quoted(path), "an absolute path of at most 4096 bytes");
}

absl::Status CheckOptimizer(const v1::OptimizerSpec& spec) {
  absl::Status common = First({
      CheckNumber("train.optimizer.learning_rate", spec.learning_rate(), spec.learning_rate() > 0, "more than 0"),
      CheckNumber("train.optimizer.weight_decay", spec.weight_decay(), spec.weight_decay() >= 0, "0 or more"),
  });
  if (!common.ok()) return common;
  switch (spec.name()) {
    case v1::OptimizerSpec::SGD:
      if (spec.nesterov() && !(spec.momentum() > 0)) {
        return Wrong("train.optimizer.nesterov", "true", "only with momentum more than 0");
      }
      return CheckNumber("train.optimizer.momentum", spec.momentum(), spec.momentum() >= 0 && spec.momentum() < 1,
                         "0 to less than 1");
    case v1::OptimizerSpec::ADAM:
    case v1::OptimizerSpec::ADAMW:
      return First({
          CheckNumber("train.optimizer.beta1", spec.beta1(), spec.beta1() >= 0 && spec.beta1() < 1, "0 to less than 1"),
          CheckNumber("train.optimizer.beta2", spec.beta2(), spec.beta2() >= 0 && spec.beta2() < 1, "0 to less than 1"),
          CheckNumber("train.optimizer.epsilon", spec.epsilon(), spec.epsilon() > 0, "more than 0"),
      });
    default:
      return Wrong("train.optimizer.name", absl::StrCat("number ", spec.name()), "sgd, adam or adamw");
  }
}

absl::Status CheckSchedule(const v1::TrainSpec& train) {
  const v1::ScheduleSpec& spec = train.schedule();
  const double warmup = spec.warmup_epochs();
  absl::Status status = CheckNumber("train.schedule.warmup_epochs", warmup, warmup >= 0 && warmup < train.epochs(),
                                    absl::StrCat("0 to less than train.epochs (", train.epochs(), ")"));
  if (!status.ok()) return status;
  const double factor = spec.step_factor();
  const double fraction = spec.final_fraction();
  switch (spec.name()) {
    case v1::ScheduleSpec::CONSTANT:
      return absl::OkStatus();
    case v1::ScheduleSpec::STEP:
      return First({
          CheckNumber("train.schedule.step_epochs", spec.step_epochs(), spec.step_epochs() > 0, "more than 0"),
          CheckNumber("train.schedule.step_factor", factor, factor > 0 && factor <= 1, "more than 0, at most 1"),
      });
    case v1::ScheduleSpec::COSINE:
      return CheckNumber("train.schedule.final_fraction", fraction, fraction >= 0 && fraction <= 1, "0 to 1");
    default:
      return Wrong("train.schedule.name", absl::StrCat("number ", spec.name()), "constant, step or cosine");
  }
}

absl::Status CheckGrace(const v1::AveragingSpec& spec) {
  const double grace = spec.grace_seconds();
  return CheckNumber("averaging.grace_seconds", grace, grace >= 0 && grace <= 10, "0 to 10");
}

absl::Status CheckRounds(const v1::AveragingSpec& spec, uint32_t groups) {
  return First({CheckCount("averaging.quorum", spec.quorum(), groups), CheckGrace(spec)});
}

absl::Status CheckStalenessPower(const v1::AveragingSpec& spec) {
  const double power = spec.staleness_power();
  return CheckNumber("averaging.staleness_power", power, power >= 0 && power <= 4, "0 to 4");
}

absl::Status CheckCompression(const v1::AveragingSpec& spec) {
  if (!v1::AveragingSpec::Compression_IsValid(spec.compression())) {
    return Wrong("averaging.compression", absl::StrCat("number ", spec.compression()),
                 "none, float16, bfloat16, int8, int4 or top_k");
  }
  if (spec.compression() != v1::AveragingSpec::COMPRESSION_TOP_K) return absl::OkStatus();
  if (spec.rule() == v1::AveragingSpec::ELASTIC || spec.rule() == v1::AveragingSpec::NONE) {
    return Wrong("averaging.compression", "top_k", "another one with averaging.rule elastic and none");
  }
  return CheckNumber("averaging.top_k", spec.top_k(), spec.top_k() > 0 && spec.top_k() <= 1, "more than 0, at most 1");
}

// When groups exchange.
absl::Status CheckRhythm(const v1::AveragingSpec& spec) {
  absl::Status interval = CheckCount("averaging.interval", spec.interval(), UINT32_MAX);
  if (!interval.ok()) return interval;
  const double seconds = spec.interval_seconds();
  if (!(seconds >= 0 && std::isfinite(seconds))) {
    return Wrong("averaging.interval_seconds", absl::StrCat(seconds), "0 or more");
  }
  const uint32_t fragments = std::max<uint32_t>(spec.fragments(), 1);
  const bool takes_turns = spec.rule() == v1::AveragingSpec::ELASTIC || spec.rule() >= v1::AveragingSpec::AVERAGE;
  if (fragments > 64 || spec.interval() % fragments != 0 || (fragments > 1 && (seconds > 0 || !takes_turns))) {
    return Wrong("averaging.fragments", absl::StrCat(fragments),
                 "a divisor of averaging.interval of at most 64, and 1 with averaging.interval_seconds and with rules "
                 "that send gradients");
  }
  if (spec.interval_auto() && (fragments > 1 || seconds > 0)) {
    return Wrong("averaging.interval", "auto", "a number with averaging.fragments and averaging.interval_seconds");
  }
  const uint32_t stride = spec.interval() / fragments;
  if (seconds == 0 && spec.delay() >= stride) {
    return Wrong("averaging.delay", absl::StrCat(spec.delay()),
                 absl::StrCat("less than averaging.interval / averaging.fragments (", stride, ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckAveraging(const v1::AveragingSpec& spec, uint32_t groups) {
  if (absl::Status rhythm = CheckRhythm(spec); !rhythm.ok()) return rhythm;
  if (spec.servers() > 65536) return Wrong("averaging.servers", absl::StrCat(spec.servers()), "0 to 65536");
  if (absl::Status status = CheckCompression(spec); !status.ok()) return status;
  switch (spec.rule()) {
    case v1::AveragingSpec::ELASTIC:
      return CheckNumber("averaging.alpha", spec.alpha(), spec.alpha() > 0 && spec.alpha() < 1,
                         "more than 0, less than 1");
    case v1::AveragingSpec::NONE:
      return absl::OkStatus();
    case v1::AveragingSpec::SYNC:
    case v1::AveragingSpec::AVERAGE:
      return CheckRounds(spec, groups);
    case v1::AveragingSpec::BMUF:
    case v1::AveragingSpec::SLOWMO:
    case v1::AveragingSpec::DILOCO:
      return First({
          CheckRounds(spec, groups),
          CheckNumber("averaging.learning_rate", spec.learning_rate(),
                      spec.learning_rate() > 0 && std::isfinite(spec.learning_rate()), "more than 0"),
          CheckNumber("averaging.momentum", spec.momentum(), spec.momentum() >= 0 && spec.momentum() < 1,
                      "0 to less than 1"),
          spec.nesterov() && spec.momentum() == 0 ? Wrong("averaging.momentum", "0", "more than 0 with nesterov")
                                                  : absl::OkStatus(),
      });
    case v1::AveragingSpec::SSP:
      return First({
          CheckGrace(spec),
          CheckCount("averaging.staleness_bound", spec.staleness_bound(), UINT32_MAX),
          CheckStalenessPower(spec),
      });
    case v1::AveragingSpec::ASYNC:
    case v1::AveragingSpec::DOWNPOUR:
      return CheckStalenessPower(spec);
    default:
      return Wrong("averaging.rule", absl::StrCat("number ", spec.rule()),
                   "elastic, none, sync, async, ssp, downpour, average, bmuf, slowmo or diloco");
  }
}

absl::Status CheckPostLocal(const v1::JobSpec& spec) {
  const uint32_t epochs = spec.averaging().post_local_epochs();
  const bool average = spec.averaging().rule() == v1::AveragingSpec::AVERAGE;
  if (epochs == 0 || (average && epochs < spec.train().epochs())) return absl::OkStatus();
  return Wrong("averaging.post_local_epochs", absl::StrCat(epochs),
               absl::StrCat("0 but with average, where it is less than train.epochs (", spec.train().epochs(), ")"));
}

// Every rank needs the gradients, to send its part of them.
absl::Status CheckGradientsEverywhere(const v1::JobSpec& spec) {
  const v1::CollectivesSpec::Aggregation aggregation = spec.collectives().aggregation();
  const std::optional<RuleName> rule = RuleOf(spec.averaging().rule());
  const bool gradients = rule.has_value() && SendsGradients(*rule);
  if (aggregation == v1::CollectivesSpec::ALLREDUCE || !gradients) return absl::OkStatus();
  return Wrong("collectives.aggregation", aggregation == v1::CollectivesSpec::ROOTED ? "rooted" : "sharded",
               "allreduce with an averaging.rule that sends gradients");
}

absl::Status CheckCollectives(const v1::CollectivesSpec& spec) {
  if (spec.aggregation() != v1::CollectivesSpec::ALLREDUCE && spec.aggregation() != v1::CollectivesSpec::ROOTED &&
      spec.aggregation() != v1::CollectivesSpec::SHARDED) {
    return Wrong("collectives.aggregation", absl::StrCat("number ", spec.aggregation()),
                 "allreduce, rooted or sharded");
  }
  if (spec.order() != v1::CollectivesSpec::FUNNELED && spec.order() != v1::CollectivesSpec::CONCURRENT &&
      spec.order() != v1::CollectivesSpec::CHAINED) {
    return Wrong("collectives.order", absl::StrCat("number ", spec.order()), "funneled, concurrent or chained");
  }
  if (spec.tuning().size() > kTuningBytesMax) {
    return Wrong("collectives.tuning", absl::StrCat(spec.tuning().size(), " bytes"), "at most 65536 bytes");
  }
  return CheckNumber("collectives.bucket_mib", spec.bucket_mib(), spec.bucket_mib() > 0 && spec.bucket_mib() <= 4096,
                     "more than 0, at most 4096");
}

}  // namespace

absl::Status CheckJobSpec(const v1::JobSpec& spec) {
  const std::string& model = spec.model().name();
  if (!IsJobName(spec.name())) {
    return Wrong("name", Quoted(spec.name()), "1 to 63 characters of [a-z0-9-], starting with a letter");
  }
  if (model != "mlp" && model != "lenet" && model != "resnet20") {
    return Wrong("model", Quoted(model), "mlp, lenet or resnet20");
  }
  if (spec.data().format() != v1::DataSpec::FORMAT_IDX) {
    return Wrong("data.format", absl::StrCat("number ", spec.data().format()), "idx");
  }
  if (spec.groups().site().size() > 63) return Wrong("groups.site", Quoted(spec.groups().site()), "at most 63 bytes");
  return First({
      CheckPath("data.train", spec.data().train()),
      CheckPath("data.test", spec.data().test()),
      CheckCount("train.epochs", spec.train().epochs(), 100000),
      CheckCount("train.batch_size", spec.train().batch_size(), 65536),
      CheckOptimizer(spec.train().optimizer()),
      CheckSchedule(spec.train()),
      CheckCount("groups.count", spec.groups().count(), 1024),
      CheckCount("groups.ranks", spec.groups().ranks(), 1024),
      CheckAveraging(spec.averaging(), spec.groups().count()),
      CheckPostLocal(spec),
      CheckCollectives(spec.collectives()),
      CheckGradientsEverywhere(spec),
  });
}

absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const WorkerRoom> workers) {
  std::map<std::string, uint64_t> site_slots;
  const WorkerRoom* largest = nullptr;
  for (const WorkerRoom& worker : workers) {
    if (!spec.groups().site().empty() && worker.site != spec.groups().site()) continue;
    site_slots[worker.site] += worker.slots;
    if (largest == nullptr || worker.slots > largest->slots) largest = &worker;
  }
  if (largest == nullptr || spec.groups().ranks() <= largest->slots) return absl::OkStatus();
  auto site = std::max_element(site_slots.begin(), site_slots.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return absl::FailedPreconditionError(
      absl::StrCat("groups.ranks is ", spec.groups().ranks(),
                   ", but all ranks of a group run on one worker, and the largest worker, ", largest->name, " at site ",
                   largest->site, ", has ", largest->slots, " slots (the largest site, ", site->first, ", has ",
                   site->second, "): lower groups.ranks, or start a worker with --slots=", spec.groups().ranks()));
}

}  // namespace hooke
