// Dates as templates want them: C's strftime in the C locale, without a clock or a time zone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/template/runtime.h"

namespace strata::jinja {

// Conversions that strftime does not know stay as they are.
std::string strftime(TimePoint time, std::string_view format);

// "2026-03-14T15:09:26", with a blank for the T, a fraction of a second, or a date only.
std::optional<TimePoint> parse_time(std::string_view text);

}  // namespace strata::jinja
