// The part of TOML that options need: names, with texts, numbers, true, false, and lists of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace strata::apps {

struct Setting {
  std::string name;  // with dashes where the file has underscores
  int line = 0;      // of the file
  std::vector<std::string> values;
};

// `path` is for errors, which name the line.
Result<std::vector<Setting>> parse_settings(const std::string& path, std::string_view text);

}  // namespace strata::apps
