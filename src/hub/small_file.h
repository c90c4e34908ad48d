// Files of a few bytes, read whole.
#pragma once

#include <string>

#include "base/file.h"

namespace strata {

// Empty where the file cannot be read or is larger.
inline std::string read_small_file(const std::string& path, Bytes limit) {
  const auto file = File::open(path);
  if (!file.ok() || file->size() > limit) return {};
  std::string text(file->size(), '\0');
  const Status read =
      file->read_exactly(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return read.ok() ? text : std::string();
}

}  // namespace strata
