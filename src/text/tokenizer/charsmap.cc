#include "text/tokenizer/charsmap.h"

#include <algorithm>

namespace strata {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxKeyBytes = 256;  // keeps a trie with a circle from costing square time
constexpr std::size_t kMaxReplacementBytes = 1024;
constexpr std::size_t kUnitBytes = 4;

// How a unit of the trie is packed.
bool has_value(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffffu; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ffu; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = kUnitBytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

Status leads_outside() {
  return corrupt("the trie of the normalization rules leads outside itself");
}

}  // namespace

Result<Charsmap> Charsmap::read(const MetadataArray& array) {
  if (array.element_type != ValueType::kUint8 && array.element_type != ValueType::kInt8)
    return corrupt("it is an array of {}, where UINT8 is expected", to_string(array.element_type));
  std::string_view rest = array.numbers;
  if (rest.size() > kMaxBytes)
    return unsupported("it has {} bytes; the limit is {}", rest.size(), kMaxBytes);
  Charsmap rules;
  if (rest.empty()) return rules;
  if (rest.size() < kUnitBytes) return corrupt("{} bytes are too few", rest.size());
  const std::size_t trie_bytes = little_endian(rest);
  rest.remove_prefix(kUnitBytes);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > rest.size())
    return corrupt("a trie of {} bytes does not fit into the {} that are there", trie_bytes,
                   rest.size());
  rules.replacements_ = rest.substr(trie_bytes);
  if (rules.replacements_.empty() || rules.replacements_.back() != '\0')
    return corrupt("the last replacement has no end");
  for (std::size_t at = 0, end; at < rules.replacements_.size(); at = end + 1) {
    end = rules.replacements_.find('\0', at);
    if (end - at > kMaxReplacementBytes)
      return unsupported("a replacement has {} bytes; the limit is {}", end - at,
                         kMaxReplacementBytes);
  }
  for (rest = rest.substr(0, trie_bytes); !rest.empty(); rest.remove_prefix(kUnitBytes))
    rules.units_.push_back(little_endian(rest));
  return rules;
}

Result<Charsmap::Match> Charsmap::match(std::string_view text) const {
  Match longest;
  if (units_.empty()) return longest;
  std::uint32_t at = offset_of(units_[0]);
  const std::size_t limit = std::min(text.size(), kMaxKeyBytes);
  for (std::size_t i = 0; i < limit; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size()) return leads_outside();
    const std::uint32_t unit = units_[at];
    if (byte == 0 || label_of(unit) != byte) break;
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (at >= units_.size() || value_of(units_[at]) >= replacements_.size()) return leads_outside();
    longest = {i + 1, replacements_.c_str() + value_of(units_[at])};
  }
  return longest;
}

}  // namespace strata
