// Started by `tests/benchmarks/run reports`. Measures what reports cost the thread that trains: the time of a step's
// calls, and the time per value to measure an exchange's distance from the center. The calls are timed with a report
// every half second and, in turn, with none. Prints one JSON object.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/center_gap.h"
#include "algorithms/elastic.h"
#include "algorithms/sharding.h"
#include "mpi_group/profile/profile.h"
#include "worker/report/event_sink.h"
#include "worker/report/reporter.h"

namespace hooke {
namespace {

constexpr int kTurns = 5;
constexpr absl::Duration kTurn = absl::Seconds(2);
constexpr double kAlpha = 0.3;

// Serializes each event, as the daemon's sink does.
class SerializingSink final : public EventSink {
 public:
  bool Send(const v1::RankEvent& event) override {
    bytes_ += event.SerializeAsString().size();
    return true;
  }
  void Cancel() override {}
  void Close(absl::Duration /*timeout*/) override {}

 private:
  size_t bytes_ = 0;
};

// The calls of a step that exchanges.
void Step(uint64_t step, Reporter& reporter) {
  reporter.Enter(v1::RankProgress::COMPUTE);
  reporter.Enter(v1::RankProgress::COLLECTIVE);
  reporter.AddOverlapped(absl::Microseconds(1));
  reporter.SetCenterDistance(0.1);
  reporter.ReportStep({step, 0.001 * static_cast<double>(step), 0.5f, 64});
  reporter.Enter(v1::RankProgress::EXCHANGE);
  reporter.AddExchange(true);
  reporter.SetExchanged(step);
}

// Returns the microseconds of a step's calls.
double StepMicroseconds(absl::Duration interval) {
  ReporterOptions options;
  options.hello.set_ranks(1);
  options.interval = interval;
  options.sinks.push_back(std::make_unique<SerializingSink>());
  options.profile = std::make_shared<ProfileRecorder>(ProfileOptions{[] { return absl::GetCurrentTimeNanos(); }});
  Reporter reporter(std::move(options));
  uint64_t steps = 0;
  const absl::Time begin = absl::Now();
  while (absl::Now() - begin < kTurn) {
    for (int i = 0; i < 100; ++i) Step(++steps, reporter);
  }
  return absl::ToDoubleMicroseconds(absl::Now() - begin) / static_cast<double>(steps);
}

// Returns the nanoseconds that it takes to measure a value, in blocks as they come from a server.
double MeasureNanoseconds() {
  std::vector<float> x(kBlockValues), center(kBlockValues, 1.0f), answer(kBlockValues);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
  CenterGap sum;
  constexpr int kBlocks = 10000;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < kBlocks; ++i) sum += GapOfElasticAnswer(kAlpha, x, answer);
  const absl::Duration took = absl::Now() - begin;
  const double wanted = RelativeDistance(GapOfElasticAnswer(kAlpha, x, answer)).value_or(-1);
  if (std::abs(RelativeDistance(sum).value_or(-2) - wanted) > 1e-9) return std::nan("");
  return absl::ToDoubleNanoseconds(took) / kBlocks / kBlockValues;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main() {
  std::vector<double> with, without, measure;
  for (int turn = 0; turn < kTurns; ++turn) {
    with.push_back(StepMicroseconds(ReporterOptions().interval));
    without.push_back(StepMicroseconds(absl::Hours(1)));
    measure.push_back(MeasureNanoseconds());
  }
  const nlohmann::json json = {
      {"step_us", Median(with)}, {"step_without_reports_us", Median(without)}, {"measure_ns", Median(measure)}};
  std::cout << json.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace hooke

int main() try { return hooke::Main(); } catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
