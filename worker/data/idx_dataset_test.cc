#include "worker/data/idx_dataset.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string ImageFile(uint32_t images, uint32_t rows, uint32_t columns, const std::string& pixels) {
  return BigEndian(0x803) + BigEndian(images) + BigEndian(rows) + BigEndian(columns) + pixels;
}

std::string LabelFile(uint32_t count, const std::string& labels) {
  return BigEndian(0x801) + BigEndian(count) + labels;
}

// Three images of 2 x 2.
const std::string kPixels = {0, 10, 20, 30, 40, 50, 60, 70, static_cast<char>(200), static_cast<char>(255), 0, 1};
const std::string kLabels = {7, 0, 9};

class IdxDatasetTest : public testing::Test {
 protected:
  IdxDatasetTest() {
    std::string pattern = testing::TempDir() + "/idx_dataset_test.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    images_ = Prefix() + "-images-idx3-ubyte";
    labels_ = Prefix() + "-labels-idx1-ubyte";
  }
  ~IdxDatasetTest() override { std::filesystem::remove_all(folder_); }

  std::string Prefix() const { return folder_ + "/set"; }

  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void WriteGzip(const std::string& path, const std::string& bytes) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  static std::string ReadBack(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteGoodLabels() const { Write(labels_, LabelFile(3, kLabels)); }
  void WriteGoodImages() const { Write(images_, ImageFile(3, 2, 2, kPixels)); }

  absl::StatusOr<IdxDataset> Load(uint32_t classes = 10) const {
    IdxOptions options;
    options.prefix = Prefix();
    options.classes = classes;
    return IdxDataset::Load(options);
  }
  void ExpectError(absl::StatusCode code, const std::string& message) const {
    const absl::Status status = Load().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(std::string(status.message()), message);
  }

  std::string folder_;
  std::string images_;
  std::string labels_;
};

void ExpectTheThreeImages(const absl::StatusOr<IdxDataset>& set) {
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->size(), 3u);
  EXPECT_EQ(set->rows(), 2u);
  EXPECT_EQ(set->columns(), 2u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(set->label(i), kLabels[i]);
    for (size_t p = 0; p < 4; ++p) EXPECT_EQ(set->image(i)[p], static_cast<uint8_t>(kPixels[4 * i + p]));
  }
}

// Two plain files, two gzip files, and one of each all give the same set. If a plain and a gzip file exist, the plain
// one is read.
TEST_F(IdxDatasetTest, ReadsPlainAndGzip) {
  WriteGzip(images_ + ".gz", ImageFile(3, 2, 2, kPixels));
  WriteGzip(labels_ + ".gz", LabelFile(3, kLabels));
  ExpectTheThreeImages(Load());
  WriteGoodImages();
  ExpectTheThreeImages(Load());
  WriteGoodLabels();
  Write(images_ + ".gz", "garbage");
  Write(labels_ + ".gz", "garbage");
  ExpectTheThreeImages(Load());
}

// Mean and deviation equal those of the obvious double loop. A batch is normalized with these numbers. Its images come
// in the order asked for, with repeats.
TEST_F(IdxDatasetTest, WritesNormalizedBatches) {
  WriteGoodImages();
  WriteGoodLabels();
  auto set = Load();
  ASSERT_TRUE(set.ok()) << set.status();
  double sum = 0;
  for (char pixel : kPixels) sum += static_cast<uint8_t>(pixel) / 255.0;
  const double mean = sum / 12;
  double squares = 0;
  for (char pixel : kPixels) squares += std::pow(static_cast<uint8_t>(pixel) / 255.0 - mean, 2);
  const double deviation = std::sqrt(squares / 12);
  EXPECT_NEAR(set->normalization().mean, mean, 1e-12);
  EXPECT_NEAR(set->normalization().deviation, deviation, 1e-12);

  const std::vector<uint32_t> indices = {2, 0, 2};
  std::vector<float> inputs(12);
  std::vector<int64_t> labels(3);
  set->WriteImages(indices, set->normalization(), absl::MakeSpan(inputs));
  set->WriteLabels(indices, absl::MakeSpan(labels));
  EXPECT_EQ(labels, (std::vector<int64_t>{9, 7, 9}));
  for (size_t i = 0; i < 3; ++i) {
    for (size_t p = 0; p < 4; ++p) {
      const double pixel = static_cast<uint8_t>(kPixels[size_t{4} * indices[i] + p]);
      EXPECT_NEAR(inputs[4 * i + p], (pixel / 255 - mean) / deviation, 1e-5);
    }
  }
  set->WriteImages(indices, Normalization{},
                   absl::MakeSpan(inputs));  // The caller's own numbers instead of the set's: pixels scaled to [0, 1].
  EXPECT_FLOAT_EQ(inputs[1], 1.0f);
  set->WriteImages({}, set->normalization(), {});
}

