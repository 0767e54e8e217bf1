#include "worker/data/idx_dataset.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/base/macros.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/idx_file.h"

namespace hooke {
namespace {

absl::Status CheckLabels(const IdxFile& labels, uint32_t classes) {
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat(labels.path, ": label ", static_cast<int>(labels.bytes[i]),
                                                     " of image ", i, " is outside the model's ", classes,
                                                     " classes (0 to ", static_cast<int64_t>(classes) - 1, ")"));
    }
  }
  return absl::OkStatus();
}

// Computes mean and deviation of the pixels. It first counts each pixel value, so the sums have only 256 terms and lose
// no precision over many pixels.
Normalization Measure(const std::vector<uint8_t>& pixels) {
  std::array<uint64_t, 256> times{};
  for (uint8_t pixel : pixels) ++times[pixel];
  const double count = static_cast<double>(pixels.size());
  double sum = 0;
  for (size_t value = 0; value < times.size(); ++value) sum += static_cast<double>(times[value]) * value;
  const double mean = sum / count;
  double squares = 0;
  for (size_t value = 0; value < times.size(); ++value) {
    const double from_mean = static_cast<double>(value) - mean;
    squares += static_cast<double>(times[value]) * from_mean * from_mean;
  }
  const double deviation = std::sqrt(squares / count);
  return {mean / kPixelMax, deviation > 0 ? deviation / kPixelMax : 1};
}

}  // namespace

PixelScale ScaleOf(const Normalization& normalization) {
  return {static_cast<float>(1 / (kPixelMax * normalization.deviation)),
          static_cast<float>(-normalization.mean / normalization.deviation)};
}

absl::StatusOr<IdxDataset> IdxDataset::Load(const IdxOptions& options) {
  absl::StatusOr<IdxFile> images =
      ReadIdxFile({absl::StrCat(options.prefix, "-images-idx3-ubyte"), "images", 3, options.pixels_max});
  if (!images.ok()) return images.status();
  absl::StatusOr<IdxFile> labels =
      ReadIdxFile({absl::StrCat(options.prefix, "-labels-idx1-ubyte"), "labels", 1, options.pixels_max});
  if (!labels.ok()) return labels.status();
  if (images->sizes[0] != labels->sizes[0]) {
    return absl::InvalidArgumentError(absl::StrCat(images->path, " holds ", images->sizes[0], " images and ",
                                                   labels->path, " ", labels->sizes[0],
                                                   " labels; the two belong to different sets"));
  }
  if (absl::Status status = CheckLabels(*labels, options.classes); !status.ok()) return status;
  IdxContent content;
  content.rows = images->sizes[1];
  content.columns = images->sizes[2];
  content.pixels = std::move(images->bytes);
  content.labels = std::move(labels->bytes);
  content.normalization = Measure(content.pixels);
  return IdxDataset(std::move(content));
}

void IdxDataset::WriteImages(absl::Span<const uint32_t> indices, const Normalization& normalization,
                             absl::Span<float> to) const {
  const size_t values = image_values();
  ABSL_ASSERT(to.size() == indices.size() * values);
  const auto [factor, offset] = ScaleOf(normalization);
  for (size_t i = 0; i < indices.size(); ++i) {
    const uint8_t* __restrict from = content_.pixels.data() + indices[i] * values;
    float* __restrict row = to.data() + i * values;
    for (size_t v = 0; v < values; ++v) row[v] = static_cast<float>(from[v]) * factor + offset;
  }
}

void IdxDataset::WriteLabels(absl::Span<const uint32_t> indices, absl::Span<int64_t> to) const {
  ABSL_ASSERT(to.size() == indices.size());
  for (size_t i = 0; i < indices.size(); ++i) to[i] = content_.labels[indices[i]];
}

}  // namespace hooke
