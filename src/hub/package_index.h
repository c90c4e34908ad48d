// A package index (the simple API, as JSON or HTML) and the wheels of a package on it.
// https://packaging.python.org/en/latest/specifications/simple-repository-api/
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

struct Wheel {
  std::string file;     // safe; ends in .whl
  std::string url;      // as on the page, which may be relative to it
  std::string sha256;   // empty: unknown
  std::string version;  // as in the file's name
  std::optional<Bytes> bytes;
  bool yanked = false;
};

// The wheels of a page; what is no wheel is left out.
Result<std::vector<Wheel>> parse_index_page(std::string_view page, std::string_view content_type);

// The wheel of that version, or of the newest that is neither yanked nor a pre-release; among
// several for one version, the one for every platform.
Result<Wheel> choose_wheel(const std::vector<Wheel>& wheels, const std::string& version);

}  // namespace strata
