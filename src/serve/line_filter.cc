#include "serve/line_filter.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/ascii.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

bool is_system(const json::object& message) {
  const json::value* role = message.if_contains("role");
  return role != nullptr && (*role == "system" || *role == "developer");
}

}  // namespace

LineFilter::LineFilter(std::string_view rules) {
  for (const std::string_view line : split(rules, '\n')) {
    const std::string_view rule = trimmed(line);
    if (rule.empty() || rule.starts_with('#')) continue;
    Rule texts;
    for (const std::string_view text : split(rule, '*')) texts.emplace_back(text);
    rules_.push_back(std::move(texts));
  }
}

bool LineFilter::matches(std::string_view line) const {
  return std::ranges::any_of(rules_, [&](const Rule& rule) {
    if (!line.starts_with(rule.front())) return false;
    std::size_t at = rule.front().size();
    for (std::size_t i = 1; i < rule.size(); ++i) {
      const std::size_t found = line.find(rule[i], at);
      if (found == std::string_view::npos) return false;
      at = found + rule[i].size();
    }
    return true;
  });
}

std::size_t LineFilter::apply(std::string& text) const {
  std::string kept;
  std::size_t left_out = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (matches(trimmed(line)))
      ++left_out;
    else
      kept += line;
    at = end;
  }
  if (left_out > 0) text = std::move(kept);
  return left_out;
}

std::size_t LineFilter::apply(json::array& messages) const {
  std::size_t left_out = 0;
  const auto filter = [&](json::value& value) {
    std::string text(value.get_string());
    const std::size_t lines = apply(text);
    if (lines > 0) value = text;
    left_out += lines;
    return lines > 0 && text.empty();
  };
  for (json::value& value : messages) {
    json::object* message = value.if_object();
    if (message == nullptr || !is_system(*message)) continue;
    json::value* content = message->if_contains("content");
    if (content == nullptr) continue;
    if (content->is_string()) filter(*content);
    json::array* parts = content->if_array();
    if (parts == nullptr) continue;
    for (auto part = parts->begin(); part != parts->end();)
      part = filter(part->at("text")) ? parts->erase(part) : part + 1;
  }
  return left_out;
}

}  // namespace strata::serve
