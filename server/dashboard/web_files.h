#ifndef HOOKE_SERVER_DASHBOARD_WEB_FILES_H_
#define HOOKE_SERVER_DASHBOARD_WEB_FILES_H_

// The files of web/, and Chart.js, as part of the program. embed.py writes them at build time.

#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

struct WebFile {
  const char* name;  // Without its folder: "app.js".
  const char* type;  // Its media type.
  absl::string_view content;
};

const std::vector<WebFile>& WebFiles();

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_WEB_FILES_H_
