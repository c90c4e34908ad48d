// Texts of users, from files, pipes and standard input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata::apps {

constexpr Bytes kMostInputBytes = 64 * kMiB;

// All of a file, pipe or device; fails where it has more than `limit` bytes, which need not end.
Result<std::string> read_whole(const std::string& path, Bytes limit = kMostInputBytes);
// All of standard input, likewise.
Result<std::string> read_standard_input();

// The lines of `text` without their ends; what follows the last end is a line unless it is empty.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace strata::apps
