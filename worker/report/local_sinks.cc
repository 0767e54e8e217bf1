#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <ostream>
#include <utility>

#include "job/metric.h"
#include "worker/report/event_sink.h"

namespace hooke {
namespace {

constexpr int kProgressesPerLine = 10;  // The reporter sends two a second, so a line comes every 5 s.

class LogSink : public EventSink {
 public:
  explicit LogSink(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

  bool Send(const v1::RankEvent& event) override {
    switch (event.event_case()) {
      case v1::RankEvent::kProgress:
        if (progresses_++ % kProgressesPerLine == 0) LogProgress(event.progress());
        break;
      case v1::RankEvent::kEvaluated:
        logger_->info("step {}, epoch {:.2f}: test accuracy {:.2f} %, loss {:.4f} over {} samples{}{}",
                      event.evaluated().step(), event.evaluated().epoch(), event.evaluated().accuracy() * 100,
                      event.evaluated().loss(), event.evaluated().samples(),
                      event.evaluated().metrics().empty() ? "" : "; ", MetricsText(event.evaluated().metrics()));
        break;
      case v1::RankEvent::kNotice:
        logger_->warn("{}", event.notice().text());
        break;
      case v1::RankEvent::kDone:
        logger_->info("done at step {}", event.done().step());
        break;
      default:
        // A failure, for instance: the process prints it as its last words.
        break;
    }
    return true;
  }
  void Close(absl::Duration) override { logger_->flush(); }
  void Cancel() override {}

 private:
  void LogProgress(const v1::RankProgress& progress) {
    logger_->info(
        "step {}/{}, epoch {:.2f}: loss {:.4f}, {:.0f} samples/s; compute {:.1f} s, collective {:.1f} s, "
        "exchange {:.1f} s",
        progress.step(), progress.steps_total(), progress.epoch(), progress.loss(), progress.samples_per_s(),
        progress.compute_seconds(), progress.collective_seconds(), progress.exchange_seconds());
  }

  const std::shared_ptr<spdlog::logger> logger_;
  int progresses_ = 0;
};

class JsonSink : public EventSink {
 public:
  explicit JsonSink(std::ostream& out) : out_(out) {}

  bool Send(const v1::RankEvent& event) override {
    if (event.has_profile() && event.profile().events_size() > 0) {
      v1::RankEvent without_trace = event;  // The trace would be longer than all the rest.
      without_trace.mutable_profile()->clear_events();
      return Send(without_trace);
    }
    google::protobuf::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    std::string line;
    if (!google::protobuf::util::MessageToJsonString(event, &line, options).ok()) return false;
    out_ << line << std::endl;
    return true;
  }
  void Close(absl::Duration) override { out_.flush(); }
  void Cancel() override {}

 private:
  std::ostream& out_;
};

}  // namespace

std::unique_ptr<EventSink> MakeLogSink(std::shared_ptr<spdlog::logger> logger) {
  return std::make_unique<LogSink>(std::move(logger));
}

std::unique_ptr<EventSink> MakeJsonSink(std::ostream& out) { return std::make_unique<JsonSink>(out); }

}  // namespace hooke
