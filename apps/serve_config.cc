#include "serve_config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <exception>

#include "base/printable.h"

namespace strata::apps {
namespace {

Status wrong(const std::string& path, const toml::source_region& where, std::string_view what) {
  return invalid_argument("{}, line {}: {}", printable(path), where.begin.line, printable(what));
}

// Texts, numbers, true and false as a command line would have them; nothing for others.
std::optional<std::string> value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return fmt::format("{}", truth->get());
  return std::nullopt;
}

Result<std::vector<std::string>> values_of(const std::string& path, std::string_view name,
                                           const toml::node& node) {
  if (node.is_table() || node.is_array_of_tables())
    return wrong(
        path, node.source(),
        fmt::format("tables such as '{}' are not known here; options stand without one", name));
  std::vector<std::string> values;
  const auto add = [&](const toml::node& each) {
    std::optional<std::string> value = value_of(each);
    if (value) values.push_back(std::move(*value));
    return value.has_value();
  };
  bool known = true;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& each : *list) known = known && add(each);
  } else {
    known = add(node);
  }
  if (!known)
    return wrong(path, node.source(),
                 fmt::format("{} must be a text, a number, true, false, or a list of these", name));
  return values;
}

}  // namespace

Result<std::vector<Setting>> parse_settings(const std::string& path, std::string_view text) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return wrong(path, error.source(), error.description());
  } catch (const std::exception& error) {
    return invalid_argument("{}: {}", printable(path), error.what());
  }
  std::vector<Setting> out;
  for (const auto& [key, node] : table) {
    STRATA_ASSIGN(auto values, values_of(path, key.str(), node));
    std::string name(key.str());
    std::ranges::replace(name, '_', '-');
    const auto line = static_cast<int>(key.source().begin.line);
    out.push_back({std::move(name), line, std::move(values)});
  }
  std::ranges::sort(out, {}, &Setting::line);
  return out;
}

}  // namespace strata::apps
