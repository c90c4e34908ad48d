#include "hub/package_index.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/printable.h"
#include "hub/http.h"
#include "hub/json.h"
#include "hub/sha256.h"
#include "hub/source.h"

namespace strata {
namespace {

namespace json = boost::json;

// Fills what the file's name says: package-version[-build]-python-abi-platform.whl.
bool read_wheel_name(Wheel& wheel) {
  if (!is_safe_name(wheel.file) || !wheel.file.ends_with(".whl")) return false;
  const auto parts = split(wheel.file, '-');
  if (parts.size() < 5 || parts.size() > 6) return false;
  wheel.version = parts[1];
  return is_safe_name(wheel.version);
}

Result<std::vector<Wheel>> parse_json_page(std::string_view page) {
  STRATA_ASSIGN(const json::object root, parse_json_object(page));
  const json::array* files = array_of(root, "files");
  if (files == nullptr) return corrupt("the package index lists no `files`");
  std::vector<Wheel> wheels;
  for (const json::value& value : *files) {
    const json::object* entry = value.if_object();
    if (entry == nullptr) continue;
    Wheel wheel;
    wheel.file = text_of(*entry, "filename");
    wheel.url = text_of(*entry, "url");
    wheel.bytes = natural_of(*entry, "size");
    if (const json::object* hashes = object_of(*entry, "hashes"))
      wheel.sha256 = as_sha256(text_of(*hashes, "sha256"));
    const json::value* yanked = entry->if_contains("yanked");
    wheel.yanked = yanked != nullptr && *yanked != false;
    if (read_wheel_name(wheel)) wheels.push_back(std::move(wheel));
  }
  return wheels;
}

// The value of an attribute in the inside of a tag; nullopt: it is not there.
std::optional<std::string> attribute(std::string_view tag, std::string_view name) {
  const std::string low = lower_case(tag);
  for (std::size_t at = 0; (at = low.find(name, at)) != std::string::npos; at += name.size()) {
    const bool starts = at > 0 && trimmed(std::string_view(low).substr(at - 1, 1)).empty();
    if (!starts) continue;
    std::string_view rest = trimmed(tag.substr(at + name.size()));
    if (!rest.starts_with('=')) return "";
    rest = trimmed(rest.substr(1));
    if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) return "";
    const std::size_t end = rest.find(rest[0], 1);
    if (end == std::string_view::npos) return "";
    std::string value(rest.substr(1, end - 1));
    for (std::size_t amp = 0; (amp = value.find("&amp;", amp)) != std::string::npos; ++amp)
      value.erase(amp + 1, 4);
    return value;
  }
  return std::nullopt;
}

std::vector<Wheel> parse_html_page(std::string_view page) {
  std::vector<Wheel> wheels;
  while (true) {
    const std::size_t open = page.find('<');
    if (open == std::string_view::npos) return wheels;
    page.remove_prefix(open + 1);
    const std::size_t close = page.find('>');
    if (close == std::string_view::npos) return wheels;
    const std::string_view tag = page.substr(0, close);
    page.remove_prefix(close);
    if (tag.size() < 2 || lower_case(tag[0]) != 'a' || !trimmed(tag.substr(1, 1)).empty()) continue;
    const std::string link = attribute(tag, "href").value_or("");
    const std::size_t hash = std::min(link.find('#'), link.size());
    Wheel wheel;
    wheel.url = link.substr(0, hash);
    const std::string_view fragment = std::string_view(link).substr(hash);
    if (fragment.starts_with("#sha256=")) wheel.sha256 = as_sha256(fragment.substr(8));
    wheel.yanked = attribute(tag, "data-yanked").has_value();
    wheel.file = decoded_file_name(wheel.url);
    if (read_wheel_name(wheel)) wheels.push_back(std::move(wheel));
  }
}

// The numbers of a final release such as 1.10.2; nullopt for pre-releases and the like.
std::optional<std::vector<std::uint64_t>> release_of(std::string_view version) {
  std::vector<std::uint64_t> numbers;
  for (const std::string_view part : split(version, '.')) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
    numbers.push_back(number);
  }
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

}  // namespace

Result<std::vector<Wheel>> parse_index_page(std::string_view page, std::string_view content_type) {
  if (lower_case(content_type).find("json") != std::string::npos) return parse_json_page(page);
  return parse_html_page(page);
}

Result<Wheel> choose_wheel(const std::vector<Wheel>& wheels, const std::string& version) {
  const Wheel* best = nullptr;
  const auto better = [&](const Wheel& wheel) {
    const auto release = release_of(wheel.version);
    if (version.empty() ? !release || wheel.yanked : wheel.version != version) return false;
    if (best == nullptr) return true;
    const auto most = release_of(best->version);
    if (version.empty() && release != most) return *release > *most;
    return wheel.file.ends_with("-none-any.whl") && !best->file.ends_with("-none-any.whl");
  };
  for (const Wheel& wheel : wheels)
    if (better(wheel)) best = &wheel;
  if (best != nullptr) return *best;
  std::vector<std::string> versions;
  for (const Wheel& wheel : wheels)
    if (std::ranges::find(versions, wheel.version) == versions.end() && versions.size() < 20)
      versions.push_back(wheel.version);
  if (versions.empty()) return not_found("the package index has no wheel of this package");
  return not_found("the package index has no wheel of {}; name one of {} after ==",
                   version.empty() ? "a final release" : "version " + version,
                   fmt::join(versions, ", "));
}

}  // namespace strata
