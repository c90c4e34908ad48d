// Which program this is.
#pragma once

#include <string_view>

namespace strata::apps {

std::string_view program_version();  // e.g. "0.1.0"
// What git calls the sources it was built from, "-dirty" behind changes; "unknown" without git.
std::string_view program_commit();

}  // namespace strata::apps
