#include "client/export/export_center.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kTryAgain[] = "; try again, and if that repeats, see the log of that server";

// Two servers hold a center of 6 + 4 values: 0, 1, 2, ... The first server has 7 of the values in blocks of 4 and 3.
// The second has the other 3.
class ExportCenterTest : public ::testing::Test {
 protected:
  ExportCenterTest() {
    std::filesystem::create_directories(folder_);
    v1::Layout layout;
    AddParameter(layout, "fc.weight", {2, 3});
    AddParameter(layout, "fc.bias", {4});
    for (uint32_t i = 0; i < 2; ++i) {
      v1::PullResponse header;
      *header.mutable_header()->mutable_layout() = layout;
      header.mutable_header()->set_shard_index(i);
      header.mutable_header()->set_shard_count(2);
      servers_[i].responses.push_back(header);
      listeners_[i] = std::make_unique<FakeListener>(servers_[i]);
      job_.add_servers(listeners_[i]->address());
    }
    AddBlock(servers_[0], 0, 4);
    AddBlock(servers_[0], 4, 3);
    AddBlock(servers_[1], 7, 3);
  }
  ~ExportCenterTest() override { std::filesystem::remove_all(folder_); }

  static void AddParameter(v1::Layout& layout, const std::string& name, const std::vector<uint64_t>& shape) {
    v1::Parameter* parameter = layout.add_parameters();
    parameter->set_name(name);
    parameter->set_type(v1::Parameter::FLOAT32);
    for (const uint64_t extent : shape) parameter->add_shape(extent);
  }

  static void AddBlock(FakeParameterServer& server, uint64_t first, uint64_t count) {
    v1::PullResponse response;
    response.mutable_block()->set_first(first);
    for (uint64_t i = first; i < first + count; ++i) {
      const float value = static_cast<float>(i);
      response.mutable_block()->mutable_values()->append(reinterpret_cast<const char*>(&value), 4);
    }
    server.responses.push_back(response);
  }

  absl::Status Export(bool force = false) { return ExportCenter(job_, {path_, force, absl::Seconds(10)}).status(); }

  size_t FilesInFolder() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/export_center_test");
  const std::string path_ = absl::StrCat(folder_, "/model.safetensors");
  v1::JobStatus job_ = SucceededJob("fashion-1");
  FakeParameterServer servers_[2];
  std::unique_ptr<FakeListener> listeners_[2];
};

// The shards of both servers make one file. Python's standard library is enough to read it.
TEST_F(ExportCenterTest, PythonReadsTheModel) {
  const absl::StatusOr<Exported> exported = ExportCenter(job_, {path_, false, absl::Seconds(10)});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->parameters, 2u);
  EXPECT_EQ(exported->values, 10u);
  EXPECT_EQ(exported->bytes, std::filesystem::file_size(path_));
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3 here";
  std::ofstream(folder_ + "/read.py") << R"(
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
assert header["__metadata__"]["center_test_accuracy"] == "0.9012", header
assert header["fc.weight"]["shape"] == [2, 3], header
begin, end = header["fc.bias"]["data_offsets"]
assert struct.unpack("<4f", data[begin:end]) == (6, 7, 8, 9), data
assert len(data) == 40
)";
  EXPECT_EQ(std::system(absl::StrCat("python3 ", folder_, "/read.py ", path_).c_str()), 0);
}

v1::ModelDescription Description() {
  v1::ModelDescription model;
  model.set_architecture("lenet");
  model.set_architecture_version(1);
  for (const uint32_t extent : {1, 28, 28}) model.add_input_shape(extent);
  model.set_input_type("uint8");
  model.set_input_scale(255);
  model.set_mean(0.2860405969887955);
  model.set_deviation(0.3530242445149223);
  model.set_classes(10);
  return model;
}