// If all pixels are equal, their deviation is given as 1, so that nothing is divided by zero.
TEST_F(IdxDatasetTest, EqualPixelsHaveDeviationOne) {
  Write(images_, ImageFile(3, 2, 2, std::string(12, 51)));
  WriteGoodLabels();
  auto set = Load();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_DOUBLE_EQ(set->normalization().mean, 0.2);
  EXPECT_EQ(set->normalization().deviation, 1);
}

// A set that is larger than the reader's chunks, and no multiple of them, is read whole, plain and from gzip.
TEST_F(IdxDatasetTest, ReadsMoreThanOneChunk) {
  std::string pixels(size_t{3} * 1001 * 1003, 0);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 2654435761u >> 13);
  WriteGoodLabels();
  for (bool gzip : {true, false}) {
    const std::string file = ImageFile(3, 1001, 1003, pixels);
    gzip ? WriteGzip(images_ + ".gz", file) : Write(images_, file);
    auto set = Load();
    ASSERT_TRUE(set.ok()) << set.status();
    const absl::Span<const uint8_t> last = set->image(2);
    EXPECT_EQ(std::string(last.begin(), last.end()), pixels.substr(size_t{2} * 1001 * 1003));
  }
}

// If a file is missing, the error has both names that were tried, for images and for labels.
TEST_F(IdxDatasetTest, MissingFile) {
  ExpectError(absl::StatusCode::kNotFound,
              absl::StrCat("no images: neither ", images_, " nor ", images_,
                           ".gz exists; data.train and data.test name the part before \"-images-\""));
  WriteGoodImages();
  ExpectError(absl::StatusCode::kNotFound,
              absl::StrCat("no labels: neither ", labels_, " nor ", labels_,
                           ".gz exists; data.train and data.test name the part before \"-labels-\""));
}

// A folder or a pipe in the file's place is refused at once.
TEST_F(IdxDatasetTest, NotARegularFile) {
  ASSERT_TRUE(std::filesystem::create_directory(images_));
  ExpectError(absl::StatusCode::kFailedPrecondition,
              absl::StrCat("cannot read ", images_, ": it is not a regular file"));
  std::filesystem::remove(images_);
  ASSERT_EQ(mkfifo(images_.c_str(), 0600), 0);
  ExpectError(absl::StatusCode::kFailedPrecondition,
              absl::StrCat("cannot read ", images_, ": it is not a regular file"));
}

// If this user may not read a file, the error says so. (Root may read all files.)
TEST_F(IdxDatasetTest, NoPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads all files";
  WriteGoodImages();
  ASSERT_EQ(chmod(images_.c_str(), 0), 0);
  ExpectError(absl::StatusCode::kFailedPrecondition, absl::StrCat("cannot open ", images_, ": Permission denied"));
}

// A file of labels in place of images, or any other wrong file, is recognized by its first bytes.
TEST_F(IdxDatasetTest, WrongMagic) {
  Write(images_, LabelFile(3, kLabels));
  WriteGoodLabels();
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(images_, " is not an IDX file of images: it starts with 0x00000801, not 0x00000803"));
  WriteGoodImages();
  Write(labels_, "Hello, world");
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(labels_, " is not an IDX file of labels: it starts with 0x48656c6c, not 0x00000801"));
}

// If a file ends too early, the error says how many bytes its header promises and how many there are.
TEST_F(IdxDatasetTest, CutShort) {
  WriteGoodLabels();
  const std::string whole = ImageFile(3, 2, 2, kPixels);
  for (size_t length = 0; length < whole.size(); ++length) {
    Write(images_, whole.substr(0, length));
    if (length < 16) {
      ExpectError(
          absl::StatusCode::kDataLoss,
          absl::StrCat(images_, " is cut short: an IDX file of images starts with a header of 16 bytes, there are ",
                       length));
    } else {
      ExpectError(absl::StatusCode::kDataLoss,
                  absl::StrCat(images_, " is cut short: its header promises 12 bytes of images, there are ",
                               length - 16, "; download it again"));
    }
  }
  WriteGoodImages();
  Write(labels_, LabelFile(3, "ab"));
  ExpectError(
      absl::StatusCode::kDataLoss,
      absl::StrCat(labels_, " is cut short: its header promises 3 bytes of labels, there are 2; download it again"));
}

