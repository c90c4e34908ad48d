// Addresses as they stand in requests: targets, hosts and origins (RFC 3986, RFC 9112).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "serve/http/message.h"

namespace strata::http {

// The target of a request line. Both parts are decoded.
struct Target {
  std::string path;
  Fields query;
  std::string authority;  // of the absolute form, else empty
};

// Takes "/path?query", "http://host/path?query" and "*" (the path "*").
Result<Target> parse_target(std::string_view target);

// A host without its port, in lower case and its shortest form: "LocalHost:80" is "localhost",
// "[0:0::1]:80" is "::1". Nothing where it is none.
std::optional<std::string> normal_host(std::string_view authority);

// Whether a host, in normal form, is this machine alone: localhost and names below it, 127.0.0.0/8
// and ::1.
bool is_loopback_host(std::string_view host);

}  // namespace strata::http
