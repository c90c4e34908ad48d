#include "serve/http/target.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/utf8.h"

namespace strata::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = lower_case(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Text with %XX decoded; in queries '+' is a blank.
Result<std::string> decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0) return invalid_argument("the address has a % without two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  if (out.find('\0') != std::string::npos) return invalid_argument("the address holds a zero byte");
  if (utf8_valid_bytes(out) != out.size()) return invalid_argument("the address is not UTF-8");
  return out;
}

Result<Fields> decoded_query(std::string_view text) {
  Fields query;
  for (const std::string_view pair : split(text, '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    STRATA_ASSIGN(std::string name, decoded(pair.substr(0, equals), true));
    STRATA_ASSIGN(std::string value, decoded(pair.substr(std::min(equals + 1, pair.size())), true));
    query.emplace_back(std::move(name), std::move(value));
  }
  return query;
}

// The shortest form of an IP address, or nothing. An IPv4 address in IPv6 form becomes IPv4.
std::optional<std::string> normal_address(const std::string& text) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  in6_addr six{};
  if (in_addr four{}; inet_pton(AF_INET, text.c_str(), &four) == 1)
    return inet_ntop(AF_INET, &four, buffer.data(), buffer.size());
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return std::nullopt;
  if (IN6_IS_ADDR_V4MAPPED(&six) != 0)
    return inet_ntop(AF_INET, &six.s6_addr[12], buffer.data(), buffer.size());
  return inet_ntop(AF_INET6, &six, buffer.data(), buffer.size());
}

bool is_host_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  Target result;
  if (target == "*") {
    result.path = "*";
    return result;
  }
  if (lower_case(target.substr(0, kScheme.size())) == kScheme) {
    target.remove_prefix(kScheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    result.authority = target.substr(0, end);
    if (result.authority.empty()) return invalid_argument("the address names no host");
    target.remove_prefix(end);
    if (target.empty() || target[0] == '?') result.path = "/";
  } else if (!target.starts_with('/')) {
    return invalid_argument("the address does not start with '/'");
  }
  target = target.substr(0, target.find('#'));
  const std::size_t end = std::min(target.find('?'), target.size());
  STRATA_ASSIGN(const std::string path, decoded(target.substr(0, end), false));
  result.path += path;
  STRATA_ASSIGN(result.query, decoded_query(target.substr(std::min(end + 1, target.size()))));
  return result;
}

std::optional<std::string> normal_host(std::string_view authority) {
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && port[0] != ':') return std::nullopt;
  } else if (std::ranges::count(authority, ':') == 1) {
    host = authority.substr(0, authority.find(':'));
    port = authority.substr(host.size());
  }
  if (!port.empty() &&
      !std::ranges::all_of(port.substr(1), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  std::string name = lower_case(host);
  if (auto address = normal_address(name)) return address;
  if (name.ends_with('.')) name.pop_back();
  if (authority.starts_with('[') || !is_host_name(name)) return std::nullopt;
  return name;
}

bool is_loopback_host(std::string_view host) {
  in_addr four{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &four) == 1)
    return (ntohl(four.s_addr) >> 24) == 127;
  return host == "::1" || host == "localhost" || host.ends_with(".localhost");
}

}  // namespace strata::http
