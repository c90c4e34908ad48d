#include "chat_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "numbers.h"

namespace strata::apps {
namespace {

std::string canonical(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out == "temp" ? "temperature" : out;
}

}  // namespace

Result<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return invalid_argument("'{}' is neither on nor off", printable(text, 32));
}

Status ChatSettings::set(std::string_view given, std::string_view value, std::int32_t vocabulary) {
  const std::string name = canonical(given);
  SamplingSettings changed = sampling;
  const Status assigned = changed.assign(name, value, SamplingSettings::Origin::kChat);
  if (assigned.code() != StatusCode::kNotFound) {
    STRATA_TRY(assigned.with_context(name));
    STRATA_TRY(changed.params.validate(vocabulary));
    sampling = std::move(changed);
    return {};
  }
  if (name == "system") {
    system = replace_invalid_utf8(value);
  } else if (name == "max_tokens") {
    std::int32_t limit = 0;
    STRATA_TRY(parse_number(value, limit).with_context(name));
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
  std::string out = sampling.describe();
  const auto line = [&](std::string_view name, const auto& value) {
    out += fmt::format("  {:<18} {}\n", name, value);
  };
  line("max_tokens", max_tokens);
  for (const std::string& stop : stops) line("stop", '"' + printable(stop) + '"');
  line("think", !think ? "as the template has it" : *think ? "on" : "off");
  line("hide_thinking", hide_thinking ? "on" : "off");
  line("system", system.empty() ? "none" : '"' + printable(system) + '"');
  return out;
}

}  // namespace strata::apps
