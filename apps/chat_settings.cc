#include "chat_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <variant>

#include "base/printable.h"

namespace strata::apps {
namespace {

struct Parameter {
  std::string_view name;
  std::variant<float SamplingParams::*, std::int32_t SamplingParams::*,
               std::uint64_t SamplingParams::*>
      field;
};
constexpr Parameter kParameters[] = {
    {"temperature", &SamplingParams::temperature},
    {"top_k", &SamplingParams::top_k},
    {"top_p", &SamplingParams::top_p},
    {"min_p", &SamplingParams::min_p},
    {"repeat_penalty", &SamplingParams::repeat_penalty},
    {"repeat_last_n", &SamplingParams::repeat_last_n},
    {"presence_penalty", &SamplingParams::presence_penalty},
    {"frequency_penalty", &SamplingParams::frequency_penalty},
    {"seed", &SamplingParams::seed},
};

std::string canonical(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out == "temp" ? "temperature" : out;
}

template <typename T>
Status parse_number(std::string_view name, std::string_view text, T& out) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    return invalid_argument("{}: '{}' is no fitting number", name, printable(text, 32));
  out = value;
  return {};
}

}  // namespace

Result<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return invalid_argument("'{}' is neither on nor off", printable(text, 32));
}

Status ChatSettings::set(std::string_view given, std::string_view value, std::int32_t vocabulary) {
  const std::string name = canonical(given);
  for (const Parameter& parameter : kParameters) {
    if (parameter.name != name) continue;
    SamplingParams changed = sampling;
    STRATA_TRY(std::visit([&](auto field) { return parse_number(name, value, changed.*field); },
                          parameter.field));
    STRATA_TRY(changed.validate(vocabulary));
    sampling = changed;
    return {};
  }
  if (name == "system") {
    system = replace_invalid_utf8(value);
  } else if (name == "max_tokens") {
    std::int32_t limit = 0;
    STRATA_TRY(parse_number(name, value, limit));
    if (limit < -1 || limit == 0)
      return invalid_argument("max_tokens must be positive, or -1 for no limit");
    max_tokens = limit;
  } else if (name == "think") {
    STRATA_ASSIGN(think, parse_switch(value));
  } else if (name == "hide_thinking") {
    STRATA_ASSIGN(hide_thinking, parse_switch(value));
  } else if (name == "stop") {
    stops.clear();
    if (!value.empty()) stops.emplace_back(value);
  } else {
    return not_found("there is no parameter '{}'; /show lists them", printable(given, 32));
  }
  return {};
}

std::string ChatSettings::describe() const {
  std::string out;
  const auto line = [&](std::string_view name, const auto& value) {
    out += fmt::format("  {:<18} {}\n", name, value);
  };
  for (const Parameter& parameter : kParameters)
    std::visit([&](auto field) { line(parameter.name, sampling.*field); }, parameter.field);
  line("max_tokens", max_tokens);
  for (const std::string& stop : stops) line("stop", '"' + printable(stop) + '"');
  line("think", !think ? "as the template has it" : *think ? "on" : "off");
  line("hide_thinking", hide_thinking ? "on" : "off");
  line("system", system.empty() ? "none" : '"' + printable(system) + '"');
  return out;
}

}  // namespace strata::apps
