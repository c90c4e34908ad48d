// Names of the parts of a split model: <prefix>-00001-of-0000N.gguf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace strata {

struct SplitName {
  std::string prefix;  // with its folders
  std::uint32_t part;  // from 1, as in the name
  std::uint32_t parts;
};

std::optional<SplitName> parse_split_name(const std::string& path);
std::string split_path(const std::string& prefix, std::uint32_t part, std::uint32_t parts);

}  // namespace strata