// Bytes after those that the header promises are refused, in plain and in gzip files.
TEST_F(IdxDatasetTest, TrailingBytes) {
  WriteGoodLabels();
  WriteGzip(images_ + ".gz", ImageFile(3, 2, 2, kPixels + "x"));
  const char* const message = " is too long: its header promises 12 bytes of images and more follow; download it again";
  ExpectError(absl::StatusCode::kDataLoss, absl::StrCat(images_, ".gz", message));
  Write(images_, ImageFile(3, 2, 2, kPixels + "x"));
  ExpectError(absl::StatusCode::kDataLoss, absl::StrCat(images_, message));
}

// A set without images, or with images without pixels, is refused.
TEST_F(IdxDatasetTest, NoImages) {
  WriteGoodLabels();
  for (const std::string& file : {ImageFile(0, 2, 2, ""), ImageFile(3, 0, 2, ""), ImageFile(3, 2, 0, "")}) {
    Write(images_, file);
    ExpectError(absl::StatusCode::kInvalidArgument,
                absl::StrCat(images_, " holds no images: a size in its header is 0"));
  }
}

// Labels of another set are refused, because their number differs from the number of images.
TEST_F(IdxDatasetTest, CountsDiffer) {
  WriteGoodImages();
  Write(labels_, LabelFile(2, kLabels.substr(0, 2)));
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(images_, " holds 3 images and ", labels_, " 2 labels; the two belong to different sets"));
}

// A label for which the model has no output is refused. With more classes the same label is fine.
TEST_F(IdxDatasetTest, LabelOutOfRange) {
  WriteGoodImages();
  Write(labels_, LabelFile(3, {1, 46, 2}));
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(labels_, ": label 46 of image 1 is outside the model's 10 classes (0 to 9)"));
  EXPECT_FALSE(Load(46).ok());
  auto set = Load(47);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->label(1), 46);
}

// gzip data is refused if a bit of its body or checksum is flipped, or if it is cut short anywhere. Data that are not
// gzip are refused, too.
TEST_F(IdxDatasetTest, CorruptGzip) {
  WriteGoodLabels();
  const std::string path = images_ + ".gz";
  std::string pixels(size_t{3} * 40 * 40, 0);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i >> 7);
  WriteGzip(path, ImageFile(3, 40, 40, pixels));
  const std::string good = ReadBack(path);

  std::string flipped = good;
  flipped[good.size() - 6] ^= 0x10;  // Flips a bit of the checksum.
  Write(path, flipped);
  ExpectError(absl::StatusCode::kDataLoss, absl::StrCat(path, " is corrupt (incorrect data check); download it again"));
  for (size_t at = 10; at < good.size(); at += 7) {
    flipped = good;
    flipped[at] ^= 0x04;
    Write(path, flipped);
    EXPECT_FALSE(Load().ok()) << at;
  }
  for (size_t length : {good.size() - 1, good.size() - 8, good.size() / 2, size_t{15}}) {
    Write(path, good.substr(0, length));
    ExpectError(absl::StatusCode::kDataLoss,
                absl::StrCat(path, " is cut short: its gzip data ends early; download it again"));
  }
  Write(path, ImageFile(3, 2, 2, kPixels));
  ExpectError(absl::StatusCode::kDataLoss,
              absl::StrCat(path, " is not gzip data, as its name says; download it again"));
}

// A header that promises more than is supported is refused. A file of 20 bytes whose header promises 16 GB is reported
// as cut short. Neither takes memory for the promise.
TEST_F(IdxDatasetTest, AbsurdSizesTakeNoMemory) {
  WriteGoodLabels();
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  Write(images_, ImageFile(4294967295, 4294967295, 4294967295, "abcd"));
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(images_,
                           ": its header promises 4294967295 x 4294967295 x 4294967295 bytes of images; at most "
                           "17179869184 are supported"));
  Write(images_, ImageFile(1000000, 128, 128, "abcd"));
  ExpectError(absl::StatusCode::kDataLoss,
              absl::StrCat(images_,
                           " is cut short: its header promises 16384000000 bytes of images, there are 4; "
                           "download it again"));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10);  // KiB.
}

}  // namespace
}  // namespace hooke
