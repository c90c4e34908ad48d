// The TOML file of a server's options.
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

// In the order of the file. `path` is for errors, which name the line.
Result<std::vector<Setting>> parse_settings(const std::string& path, std::string_view text);

}  // namespace strata::apps
