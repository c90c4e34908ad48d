#include "gguf/splits.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace strata {
namespace {

std::optional<std::uint32_t> five_digits(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<SplitName> parse_split_name(const std::string& path) {
  constexpr std::string_view kShape = "-00001-of-00001.gguf";
  if (path.size() <= kShape.size()) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kShape.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf")
    return std::nullopt;
  const auto part = five_digits(tail.substr(1, 5));
  const auto parts = five_digits(tail.substr(10, 5));
  if (!part || !parts || *part < 1 || *part > *parts) return std::nullopt;
  return SplitName{path.substr(0, path.size() - kShape.size()), *part, *parts};
}

std::string split_path(const std::string& prefix, std::uint32_t part, std::uint32_t parts) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part, parts);
}

}  // namespace strata