// The file has the model's description from the servers. A center without a description, as from an older Hooke, is
// exported with what is known, and a note says so. Another note comes if servers have different descriptions.
TEST_F(ExportCenterTest, SaysHowTheModelIsUsed) {
  const auto layout = [this](int server) { return servers_[server].responses[0].mutable_header()->mutable_layout(); };
  const auto export_and_read = [this](std::string& content) {
    absl::StatusOr<Exported> exported = ExportCenter(job_, {path_, /*force=*/true, absl::Seconds(10)});
    std::ifstream file(path_, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    return exported;
  };
  std::string content;
  absl::StatusOr<Exported> exported = export_and_read(content);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_FALSE(exported->described);
  EXPECT_THAT(exported->notes, ElementsAre(HasSubstr("do not know how the model's input is normalized")));
  EXPECT_THAT(content, HasSubstr(R"("architecture":"lenet")"));
  EXPECT_THAT(content, Not(HasSubstr(R"("mean")")));

  for (const int server : {0, 1}) *layout(server)->mutable_model() = Description();
  exported = export_and_read(content);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_TRUE(exported->described);
  EXPECT_THAT(exported->notes, IsEmpty());
  EXPECT_THAT(content, HasSubstr(R"("mean":"0.2860405969887955","std":"0.3530242445149223","classes":"10")"));

  layout(1)->mutable_model()->set_mean(0.5);
  exported = export_and_read(content);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_THAT(exported->notes, ElementsAre(HasSubstr("the job's groups have read different training data")));
  EXPECT_THAT(content, HasSubstr(R"("mean":"0.2860405969887955")"));

  layout(0)->mutable_model()->set_deviation(0);
  EXPECT_EQ(export_and_read(content).status(),
            absl::DataLossError(absl::StrCat("server ", job_.servers(0),
                                             ": model: deviation is 0; allowed: finite, more than 0", kTryAgain)));
}

// An export to a file that exists is refused with exactly this error. With --force it replaces the file.
TEST_F(ExportCenterTest, DoesNotReplaceAFile) {
  std::ofstream(path_) << "old";
  EXPECT_EQ(Export(), absl::AlreadyExistsError(
                          path_ + ": the file exists already; choose another name, or --force to replace it"));
  EXPECT_EQ(std::filesystem::file_size(path_), 3u);
  EXPECT_TRUE(Export(/*force=*/true).ok());
  EXPECT_GT(std::filesystem::file_size(path_), 3u);
}

// If the servers send anything but one whole center, the result is an error and no file.
TEST_F(ExportCenterTest, RefusesWhatIsNoCenter) {
  using Responses = std::vector<v1::PullResponse>;
  const struct {
    std::string error;
    std::function<void(Responses& first, Responses& second)> change;
  } cases[] = {
      {"nothing came", [](Responses& first, Responses&) { first.clear(); }},
      {"the header does not come first", [](Responses& first, Responses&) { first.erase(first.begin()); }},
      {"the header does not come first", [](Responses& first, Responses&) { first.push_back(first[0]); }},
      {"a block of 12 bytes at value 4 came where value 0 of 10 was due",
       [](Responses& first, Responses&) { first.erase(first.begin() + 1); }},
      {"a block of 12 bytes at value 7 came where value 4 of 10 was due",
       [](Responses& first, Responses&) { first.pop_back(); }},
      {"the servers sent 7 of 10 values", [](Responses&, Responses& second) { second.pop_back(); }},
      {"a block of 12 bytes at value 7 came where value 10 of 10 was due",
       [](Responses&, Responses& second) { second.push_back(second[1]); }},
      {"a block of 3 bytes",
       [](Responses& first, Responses&) { first[1].mutable_block()->mutable_values()->resize(3); }},
      {"a block of 0 bytes", [](Responses& first, Responses&) { first[1].mutable_block()->clear_values(); }},
      {"a block of 400 bytes",
       [](Responses& first, Responses&) { first[1].mutable_block()->mutable_values()->resize(400); }},
      {"this is shard 0 of 2, not 1 of 2",
       [](Responses&, Responses& second) { second[0].mutable_header()->set_shard_index(0); }},
      {"this is shard 0 of 3, not 0 of 2",
       [](Responses& first, Responses&) { first[0].mutable_header()->set_shard_count(3); }},
      {"its layout is not that of shard 0",
       [](Responses&, Responses& second) {
         second[0].mutable_header()->mutable_layout()->mutable_parameters(0)->set_name("x");
       }},
      {"parameter fc.weight is not float32",
       [](Responses& first, Responses&) {
         first[0].mutable_header()->mutable_layout()->mutable_parameters(0)->clear_type();
       }},
      {"is empty, reserved or given twice",
       [](Responses& first, Responses&) {
         first[0].mutable_header()->mutable_layout()->mutable_parameters(0)->set_name("fc.bias");
       }},
  };
  const Responses first = servers_[0].responses;
  const Responses second = servers_[1].responses;
  for (const auto& one : cases) {
    servers_[0].responses = first;
    servers_[1].responses = second;
    one.change(servers_[0].responses, servers_[1].responses);
    const absl::Status status = Export();
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.error));
    EXPECT_EQ(FilesInFolder(), 0u) << one.error;
  }
}

// If a server is gone or fails halfway, the error names it, and the partial file is removed.
TEST_F(ExportCenterTest, NamesTheServerThatFails) {
  servers_[1].end = {grpc::NOT_FOUND, "no job fashion-1 here"};
  EXPECT_EQ(Export(),
            absl::NotFoundError(absl::StrCat("server ", job_.servers(1), ": no job fashion-1 here", kTryAgain)));
  EXPECT_EQ(FilesInFolder(), 0u);
  listeners_[1].reset();
  EXPECT_EQ(Export(), absl::UnavailableError(absl::StrCat(
                          "cannot reach server ", job_.servers(1),
                          ": Connection refused; it holds part of job fashion-1: try again when it is back")));
  EXPECT_EQ(FilesInFolder(), 0u);
}

// If a job has no center yet, the error says when it will have one.
TEST_F(ExportCenterTest, AJobWithoutACenter) {
  job_.clear_servers();
  job_.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Export(),
            absl::FailedPreconditionError("job fashion-1 (queued) has no center yet; export it after its first step"));
}

}  // namespace
}  // namespace hooke
