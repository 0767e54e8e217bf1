#ifndef HOOKE_CLIENT_HISTORY_HISTORY_SVG_H_
#define HOOKE_CLIENT_HISTORY_HISTORY_SVG_H_

// Histories of jobs as a picture, in SVG: the loss, and below it the accuracy of the center. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/history/curves.h"

namespace hooke {

// Returns the picture, an XML document that needs nothing else and is readable on light and dark pages. It is empty if
// no job has a loss or an accuracy that is a number.
std::string HistorySvg(const std::vector<PlottedJob>& jobs, PlotAxis axis);

// Returns the text as content of an XML element or attribute. Characters that XML does not allow become U+FFFD.
std::string XmlText(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_HISTORY_SVG_H_
