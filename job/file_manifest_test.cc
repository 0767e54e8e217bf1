// Which files a job may have: paths, manifests, and the numbers of a FileSet.

#include "job/file_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::FileEntry File(const std::string& path, char digest = 'a', uint64_t bytes = 3) {
  v1::FileEntry entry;
  entry.set_path(path);
  entry.set_sha256(std::string(32, digest));
  entry.set_bytes(bytes);
  return entry;
}

v1::FileEntry Folder(const std::string& path) {
  v1::FileEntry entry;
  entry.set_path(path);
  entry.set_folder(true);
  return entry;
}

v1::FileManifest Manifest(const std::vector<v1::FileEntry>& entries) {
  v1::FileManifest manifest;
  *manifest.mutable_entries() = {entries.begin(), entries.end()};
  return manifest;
}

TEST(FileManifestTest, PathsStayInTheFolder) {
  for (const char* path : {"a", "a/b", "..a", "a../b", "a b", "\u00e4", ".hidden", "a:b", "-"}) {
    EXPECT_TRUE(CheckFilePath(path).ok()) << path;
  }
  for (const std::string& path : std::vector<std::string>{"", "/", "/a", "..", "../a", "a/..", "a/../b", ".", "./a",
                                                          "a/.", "a//b", "a/", std::string("a\0b", 3), "a\nb", "a\xff",
                                                          std::string(1025, 'a'), std::string(256, 'a')}) {
    EXPECT_FALSE(CheckFilePath(path).ok()) << path;
  }
  EXPECT_TRUE(CheckFilePath(std::string(255, 'a')).ok());
}

TEST(FileManifestTest, ManifestsThatNobodyMadeRightAreRefused) {
  v1::FileEntry full_folder = Folder("d");
  full_folder.set_bytes(1);
  v1::FileEntry no_digest = File("a");
  no_digest.clear_sha256();
  struct Case {
    std::vector<v1::FileEntry> entries;
    const char* fault;
  };
  for (const Case& wrong : std::vector<Case>{{{}, "names no file"},
                                             {{File("b"), File("a")}, "\"a\" is out of order"},
                                             {{File("a"), File("a")}, "\"a\" is named twice"},
                                             {{File("a"), File("a.b"), File("a/b")}, "\"a/b\" lies in a file"},
                                             {{Folder("d"), File("d/x")}, "\"d/x\" lies in a file"},
                                             {{File("../a")}, "has a part \"..\""},
                                             {{full_folder}, "a folder with a content"},
                                             {{no_digest}, "does not have 32 bytes"},
                                             {{File("a", 'a', 3), File("b", 'a', 4)}, "of a file of another size"},
                                             {{File("a", 'a', ~uint64_t{0})}, "is too large"}}) {
    EXPECT_THAT(std::string(CheckManifest(Manifest(wrong.entries)).message()), HasSubstr(wrong.fault));
  }
  EXPECT_TRUE(CheckManifest(Manifest({File("a"), File("a.b"), Folder("b"), File("c/a"), File("c/b", 'b', 9)})).ok());
  std::vector<v1::FileEntry> many;
  for (size_t i = 0; i <= kFilesMax; ++i) many.push_back(File(absl::StrCat(100000 + i)));
  EXPECT_THAT(std::string(CheckManifest(Manifest(many)).message()), HasSubstr("names 10001 files, and at most 10000"));
  many.pop_back();
  EXPECT_TRUE(CheckManifest(Manifest(many)).ok());
}

TEST(FileManifestTest, ASetNamesExactlyItsManifest) {
  const v1::FileManifest manifest = Manifest({File("a"), File("b"), File("c", 'c', 2048), Folder("d")});
  const v1::FileSet set = FileSetOf(manifest);
  EXPECT_TRUE(CheckFileSet(set).ok());
  EXPECT_EQ(FilesText(set), "3 files, 2.0 KiB");
  EXPECT_EQ(ContentsOf(manifest).size(), 2u);
  const std::string bytes = ManifestBytes(manifest);
  EXPECT_TRUE(ReadManifest(set, bytes).ok());
  EXPECT_FALSE(ReadManifest(set, bytes + "x").ok());
  v1::FileSet other = set;
  other.set_bytes(1);
  EXPECT_THAT(std::string(ReadManifest(other, bytes).status().message()), HasSubstr("the job says 3 files, 1 byte"));
  other = set;
  other.set_manifest_sha256("short");
  EXPECT_FALSE(CheckFileSet(other).ok());
  other = set;
  other.set_manifest_bytes(kManifestBytesMax + 1);
  EXPECT_FALSE(CheckFileSet(other).ok());
}

// Whatever bytes a peer sends as a manifest, the manifest is refused or all its paths are valid.
TEST(FileManifestTest, NoBytesCrashTheReader) {
  const std::string good = ManifestBytes(Manifest({File("a"), File("b/c", 'b', 9), Folder("d")}));
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 engine(seed);
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[engine() % bytes.size()] = static_cast<char>(engine());
    v1::FileManifest manifest;
    if (!manifest.ParseFromString(bytes)) continue;
    if (!CheckManifest(manifest).ok()) continue;
    for (const v1::FileEntry& entry : manifest.entries()) EXPECT_TRUE(CheckFilePath(entry.path()).ok());
  }
}

// In a group over two workers, the ready one once gave up while the other still waited for its turn to fetch files.
// However many workers share the coordinator's line: no part gives up before the coordinator does, and nobody before
// the files can have come.
TEST(FileManifestTest, AReadyPartWaitsLongerThanTheOthersFetch) {
  struct Case {
    double workers, gib, turns;
    absl::Duration takes;  // How long the fetch takes on a line of 1 Gbit/s.
  };
  for (const Case& c : {Case{1, 1, 1, absl::Seconds(9)}, Case{200, 1, 1, absl::Seconds(1718)},
                        Case{200, 1, 8, absl::Seconds(13744)}, Case{2000, 1, 1, absl::Seconds(17180)}}) {
    const double bytes_per_second = 1e9 / 8;
    const double gib = 1 << 30;
    EXPECT_NEAR(absl::ToDoubleSeconds(c.takes), c.workers * c.gib * c.turns * gib / bytes_per_second, 1);
    v1::CommandSpec command;
    EXPECT_EQ(PartLimitsOf(command).ready, absl::Seconds(15));
    EXPECT_EQ(PartLimitsOf(command).launch, absl::Minutes(1));
    command.mutable_files()->set_bytes(static_cast<uint64_t>(c.gib * gib));
    EXPECT_GT(PartLimitsOf(command).ready, c.takes);
    EXPECT_GT(PartLimitsOf(command).launch, PartLimitsOf(command).ready + absl::Seconds(30));
    // Each worker gets its chunks in turn.
    EXPECT_GT(kFetchStillMax, absl::Seconds(c.workers * (256 << 10) / bytes_per_second));
  }
}

TEST(FileManifestTest, SizesForPeople) {
  EXPECT_EQ(BytesText(1), "1 byte");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(uint64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace hooke
