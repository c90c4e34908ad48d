#include "text/template/strftime.h"

#include <fmt/format.h>

#include <charconv>

namespace strata::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Fields {
  int year;
  unsigned month, day, weekday, yearday;  // yearday from 1
  long hour, minute, second, microsecond;
};

Fields fields_of(TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto new_year = std::chrono::sys_days(date.year() / 1 / 1);
  return {int{date.year()},
          unsigned{date.month()},
          unsigned{date.day()},
          std::chrono::weekday(day).c_encoding(),
          static_cast<unsigned>((day - new_year).count()) + 1,
          clock.hours().count(),
          clock.minutes().count(),
          clock.seconds().count(),
          clock.subseconds().count()};
}

long hour12(long hour) { return hour % 12 == 0 ? 12 : hour % 12; }

// One conversion; a flag of '-' drops the padding.
std::string convert(const Fields& f, char letter, bool padded) {
  const auto two = [&](auto value) {
    return padded ? fmt::format("{:02}", value) : fmt::format("{}", value);
  };
  switch (letter) {
    case 'Y': return fmt::format("{}", f.year);
    case 'y': return two(((f.year % 100) + 100) % 100);
    case 'm': return two(f.month);
    case 'd': return two(f.day);
    case 'e': return padded ? fmt::format("{:2}", f.day) : fmt::format("{}", f.day);
    case 'H': return two(f.hour);
    case 'I': return two(hour12(f.hour));
    case 'M': return two(f.minute);
    case 'S': return two(f.second);
    case 'f': return fmt::format("{:06}", f.microsecond);
    case 'p': return f.hour < 12 ? "AM" : "PM";
    case 'B': return std::string(kMonths[f.month - 1]);
    case 'b':
    case 'h': return std::string(kMonths[f.month - 1].substr(0, 3));
    case 'A': return std::string(kDays[f.weekday]);
    case 'a': return std::string(kDays[f.weekday].substr(0, 3));
    case 'w': return fmt::format("{}", f.weekday);
    case 'u': return fmt::format("{}", f.weekday == 0 ? 7 : f.weekday);
    case 'j': return padded ? fmt::format("{:03}", f.yearday) : fmt::format("{}", f.yearday);
    case 'F': return fmt::format("{}-{:02}-{:02}", f.year, f.month, f.day);
    case 'T':
    case 'X': return fmt::format("{:02}:{:02}:{:02}", f.hour, f.minute, f.second);
    case 'R': return fmt::format("{:02}:{:02}", f.hour, f.minute);
    case 'D':
    case 'x': return fmt::format("{:02}/{:02}/{:02}", f.month, f.day, f.year % 100);
    case 'c':
      return fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", kDays[f.weekday].substr(0, 3),
                         kMonths[f.month - 1].substr(0, 3), f.day, f.hour, f.minute, f.second,
                         f.year);
    case 'Z':
    case 'z': return "";
    case '%': return "%";
    default: return std::string("%") + letter;
  }
}

// Reads exactly `digits` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take_char(std::string_view& text, std::string_view allowed) {
  if (text.empty() || allowed.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string strftime(TimePoint time, std::string_view format) {
  const Fields fields = fields_of(time);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool padded = format[i + 1] != '-' || i + 2 == format.size();
    i += padded ? 1 : 2;
    out += convert(fields, format[i], padded);
  }
  return out;
}

std::optional<TimePoint> parse_time(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take_char(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take_char(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  TimePoint time = std::chrono::sys_days(date);
  if (text.empty()) return time;
  if (!take_char(text, "T ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take_char(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  time += std::chrono::hours(*hour) + std::chrono::minutes(*minute);
  if (text.empty()) return time;
  if (!take_char(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *second > 59) return std::nullopt;
  time += std::chrono::seconds(*second);
  if (text.empty()) return time;
  if (!take_char(text, ".") || text.empty() || text.size() > 6) return std::nullopt;
  int scale = 1;
  for (std::size_t i = text.size(); i < 6; ++i) scale *= 10;
  const auto fraction = take_number(text, text.size());
  if (!fraction) return std::nullopt;
  return time + std::chrono::microseconds(*fraction * scale);
}

}  // namespace strata::jinja
